//! What database it is.

use sea_orm::{ConnectionTrait, DbBackend, Statement};

use super::{
    Store, StoreError,
    engine::{Engine, number},
    sql::refused,
};

impl Store {
    /// `SQLite`, `PostgreSQL` or `MySQL`, as which MariaDB counts.
    #[must_use]
    pub fn engine_name(&self) -> &'static str {
        match self.writer.engine() {
            Engine::Sqlite => "SQLite",
            Engine::Postgres => "PostgreSQL",
            Engine::MySql => "MySQL",
        }
    }

    /// Whether it is a server's database, which others may use beside us and which may be away.
    #[must_use]
    pub fn is_on_server(&self) -> bool {
        !self.writer.engine().is_sqlite()
    }

    /// By how many seconds the zone of a MySQL server, in which npm hubs write some times, is ahead of UTC. 0 for the
    /// others, where no npm hub is.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn zone_offset(&self) -> Result<i64, StoreError> {
        if self.writer.engine() != Engine::MySql {
            return Ok(0);
        }
        // Words of MySQL's own begin with `@` too: this isn't put through ours.
        let sql = "SELECT timestampdiff(SECOND, utc_timestamp(), convert_tz(utc_timestamp(), '+00:00', @@global.time_zone))";
        let statement = Statement::from_string(DbBackend::MySql, sql);
        let read = async {
            let row = self.readers.query_one_raw(statement).await?;
            row.map_or(Ok(0), |row| number(&row, 0))
        };
        read.await.map_err(refused("say its time zone"))
    }
}
