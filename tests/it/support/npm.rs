//! An npm peer: raw records on a link, and its own SQL on the hub's database file, as npm peers have it on a server.

use std::time::Duration;

use sea_orm::{ConnectionTrait, DatabaseConnection, TryGetable, Value};

use super::{TestHub, engine, until};

/// npm's own statements.
pub struct Npm {
    db: DatabaseConnection,
}

impl Npm {
    pub async fn of(hub: &TestHub) -> Self {
        Self { db: engine::open(&hub.database()).await }
    }

    /// Runs a statement; how many rows it changed. Two programs write to the file: the lock is waited for.
    pub async fn run(&self, sql: &str, values: &[&str]) -> u64 {
        let values: Vec<Value> = values.iter().map(|value| (*value).into()).collect();
        let mut tries = 0;
        loop {
            let statement = engine::statement(&self.db, sql, values.clone());
            match self.db.execute_raw(statement).await {
                Ok(done) => return done.rows_affected(),
                Err(error) if error.to_string().contains("locked") && tries < 100 => tries += 1,
                Err(error) => panic!("{sql}: {error}"),
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// One value of one row.
    pub async fn get<T: TryGetable>(&self, sql: &str, values: &[&str]) -> Option<T> {
        let values = values.iter().map(|value| (*value).into());
        let statement = engine::statement(&self.db, sql, values);
        let row = self.db.query_one_raw(statement).await.unwrap()?;
        row.try_get_by_index::<Option<T>>(0).unwrap()
    }

    /// Inserts an event as an npm spoke does, without publishing it.
    pub async fn insert(&self, id: &str, domain: &str, name: &str, pid: &str) {
        let sql = "insert into event (id, domain, rid, pid, name, data) values (?, ?, null, ?, ?, '{\"total\":12}')";
        assert_eq!(self.run(sql, &[id, domain, pid, name]).await, 1);
    }

    /// Inserts an event and its row in `event_published`: the hub has yet to hear of it.
    pub async fn publish(&self, id: &str, domain: &str, name: &str, pid: &str) {
        self.insert(id, domain, name, pid).await;
        let sql = "insert into event_published (event_id, publisher) values (?, 'NPM-1.EVENTFLOW-SPOKE')";
        assert_eq!(self.run(sql, &[id]).await, 1);
    }

    /// Claims as an npm spoke does. True: it has won.
    pub async fn claim(&self, id: &str, consumer: &str) -> bool {
        let sql = "update event_published set consumed_spoke = utc_timestamp(), consumer = ? \
                   where event_id = ? and consumed_spoke is null";
        self.run(sql, &[consumer, id]).await == 1
    }

    /// Records an outcome as an npm spoke does: `success` or `failed`.
    pub async fn end(&self, id: &str, outcome: &str) {
        let sql = format!("update event_published set {outcome} = utc_timestamp() where event_id = ?");
        assert_eq!(self.run(&sql, &[id]).await, 1);
    }

    /// Who has claimed the event.
    pub async fn consumer(&self, id: &str) -> Option<String> {
        self.get("select consumer from event_published where event_id = ?", &[id]).await
    }

    /// Until this many rows fit the condition on `event_published`.
    pub async fn until_rows(&self, condition: &str, count: i64) {
        let sql = format!("select count(*) from event_published where {condition}");
        until(condition, || async { self.get::<i64>(&sql, &[]).await == Some(count) }).await;
    }
}

/// Until the registry has taken so many messages of this name, since npm knows no answers.
pub async fn taken(hub: &TestHub, message: &str, count: u64) {
    until(message, || async {
        hub.handle.metrics().actors["registry"].messages.get(message) == Some(&count)
    })
    .await;
}

/// Until so many records were ignored.
pub async fn ignored(hub: &TestHub, count: u64) {
    until("records are ignored", || async { hub.handle.metrics().hub.npm_ignored == count }).await;
}
