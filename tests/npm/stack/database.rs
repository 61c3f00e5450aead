//! The statements of the npm stack, and a few questions that tests ask.

use sea_orm::sqlx::{
    self, AssertSqlSafe, Connection, Decode, MySql, MySqlConnection, MySqlPool, Row, Type,
    mysql::{MySqlConnectOptions, MySqlPoolOptions, MySqlRow},
};

use super::{id, schema};

/// An event as a handler gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub id: String,
    pub domain: String,
    pub pid: String,
    pub name: String,
    pub data: String,
}

/// A party's connections to the database. Cheap to clone.
#[derive(Clone)]
pub struct Database {
    pool: MySqlPool,
    options: MySqlConnectOptions,
}

impl Database {
    /// As npm's driver connects: whatever the server has for zone and mode.
    pub fn at(url: &str) -> Self {
        let options: MySqlConnectOptions = url.parse().unwrap();
        let options = options.timezone(None).pipes_as_concat(false).no_engine_substitution(false);
        let pool = MySqlPoolOptions::new().max_connections(4).connect_lazy_with(options.clone());
        Self { pool, options }
    }

    /// A connection that isn't shared, for locks.
    pub async fn own_connection(&self) -> MySqlConnection {
        MySqlConnection::connect_with(&self.options).await.unwrap()
    }

    /// Creates what is missing.
    pub async fn create_tables(&self) {
        for table in schema::TABLES {
            sqlx::raw_sql(*table).execute(&self.pool).await.unwrap();
        }
    }

    /// Runs what a dump says.
    pub async fn restore(&self, dump: &str) {
        let mut connection = self.own_connection().await;
        sqlx::raw_sql(AssertSqlSafe(dump)).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }

    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// Runs a statement; how many rows it hit.
    pub async fn run(&self, sql: &str, values: &[&str]) -> u64 {
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for value in values {
            query = query.bind(*value);
        }
        let done = query.execute(&self.pool).await;
        done.unwrap_or_else(|error| panic!("{sql} {values:?}: {error}")).rows_affected()
    }

    pub async fn rows(&self, sql: &str, values: &[&str]) -> Vec<MySqlRow> {
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for value in values {
            query = query.bind(*value);
        }
        query.fetch_all(&self.pool).await.unwrap_or_else(|error| panic!("{sql} {values:?}: {error}"))
    }

    /// The first column of the first row; none: no row, or null.
    pub async fn get<T>(&self, sql: &str, values: &[&str]) -> Option<T>
    where
        T: for<'r> Decode<'r, MySql> + Type<MySql>,
    {
        self.rows(sql, values).await.first().and_then(|row| row.get::<Option<T>, _>(0))
    }

    /// How many rows of `event_published` fit a condition.
    pub async fn published_where(&self, condition: &str) -> i64 {
        self.get(&format!("select count(*) from event_published where {condition}"), &[]).await.unwrap()
    }

    /// Persists an event; its id.
    pub async fn persist(&self, event: (&str, &str, &str), data: &str) -> String {
        let (domain, name, pid) = event;
        let id = id::event();
        let sql = "insert into event (id, domain, pid, name, data) values (?, ?, ?, ?, ?)";
        self.run(sql, &[&id, domain, pid, name, data]).await;
        id
    }

    pub async fn persist_published(&self, id: &str, publisher: &str) {
        self.run("insert into event_published (event_id, publisher) values (?, ?)", &[id, publisher]).await;
    }

    /// `scheduled`: UTC, whole seconds.
    pub async fn persist_scheduled(&self, id: &str, scheduled: &str) {
        self.run("insert into event_scheduled (event_id, scheduled) values (?, ?)", &[id, scheduled]).await;
    }

    pub async fn read_event(&self, id: &str) -> Option<Event> {
        let sql = "select id, domain, pid, name, cast(data as char) from event where id = ?";
        let rows = self.rows(sql, &[id]).await;
        rows.first().map(|row| Event {
            id: row.get(0),
            domain: row.get(1),
            pid: row.get(2),
            name: row.get(3),
            data: row.get(4),
        })
    }

    /// A hub's claim. True: it has won, and broadcasts.
    pub async fn claim_for_hub(&self, event: &str, hub: &str) -> bool {
        let sql = "update event_published set consumed_hub = utc_timestamp(), hub = ? \
                   where event_id = ? and consumed_hub is null";
        self.run(sql, &[hub, event]).await == 1
    }

    /// A spoke's claim. True: it has won, and runs its consumer.
    pub async fn claim_for_spoke(&self, event: &str, spoke: &str) -> bool {
        let sql = "update event_published set consumed_spoke = utc_timestamp(), consumer = ? \
                   where event_id = ? and consumed_spoke is null";
        self.run(sql, &[spoke, event]).await == 1
    }

    pub async fn set_success(&self, event: &str) {
        self.run("update event_published set success = utc_timestamp() where event_id = ?", &[event]).await;
    }

    pub async fn set_failed(&self, event: &str) {
        self.run("update event_published set failed = utc_timestamp() where event_id = ?", &[event]).await;
    }

    /// Hubs that haven't quit: id, external ip, external port.
    pub async fn hubs_online(&self) -> Vec<(String, String, u16)> {
        let sql = "select id, external_ip, external_port from hub where quit is null";
        self.rows(sql, &[]).await.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect()
    }

    pub async fn persist_hub(&self, id: &str, ip: &str, port: u16) {
        let sql = "insert into hub (id, external_ip, external_port, internal_ip, internal_port) values (?, ?, ?, ?, ?)";
        let port = port.to_string();
        self.run(sql, &[id, ip, &port, ip, &port]).await;
    }

    pub async fn set_hub_quit(&self, id: &str) {
        self.run("update hub set quit = utc_timestamp() where id = ?", &[id]).await;
    }

    pub async fn log(&self, agent: &str, message: &str) {
        self.run("insert into log (agent, message, error) values (?, ?, '{}')", &[agent, message]).await;
    }
}
