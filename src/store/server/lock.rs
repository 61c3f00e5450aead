//! The lock that everybody takes who changes certificates on MySQL or MariaDB, the npm stack too.
//!
//! npm takes it on every handshake, and all databases of the server share it: nothing may be done under it but to look at
//! rows and to write them. It belongs to a session, so it has a connection of its own for as long as it is held: whatever
//! happens to us, the server gives it back when that connection ends.

use sea_orm::{
    DbErr,
    sqlx::{self, ConnectOptions, Connection, MySqlConnection, mysql::MySqlConnectOptions},
};
use tokio::sync::{Mutex, MutexGuard};

use super::failed;

/// What npm calls it.
const NAME: &str = "eventflow:certificates";
/// How long others may have it.
const WAIT_SECONDS: u32 = 30;

/// Where the lock is taken.
pub(in super::super) struct CertificateLock {
    options: MySqlConnectOptions,
    /// One of this hub's at a time, so that it takes up one connection.
    turn: Mutex<()>,
}

/// The lock, until it is released or dropped.
pub(in super::super) struct Held<'a> {
    connection: MySqlConnection,
    _turn: MutexGuard<'a, ()>,
}

impl CertificateLock {
    pub(super) fn new(options: MySqlConnectOptions) -> Self {
        Self { options: options.disable_statement_logging(), turn: Mutex::default() }
    }

    /// Waits for it.
    pub(super) async fn get(&self) -> Result<Held<'_>, DbErr> {
        let turn = self.turn.lock().await;
        let mut connection = self.options.connect().await.map_err(failed)?;
        let got: Option<i64> = sqlx::query_scalar("SELECT GET_LOCK(?, ?)")
            .bind(NAME)
            .bind(WAIT_SECONDS)
            .fetch_one(&mut connection)
            .await
            .map_err(failed)?;
        if got != Some(1) {
            let text = format!(
                "the lock `{NAME}` was held by another program for {WAIT_SECONDS} s: an npm hub or spoke that hangs, if \
                 `SELECT IS_USED_LOCK('{NAME}')` goes on to name a connection"
            );
            return Err(DbErr::Custom(text));
        }
        Ok(Held { connection, _turn: turn })
    }
}

impl Held<'_> {
    /// Gives it back.
    pub(in super::super) async fn release(mut self) {
        let released = sqlx::query("DO RELEASE_LOCK(?)").bind(NAME).execute(&mut self.connection).await;
        if let Err(error) = released {
            tracing::debug!(%error, lock = NAME, "it goes with its connection");
        }
        // The server ends what we don't.
        let _ = self.connection.close().await;
    }
}
