//! Databases that tests have done with are emptied and used again: to make all tables takes a server seconds.

use std::{cell::RefCell, sync::Mutex};

use sea_orm::{
    ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DbBackend, Statement, TransactionTrait,
};

use super::aside;

/// Those of tests that are over.
static FREE: Mutex<Vec<String>> = Mutex::new(Vec::new());

thread_local! {
    /// Those of the test that this thread runs: it has the thread to itself.
    static TAKEN: Taken = const { Taken(RefCell::new(Vec::new())) };
}

struct Taken(RefCell<Vec<String>>);

impl Drop for Taken {
    fn drop(&mut self) {
        // A test that failed may have left anything.
        if !std::thread::panicking() {
            FREE.lock().unwrap().append(&mut self.0.borrow_mut());
        }
    }
}

/// It is free when the test that runs in this thread is over.
pub(super) fn taken(url: &str) {
    TAKEN.with(|taken| taken.0.borrow_mut().push(url.to_owned()));
}

/// One that is free, without rows; none: there is none.
pub(super) fn empty() -> Option<String> {
    loop {
        let url = FREE.lock().unwrap().pop()?;
        let place = url.clone();
        if aside(async move { clear(&place).await }) {
            return Some(url);
        }
    }
}

/// False: somebody is still connected, such as a hub whose test didn't stop it.
async fn clear(url: &str) -> bool {
    let mut options = ConnectOptions::new(url);
    options.max_connections(1).sqlx_logging(false);
    let db = Database::connect(options).await.unwrap();
    let is_alone = is_alone(&db).await;
    if is_alone {
        empty_all(&db).await;
    }
    db.close().await.unwrap();
    is_alone
}

async fn is_alone(db: &DatabaseConnection) -> bool {
    let sql = match db.get_database_backend() {
        DbBackend::Postgres => "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()",
        _ => "SELECT count(*) FROM information_schema.processlist WHERE db = database()",
    };
    let row =
        db.query_one_raw(Statement::from_string(db.get_database_backend(), sql)).await.unwrap().unwrap();
    row.try_get_by_index::<i64>(0).unwrap() == 1
}

/// Takes all rows but those that say which tables there are.
async fn empty_all(db: &DatabaseConnection) {
    let backend = db.get_database_backend();
    let schema = if backend == DbBackend::Postgres { "current_schema()" } else { "database()" };
    let tables =
        format!("SELECT concat(table_name, '') FROM information_schema.tables WHERE table_schema = {schema}");
    let tables = db.query_all_raw(Statement::from_string(backend, tables)).await.unwrap();
    let mut tables: Vec<String> = tables.iter().map(|row| row.try_get_by_index(0).unwrap()).collect();
    tables.retain(|table| table != "v1_migration");
    // What hangs on events goes with them; hubs are named by what does.
    tables.sort_by_key(|table| (table != "event", table == "hub"));
    let transaction = db.begin().await.unwrap();
    for table in tables {
        transaction.execute_unprepared(&format!("DELETE FROM {table}")).await.unwrap();
    }
    transaction.commit().await.unwrap();
}
