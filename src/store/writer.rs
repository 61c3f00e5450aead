//! Who writes: SQLite's one connection, or a few of a server's.

use std::sync::Arc;

use sea_orm::{DatabaseExecutor, DbErr};

use super::{StoreError, damage::Damage, engine::Engine, server, sql::Script, sqlite};
use crate::event::Uid;

/// Where the statements of a transaction go.
pub(super) type Db<'a> = DatabaseExecutor<'a>;

/// Begins transactions that write.
pub(super) enum Writer {
    /// One transaction at a time.
    Sqlite(Arc<sqlite::Writer>),
    /// Several at a time; the server keeps them apart.
    Server(Box<server::Writer>),
}

impl Writer {
    /// Which engine it is.
    pub(super) fn engine(&self) -> Engine {
        match self {
            Self::Sqlite(_) => Engine::Sqlite,
            Self::Server(writer) => writer.engine(),
        }
    }

    /// Begins a transaction. On a server it is fenced once the hub has [registered](Self::fence): of a hub whose place
    /// another one has taken none is committed.
    pub(super) async fn begin(&self) -> Result<Transaction<'_>, DbErr> {
        match self {
            Self::Sqlite(writer) => Ok(Transaction::Sqlite(writer.begin().await?)),
            Self::Server(writer) => Ok(Transaction::Server(writer.begin().await?)),
        }
    }

    /// The same for the journal, which has one at a time: if the connection is lost in its commit, whether it was one is
    /// found out.
    pub(super) async fn begin_marked(&self) -> Result<Transaction<'_>, DbErr> {
        match self {
            Self::Sqlite(writer) => Ok(Transaction::Sqlite(writer.begin().await?)),
            Self::Server(writer) => Ok(Transaction::Server(writer.begin_marked().await?)),
        }
    }

    /// Begins one that isn't fenced: it raises the hub's epoch, or isn't a hub's at all.
    pub(super) async fn begin_unfenced(&self) -> Result<Transaction<'_>, DbErr> {
        match self {
            Self::Sqlite(writer) => Ok(Transaction::Sqlite(writer.begin().await?)),
            Self::Server(writer) => Ok(Transaction::Server(writer.begin_unfenced().await?)),
        }
    }

    /// From now on transactions are those of this hub in this epoch.
    pub(super) fn fence(&self, hub: &Uid, epoch: i64) {
        if let Self::Server(writer) = self {
            writer.fence(hub, epoch);
        }
    }

    /// Runs a script of the journal as one transaction.
    pub(super) async fn run(&self, script: Script) -> Result<(), DbErr> {
        match self {
            Self::Sqlite(writer) => writer.run(script).await,
            Self::Server(writer) => {
                let transaction = writer.begin_marked().await?;
                match script.run(transaction.db()).await {
                    Ok(()) => transaction.commit().await,
                    Err(error) => {
                        transaction.roll_back().await;
                        Err(error)
                    }
                }
            }
        }
    }

    /// What is known of damage to the file: of a server's files the server knows.
    pub(super) fn damage(&self) -> &Damage {
        match self {
            Self::Sqlite(writer) => writer.damage(),
            Self::Server(writer) => writer.damage(),
        }
    }

    /// How an acknowledged write is kept, in SQLite's numbers: 2 is synced before, 1 after.
    pub(super) async fn synchronous(&self) -> Result<i64, StoreError> {
        match self {
            Self::Sqlite(writer) => writer.synchronous().await,
            Self::Server(writer) => writer.synchronous().await,
        }
    }

    /// The lock that the npm stack takes too where it has one: under it certificates are changed, and nothing else is done.
    pub(super) async fn certificates(&self) -> Result<CertificateLock<'_>, DbErr> {
        match self {
            Self::Sqlite(_) => Ok(CertificateLock(None)),
            Self::Server(writer) => writer.certificates().await.map(CertificateLock),
        }
    }

    /// Bytes that can be written as far as limits of ours go.
    pub(super) async fn room(&self) -> Result<u64, StoreError> {
        match self {
            Self::Sqlite(writer) => writer.room().await,
            Self::Server(_) => Ok(u64::MAX),
        }
    }

    /// Ends its connections.
    pub(super) async fn close(&self) {
        match self {
            Self::Sqlite(writer) => writer.close().await,
            Self::Server(writer) => writer.close().await,
        }
    }
}

/// Nobody else of this server changes certificates, until it is released or dropped.
pub(super) struct CertificateLock<'a>(Option<server::Held<'a>>);

impl CertificateLock<'_> {
    /// Gives it back, to be called after the transaction's end.
    pub(super) async fn release(self) {
        if let Some(held) = self.0 {
            held.release().await;
        }
    }
}

/// A transaction. Dropped without an end it is rolled back.
pub(super) enum Transaction<'a> {
    /// Of SQLite.
    Sqlite(sqlite::Transaction<'a>),
    /// Of a server.
    Server(server::Transaction<'a>),
}

impl Transaction<'_> {
    /// Where its statements go.
    pub(super) fn db(&self) -> Db<'_> {
        match self {
            Self::Sqlite(transaction) => Db::Connection(transaction.db()),
            Self::Server(transaction) => Db::Transaction(transaction.db()),
        }
    }

    /// Commits it.
    pub(super) async fn commit(self) -> Result<(), DbErr> {
        match self {
            Self::Sqlite(transaction) => transaction.commit().await,
            Self::Server(transaction) => transaction.commit().await,
        }
    }

    /// Commits if the work is done, rolls back if it failed.
    pub(super) async fn end<T>(self, done: Result<T, DbErr>) -> Result<T, DbErr> {
        match self {
            Self::Sqlite(transaction) => transaction.end(done).await,
            Self::Server(transaction) => match done {
                Ok(value) => transaction.commit().await.map(|()| value),
                Err(error) => {
                    transaction.roll_back().await;
                    Err(error)
                }
            },
        }
    }

    /// Takes it back.
    pub(super) async fn roll_back(self) {
        match self {
            Self::Sqlite(transaction) => transaction.roll_back().await,
            Self::Server(transaction) => transaction.roll_back().await,
        }
    }
}

/// Statements for tests that arrange what no API would.
#[cfg(test)]
impl Writer {
    pub(super) fn raw(&self) -> &sea_orm::DatabaseConnection {
        match self {
            Self::Sqlite(writer) => writer.raw(),
            Self::Server(writer) => writer.raw(),
        }
    }
}
