//! The cast. An event goes one way through it, in batches: [`connection`] decodes what one read brought,
//! [`journal`] commits all that waits in one transaction and answers the publishers, [`registry`] finds the
//! subscribers, [`deliveries`] chooses consumers, the links' writers send what is queued; acks go back to the
//! journal. [`scheduler`] hands the journal what is due, [`collector`] what
//! applications have put into the database themselves. [`listener`] lets links in, [`announcer`] tells other hubs,
//! [`monitor`] keeps the log table and the gauges, [`warden`] the certificates; [`keeper`] removes
//! what was kept long enough.
//!
//! Actors know each other only by the handles that the hub gives them. Payload is shared, an event is encoded
//! once, and every queue has a bound: see the passport at the top of each actor.

pub mod announcer;
pub mod backlog;
pub mod clock;
pub mod collector;
pub mod connection;
pub mod deliveries;
pub mod dispatched;
pub mod journal;
pub mod keeper;
pub mod life;
pub mod listener;
pub mod mail;
pub mod monitor;
pub mod npm;
pub mod outlet;
pub mod registry;
pub mod round;
pub mod scheduler;
pub mod snapshot;
pub mod trace;
pub mod waiters;
pub mod warden;

use std::time::Duration;

use crate::event::{Fault, code};

/// The last words when the hub stops.
#[must_use]
pub fn draining() -> Fault {
    Fault::retryable(
        code::HUB_DRAINING,
        "the hub is stopping: connect again in a moment, or to another hub",
        Duration::from_secs(1),
    )
}
