//! Which database the hubs of these tests use: `EVENTFLOW_TEST_ENGINE` is `sqlite`, which it is if it isn't set, `postgres`,
//! `mysql`, or `mysql_zoned`, a server that isn't in UTC. A server is the one of `EVENTFLOW_TEST_POSTGRES_URL`, …, which
//! `tests/servers` starts; the hubs of one folder have a database of their own there.

use std::{
    fs,
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
        eprintln!("skipped: {why}");
    }
    skipped
}

/// The URL of the database of the hubs of this folder; none: SQLite, in their data folder.
pub fn url(folder: &Path) -> Option<String> {
    if let Ok(url) = fs::read_to_string(folder.join(NOTE)) {
        return Some(url);
    }
    let variable = variable()?;
    let server =
        std::env::var(variable).unwrap_or_else(|_| panic!("{variable} isn't set: see tests/servers"));
    let url = create(server);
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
    // In a thread of its own: whoever asks may be inside a runtime, and not await.
    let make = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = Database::connect(server).await.unwrap();
            server.execute_unprepared(&format!("CREATE DATABASE {name}")).await.unwrap();
            server.close().await.unwrap();
        });
    };
    std::thread::spawn(make).join().unwrap();
    url
}

/// Makes a hub of this folder use its database.
pub fn settle(config: &mut HubConfig, folder: &Path) {
    if let Some(url) = url(folder) {
        config.store.url = Some(DatabaseUrl::parse(&url).unwrap());
        config.mysql.npm_time_zone = NpmTimeZone::Server;
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
    let config = StoreConfig { npm_time_zone: store::NpmTimeZone::Server, ..StoreConfig::new(place(file)) };
    Store::open(&config).await.unwrap()
}

/// A connection to it, as any other program has one.
pub async fn open(file: &Path) -> DatabaseConnection {
    let url = url(home(file)).unwrap_or_else(|| format!("sqlite://{}", file.display()));
    let mut options = ConnectOptions::new(url);
    options.max_connections(1).sqlx_logging(false);
    Database::connect(options).await.unwrap()
}

/// A statement with `?` for each value, for the engine behind this connection.
pub fn statement(
    db: &impl ConnectionTrait,
    sql: impl AsRef<str>,
    values: impl IntoIterator<Item = Value>,
) -> Statement {
    let backend = db.get_database_backend();
    let mut parts = sql.as_ref().split('?');
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

/// The folder of hubs whose data folder has this file.
fn home(file: &Path) -> &Path {
    file.parent().and_then(Path::parent).expect("a file in a data folder")
}
