//! Which database the other modules run on. `tests/engines` reads it from here.

use std::io::Write;

use sea_orm::{ConnectionTrait, DbBackend};

use crate::support::{TestHub, engine};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_one_of_these_tests_says_what_it_is() {
    let hub = TestHub::start().await;
    let db = engine::open(&hub.database()).await;
    let (name, sql) = match db.get_database_backend() {
        DbBackend::Sqlite => ("SQLite", "SELECT sqlite_version()"),
        DbBackend::Postgres => ("PostgreSQL", "SHOW server_version"),
        _ => ("MySQL", "SELECT version()"),
    };
    let row = db.query_one_raw(engine::statement(&db, sql, [])).await.unwrap().unwrap();
    let said: String = row.try_get_by_index(0).unwrap();
    let version = said.split(['-', ' ']).next().unwrap();
    let name = if said.contains("MariaDB") { "MariaDB" } else { name };
    assert!(version.split('.').all(|part| part.parse::<u32>().is_ok()), "{said}");
    // Not by a macro of the test harness, which would hide it.
    std::io::stderr().write_all(format!("the engine is {name} {version}\n").as_bytes()).unwrap();
    db.close().await.unwrap();
    hub.stop().await;
}
