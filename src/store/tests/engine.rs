//! Which engine the tests of the store run on: `EVENTFLOW_TEST_ENGINE` is `sqlite`, which it is if it isn't set, `postgres`,
//! `mysql`, or `mysql_zoned`, a server that isn't in UTC. The server is the one of `EVENTFLOW_TEST_POSTGRES_URL`, …; each test
//! gets a database of its own there.

use sea_orm::{ConnectionTrait, Database};

use super::super::{Place, ServerUrl, engine::Engine};

/// The variable with the server's URL; none: it is SQLite.
fn variable() -> Option<&'static str> {
    match std::env::var("EVENTFLOW_TEST_ENGINE").as_deref() {
        Err(_) | Ok("" | "sqlite") => None,
        Ok("postgres") => Some("EVENTFLOW_TEST_POSTGRES_URL"),
        Ok("mysql") => Some("EVENTFLOW_TEST_MYSQL_URL"),
        Ok("mysql_zoned") => Some("EVENTFLOW_TEST_MYSQL_ZONED_URL"),
        Ok(other) => panic!("EVENTFLOW_TEST_ENGINE is {other:?}: sqlite, postgres, mysql or mysql_zoned"),
    }
}

/// Which engine it is.
pub(in super::super) fn engine() -> Engine {
    match variable() {
        None => Engine::Sqlite,
        Some("EVENTFLOW_TEST_POSTGRES_URL") => Engine::Postgres,
        Some(_) => Engine::MySql,
    }
}

/// Says that a test is of SQLite alone, and whether it is to be skipped.
pub(in super::super) fn is_only_for_sqlite(why: &str) -> bool {
    let skipped = engine() != Engine::Sqlite;
    if skipped {
        eprintln!("skipped: {why}");
    }
    skipped
}

/// An empty database.
pub(in super::super) async fn empty() -> Place {
    let Some(variable) = variable() else { return Place::Memory };
    let url = std::env::var(variable).unwrap_or_else(|_| panic!("{variable} isn't set: see tests/servers"));
    let name = format!("store_{:016x}", fastrand::u64(..));
    let server = Database::connect(&url).await.unwrap();
    server.execute_unprepared(&format!("CREATE DATABASE {name}")).await.unwrap();
    server.close().await.unwrap();
    let (place, _) = url.rsplit_once('/').unwrap();
    Place::Server(format!("{place}/{name}").parse::<ServerUrl>().unwrap())
}
