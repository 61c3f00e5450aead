//! Which engine the tests of the store run on: `EVENTFLOW_TEST_ENGINE` is `sqlite`, which it is if it isn't set, `postgres`,
//! `mysql`, or `mysql_zoned`, a server that isn't in UTC. The server is the one of `EVENTFLOW_TEST_POSTGRES_URL`, …; each test
//! gets a database of its own there.

use std::{cell::RefCell, io::Write, sync::Mutex};

use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection, Statement, TransactionTrait};

use super::super::{NpmTimeZone, Place, ServerUrl, Store, StoreConfig, engine::Engine};

const ZONED: &str = "EVENTFLOW_TEST_MYSQL_ZONED_URL";

/// The variable with the server's URL; none: it is SQLite.
fn variable() -> Option<&'static str> {
    match std::env::var("EVENTFLOW_TEST_ENGINE").as_deref() {
        Err(_) | Ok("" | "sqlite") => None,
        Ok("postgres") => Some("EVENTFLOW_TEST_POSTGRES_URL"),
        Ok("mysql") => Some("EVENTFLOW_TEST_MYSQL_URL"),
        Ok("mysql_zoned") => Some(ZONED),
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

/// Whether it is a server outside UTC.
pub(in super::super) fn is_zoned() -> bool {
    variable() == Some(ZONED)
}

/// Says that a test is of SQLite alone, and whether it is to be skipped.
pub(in super::super) fn is_only_for_sqlite(why: &str) -> bool {
    let skipped = engine() != Engine::Sqlite;
    if skipped {
        // Not by a macro of the test harness, which would hide it.
        let test = std::thread::current().name().unwrap_or_default().to_owned();
        std::io::stderr().write_all(format!("skipped: {test}: {why}\n").as_bytes()).unwrap();
    }
    skipped
}

/// An empty database. What a test of this process has done with is emptied: to make all tables takes seconds.
pub(in super::super) async fn empty() -> Place {
    let Some(variable) = variable() else { return Place::Memory };
    let url = std::env::var(variable).unwrap_or_else(|_| panic!("{variable} isn't set: see tests/servers"));
    let (server, _) = url.rsplit_once('/').unwrap();
    let used = FREE.lock().unwrap().pop();
    let url = match used {
        Some(url) => {
            let db = connect(&url).await;
            clear(&db).await;
            db.close().await.unwrap();
            url
        }
        None => {
            let name = format!("store_{:016x}", fastrand::u64(..));
            let db = connect(&url).await;
            db.execute_unprepared(&format!("CREATE DATABASE {name}")).await.unwrap();
            db.close().await.unwrap();
            format!("{server}/{name}")
        }
    };
    TAKEN.with(|taken| taken.0.borrow_mut().push(url.clone()));
    Place::Server(url.parse::<ServerUrl>().unwrap())
}

/// Databases whose tests are over.
static FREE: Mutex<Vec<String>> = Mutex::new(Vec::new());

thread_local! {
    /// Those of the test that this thread runs: it has the thread to itself.
    static TAKEN: Taken = const { Taken(RefCell::new(Vec::new())) };
}

struct Taken(RefCell<Vec<String>>);

impl Drop for Taken {
    fn drop(&mut self) {
        FREE.lock().unwrap().append(&mut self.0.borrow_mut());
    }
}

async fn connect(url: &str) -> DatabaseConnection {
    let mut options = ConnectOptions::new(url);
    options.max_connections(1).sqlx_logging(false);
    Database::connect(options).await.unwrap()
}

/// Takes the rows, and what a test has put there besides; leaves the tables.
async fn clear(db: &DatabaseConnection) {
    let is_postgres = engine() == Engine::Postgres;
    let schema = if is_postgres { "current_schema()" } else { "database()" };
    let tables =
        format!("SELECT concat(table_name, '') FROM information_schema.tables WHERE table_schema = {schema}");
    let tables = db.query_all_raw(Statement::from_string(engine().into(), tables)).await.unwrap();
    let tables: Vec<String> = tables.iter().map(|row| row.try_get_by_index(0).unwrap()).collect();
    // What hangs on events goes with them; hubs are named by what does.
    let last = |table: &str| (table != "event", table == "hub");
    let mut tables: Vec<String> = tables.into_iter().filter(|table| table != "v1_migration").collect();
    tables.sort_by_key(|table| last(table));
    let trouble =
        if is_postgres { "FUNCTION IF EXISTS trouble CASCADE" } else { "TRIGGER IF EXISTS trouble" };
    db.execute_unprepared(&format!("DROP {trouble}")).await.unwrap();
    let transaction = db.begin().await.unwrap();
    for rows in tables.into_iter().chain(["v1_migration WHERE version > 'm2999'".to_owned()]) {
        transaction.execute_unprepared(&format!("DELETE FROM {rows}")).await.unwrap();
    }
    transaction.commit().await.unwrap();
}

/// With what else the engine needs.
pub(in super::super) fn config(place: Place) -> StoreConfig {
    let npm_time_zone = if is_zoned() { NpmTimeZone::Server } else { NpmTimeZone::Utc };
    StoreConfig { npm_time_zone, ..StoreConfig::new(place) }
}

/// An empty database that outlives its store: of SQLite a file in the folder.
pub(in super::super) async fn kept(folder: &tempfile::TempDir) -> StoreConfig {
    match engine() {
        Engine::Sqlite => super::in_file(folder),
        Engine::Postgres | Engine::MySql => config(empty().await),
    }
}

/// What the columns that the npm stack knows hold of a moment: on MySQL whole seconds.
pub(in super::super) fn held(ms: i64) -> i64 {
    if engine() == Engine::MySql { ms - ms.rem_euclid(1_000) } else { ms }
}

/// The numbers from 1 to 10 to this power, as a table `n` with the column `n`: MySQL counts no further than to 1,000 by
/// itself.
pub(in super::super) fn numbers(power: u32) -> String {
    let digits =
        (1..10).fold("SELECT 0 AS d".to_owned(), |all, digit| format!("{all} UNION ALL SELECT {digit}"));
    let places: Vec<String> = (0..power).map(|place| format!("p{place}.d * {}", 10_u32.pow(place))).collect();
    let tables: Vec<String> = (0..power).map(|place| format!("({digits}) p{place}")).collect();
    format!("(SELECT 1 + {} AS n FROM {}) n", places.join(" + "), tables.join(", "))
}

/// From now on the database refuses inserts of rows `new` that meet the condition, by this message.
pub(in super::super) async fn refuse(store: &Store, table: &str, condition: &str, message: &str) {
    let head = format!("CREATE TRIGGER trouble BEFORE INSERT ON {table}");
    let db = store.writer.raw();
    let trigger = match engine() {
        Engine::Sqlite => format!("{head} WHEN {condition} BEGIN SELECT raise(ABORT, '{message}'); END"),
        Engine::MySql => format!(
            "{head} FOR EACH ROW BEGIN IF {condition} THEN \
             SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '{message}'; END IF; END"
        ),
        Engine::Postgres => {
            let function = format!(
                "CREATE OR REPLACE FUNCTION trouble() RETURNS trigger LANGUAGE plpgsql AS \
                 $$ BEGIN RAISE EXCEPTION '{message}'; END $$"
            );
            db.execute_unprepared(&function).await.unwrap();
            format!("{head} FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION trouble()")
        }
    };
    db.execute_unprepared(&trigger).await.unwrap();
}

/// It takes them again.
pub(in super::super) async fn allow(store: &Store, table: &str) {
    let of = if engine() == Engine::Postgres { format!(" ON {table}") } else { String::new() };
    store.writer.raw().execute_unprepared(&format!("DROP TRIGGER trouble{of}")).await.unwrap();
}
