//! A database of a test's own, and waiting.

use std::{future::Future, io::Write, time::Duration};

use tokio::time::{Instant, sleep};

use crate::stack::database::Database;

/// How long any condition may take before the test fails. Generous: machines stall.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// An empty database on the server of `EVENTFLOW_TEST_MYSQL_URL`, or, if `EVENTFLOW_TEST_ENGINE` is `mysql_zoned`, of
/// `EVENTFLOW_TEST_MYSQL_ZONED_URL`, which isn't in UTC.
pub struct Scratch {
    server: Database,
    name: String,
    /// The server isn't in UTC.
    pub is_zoned: bool,
    pub url: String,
}

impl Scratch {
    /// None, and a line that says so, without a server.
    pub async fn new() -> Option<Self> {
        let is_zoned = std::env::var("EVENTFLOW_TEST_ENGINE").is_ok_and(|engine| engine == "mysql_zoned");
        let variable = if is_zoned { "EVENTFLOW_TEST_MYSQL_ZONED_URL" } else { "EVENTFLOW_TEST_MYSQL_URL" };
        let Ok(url) = std::env::var(variable) else {
            // Not by a macro of the test harness, which would hide it.
            let test = std::thread::current().name().unwrap_or_default().to_owned();
            let line = format!("{test} is SKIPPED: set {variable}, see tests/servers\n");
            std::io::stderr().write_all(line.as_bytes()).unwrap();
            return None;
        };
        let server = Database::at(&url);
        let name: String = (0..16).map(|_| fastrand::lowercase()).collect();
        let name = format!("eventflow_npm_{name}");
        server.run(&format!("create database {name}"), &[]).await;
        let (base, _) = url.rsplit_once('/').expect("the URL names a database");
        Some(Self { server, url: format!("{base}/{name}"), name, is_zoned })
    }

    pub async fn drop_database(self) {
        self.server.run(&format!("drop database {}", self.name), &[]).await;
        self.server.close().await;
    }
}

/// Looks at a condition until it holds.
pub async fn until<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let deadline = Instant::now() + PATIENCE;
    while !condition().await {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        // Not a guess at how long it takes: only a rest between two looks.
        sleep(Duration::from_millis(10)).await;
    }
}
