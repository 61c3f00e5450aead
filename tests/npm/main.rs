//! The hub beside the npm stack, on one MariaDB: parties that act as those of npm Eventflow do (`stack`, which uses
//! nothing of this library), and a flow per module. Without `EVENTFLOW_TEST_MYSQL_URL` each flow says that it was skipped; with
//! `EVENTFLOW_TEST_ENGINE=mysql_zoned` they run on a server outside UTC.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails may panic")]

mod certificates_are_locked;
mod connect;
mod consume_by_race;
mod independence;
mod left_behind;
mod mixed_fleet;
mod npms_own_database;
mod online_relay;
mod orphan;
mod players;
mod publish_before_subscribe;
mod ready_byte;
mod reconnect;
mod revoked;
mod schedule;
mod scratch;
mod stack;
mod subscribe;
mod tables;
mod times;
mod unsubscribe;
mod wait;
mod wildcard;
mod world;
