//! Which database the hubs of these tests use: `EVENTFLOW_TEST_ENGINE` is `sqlite`, which it is if it isn't set, `postgres`,
//! `mysql`, or `mysql_zoned`, a server that isn't in UTC. A server is the one of `EVENTFLOW_TEST_POSTGRES_URL`, …, which
//! `tests/servers` starts; the hubs of one folder have a database of their own there.

#[path = "engine/pool.rs"]
mod pool;

use std::{
    fs,
    future::Future,
    io::Write,
    path::{Path, PathBuf},
};

use eventflow::{
    config::{DatabaseUrl, HubConfig, NpmTimeZone},
    store::{self, Place, Store, StoreConfig},
};
use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DbBackend, Statement, Value};

/// The file in a folder of hubs with the URL of their database.
const NOTE: &str = "database-url";

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

/// The name that `tests/servers` has for that server; none: it is SQLite.
pub fn server() -> Option<&'static str> {
    match variable()? {
        "EVENTFLOW_TEST_POSTGRES_URL" => Some("postgres"),
        "EVENTFLOW_TEST_MYSQL_URL" => Some("mysql"),
        _ => Some("zoned"),
    }
}

/// Says that a test is of SQLite alone, and whether it is to be skipped.
pub fn is_only_for_sqlite(why: &str) -> bool {
    let skipped = variable().is_some();
    if skipped {
        skip(why);
    }
    skipped
}

/// Says that the test that runs in this thread is left out, and why.
pub fn skip(why: &str) {
    // Not by a macro of the test harness, which would hide it.
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    std::io::stderr().write_all(format!("skipped: {test}: {why}\n").as_bytes()).unwrap();
}

/// The URL of the database of the hubs of this folder; none: SQLite, in their data folder.
pub fn url(folder: &Path) -> Option<String> {
    if let Ok(url) = fs::read_to_string(folder.join(NOTE)) {
        return Some(url);
    }
    let variable = variable()?;
    let server =
        std::env::var(variable).unwrap_or_else(|_| panic!("{variable} isn't set: see tests/servers"));
    let url = pool::empty().unwrap_or_else(|| create(server));
    pool::taken(&url);
    note(folder, &url);
    Some(url)
}

/// Says which database the hubs of this folder use.
pub fn note(folder: &Path, url: &str) {
    fs::write(folder.join(NOTE), url).unwrap();
}

/// An empty database on this server; its URL.
pub fn create(server: String) -> String {
    let name = format!("it_{:016x}", fastrand::u64(..));
    let (place, _) = server.rsplit_once('/').unwrap();
    let url = format!("{place}/{name}");
    aside(async move {
        let server = Database::connect(server).await.unwrap();
        server.execute_unprepared(&format!("CREATE DATABASE {name}")).await.unwrap();
        server.close().await.unwrap();
    });
    url
}

/// Waits for it in a thread of its own: whoever asks may be inside a runtime, and not await.
fn aside<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(work)
    };
    std::thread::spawn(run).join().unwrap()
}

/// Makes a hub of this folder use its database.
pub fn settle(config: &mut HubConfig, folder: &Path) {
    if let Some(url) = url(folder) {
        config.store.url = Some(DatabaseUrl::parse(&url).unwrap());
        if server() == Some("zoned") {
            config.mysql.npm_time_zone = NpmTimeZone::Server;
        }
    }
}

/// Where the hubs of the data folder with this file keep their rows: on SQLite that file.
pub fn place(file: &Path) -> Place {
    match url(home(file)) {
        Some(url) => Place::Server(url.parse().unwrap()),
        None => Place::File(PathBuf::from(file)),
    }
}

/// That database as a store.
pub async fn store(file: &Path) -> Store {
    let npm_time_zone = match server() {
        Some("zoned") => store::NpmTimeZone::Server,
        _ => store::NpmTimeZone::Utc,
    };
    let config = StoreConfig { npm_time_zone, ..StoreConfig::new(place(file)) };
    Store::open(&config).await.unwrap()
}

/// A connection to it, as any other program has one.
pub async fn open(file: &Path) -> DatabaseConnection {
    let url = url(home(file)).unwrap_or_else(|| format!("sqlite://{}", file.display()));
    let mut options = ConnectOptions::new(url);
    options.max_connections(1).sqlx_logging(false);
    Database::connect(options).await.unwrap()
}

/// A statement with `?` for each value and `utc_timestamp()` for the present second, for the engine behind this connection.
pub fn statement(
    db: &impl ConnectionTrait,
    sql: impl AsRef<str>,
    values: impl IntoIterator<Item = Value>,
) -> Statement {
    let backend = db.get_database_backend();
    let now = match backend {
        DbBackend::Postgres => "date_trunc('second', statement_timestamp() AT TIME ZONE 'UTC')",
        DbBackend::Sqlite => "datetime('now')",
        _ => "utc_timestamp()",
    };
    let sql = sql.as_ref().replace("utc_timestamp()", now);
    let mut parts = sql.split('?');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for (at, part) in parts.enumerate() {
        if backend == DbBackend::Postgres {
            text.push_str(&format!("${}", at + 1));
        } else {
            text.push('?');
        }
        text.push_str(part);
    }
    Statement::from_sql_and_values(backend, text, values)
}

/// Runs a [`statement`]; how many rows it changed.
pub async fn run(db: &DatabaseConnection, sql: impl AsRef<str>) -> u64 {
    let sql = sql.as_ref();
    let done = db.execute_raw(statement(db, sql, [])).await;
    done.unwrap_or_else(|error| panic!("{sql}: {error}")).rows_affected()
}

/// A column of JSON as text.
pub fn text(db: &impl ConnectionTrait, column: &str) -> String {
    match db.get_database_backend() {
        DbBackend::Postgres => format!("CAST({column} AS text)"),
        DbBackend::MySql => format!("CAST({column} AS char)"),
        _ => column.to_owned(),
    }
}

/// What the columns that the npm stack knows hold of a moment, in milliseconds: on MySQL whole seconds.
pub fn held(ms: i64) -> i64 {
    if matches!(server(), Some("mysql" | "zoned")) { ms - ms.rem_euclid(1_000) } else { ms }
}

/// The folder of hubs whose data folder has this file.
fn home(file: &Path) -> &Path {
    file.parent().and_then(Path::parent).expect("a file in a data folder")
}
