//! Where reads go: to a pool of their own, or, in memory, to the writer's connection when it is their turn.

use std::sync::Arc;

use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, DbErr, ExecResult, QueryResult, Statement};
use tokio::sync::Mutex;

use super::{damage::Damage, sqlite::Writer};

/// What serves reads. Cheap to clone.
#[derive(Clone)]
pub(super) enum Readers {
    /// Connections that can't write, beside the writer's.
    Pool {
        /// All of them.
        pool: DatabaseConnection,
        /// Where they tell what they meet.
        damage: Damage,
    },
    /// The writer's connection: a database in memory has no other.
    Shared {
        /// Whose connection it is.
        writer: Arc<Writer>,
        /// One read at a time stands in the writer's line, so that a commit waits for two statements at most, however
        /// many read: the one that runs, and one before it in the line.
        line: Arc<Mutex<()>>,
    },
}

impl Readers {
    /// Reads through the writer: never inside one of its transactions, whose rows may be taken back.
    pub(super) fn shared(writer: Arc<Writer>) -> Self {
        Self::Shared { writer, line: Arc::default() }
    }

    /// Ends the pool; a shared connection is the writer's to end.
    pub(super) async fn close(&self) {
        if let Self::Pool { pool, .. } = self {
            // A failed close leaves nothing to do: the process gives the files back.
            let _ = pool.close_by_ref().await;
        }
    }
}

/// Runs one call on the connection that serves reads.
macro_rules! read {
    ($readers:expr, $connection:ident => $call:expr) => {
        match $readers {
            Readers::Pool { pool: $connection, damage } => damage.look($call.await),
            Readers::Shared { writer, line } => {
                let _place = line.lock().await;
                let turn = writer.turn().await;
                let $connection = turn.db();
                $call.await
            }
        }
    };
}

#[async_trait::async_trait]
impl ConnectionTrait for Readers {
    fn get_database_backend(&self) -> DbBackend {
        match self {
            Self::Pool { pool, .. } => pool.get_database_backend(),
            Self::Shared { .. } => DbBackend::Sqlite,
        }
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        read!(self, db => db.execute_raw(statement))
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        read!(self, db => db.execute_unprepared(sql))
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        read!(self, db => db.query_one_raw(statement))
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        read!(self, db => db.query_all_raw(statement))
    }
}
