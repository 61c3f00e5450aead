//! What database it is.

use super::{Store, engine::Engine};

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
}
