//! PostgreSQL, MySQL and MariaDB: a few connections that write, more that read, and what a lost connection means.
//!
//! Each transaction of a hub begins with an update of the hub's own row of `v1_hub_epoch`, which does two things. It is a
//! *fence*: the row is hit only in the hub's own epoch, which whoever takes the hub's place raises, and that one waits
//! until a transaction under way has come to its end. And, if it is the journal's, it is a *mark*: it leaves a number there
//! that no other transaction has, until the journal's next. If the connection is lost in a commit, a look at the row tells whether it was one.

mod lock;
mod url;
mod zone;

use std::{
    sync::{Arc, RwLock},
    time::Duration,
};

use sea_orm::{
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbErr, RuntimeErr, TransactionTrait,
    sqlx::{
        self, ConnectOptions, Executor,
        mysql::{MySqlConnectOptions, MySqlPoolOptions},
        postgres::{PgConnectOptions, PgPoolOptions},
    },
};
use tokio::sync::Semaphore;

use self::lock::CertificateLock;
pub(super) use self::lock::Held;
pub use self::url::{ServerUrl, UrlError};
use super::{
    NpmTimeZone, Store, StoreConfig, StoreError,
    damage::Damage,
    engine::{Ask, Engine, number},
    migration::{self, MigrationStatus},
    readers::Readers,
    sql::{Class, refused},
    writer,
};
use crate::event::Uid;

/// How many connections write at least: the journal's, and one for what isn't its business, such as certificates.
const WRITERS: u32 = 2;
/// How long a statement waits for a free connection, or for one to be made.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a statement of ours may wait for a lock of somebody else.
const POSTGRES_LOCK_TIMEOUT: &str = "10s";
const MYSQL_LOCK_TIMEOUT: &str = "SET SESSION innodb_lock_wait_timeout = 10";
/// How long a transaction of ours may do nothing before the server ends it: what a hub that stands still has locked would keep
/// others from going on with its work.
const POSTGRES_IDLE_TIMEOUT: &str = "10s";
/// MariaDB's; MySQL has no such limit.
const MARIADB_IDLE_TIMEOUT: &str = "SET SESSION idle_transaction_timeout = 10";
/// The pause before the next look at a server that is away, at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Opens the database of a server and brings its tables up to date.
pub(super) async fn open(config: &StoreConfig, url: &ServerUrl) -> Result<Store, StoreError> {
    let zone = config.npm_time_zone;
    let first = pool(url, 1, zone).await.map_err(|error| explain(error, url))?;
    if url.is_mysql() {
        zone::check(&first, url, zone).await?;
    }
    match config.migrate {
        true => migration::run_on_server(&first, url).await?,
        false => migration::demand((&first).into(), &url.to_string()).await?,
    }
    let writer = pool(url, config.writers.max(WRITERS), zone).await.map_err(|error| explain(error, url))?;
    let readers = pool(url, config.readers.max(1), zone).await.map_err(|error| explain(error, url))?;
    let certificates = match url.engine() {
        Engine::MySql => {
            Some(CertificateLock::new(url.mysql().map_err(failed).map_err(|error| explain(error, url))?))
        }
        _ => None,
    };
    let writer = Writer {
        pool: writer,
        engine: url.engine(),
        fence: RwLock::default(),
        certificates,
        damage: Damage::none(),
    };
    let damage = writer.damage.clone();
    Ok(Store {
        writer: Arc::new(writer::Writer::Server(Box::new(writer))),
        readers: Readers::Pool { pool: readers, damage },
        replays: Arc::new(Semaphore::new((config.readers / 2).max(1) as usize)),
        renewed: Arc::default(),
        file: None,
    })
}

/// How the tables of a database stand; nothing is made or changed.
pub(super) async fn status(url: &ServerUrl) -> Result<MigrationStatus, StoreError> {
    let connection = pool(url, 1, NpmTimeZone::Utc).await.map_err(|error| explain(error, url))?;
    let status = migration::status((&connection).into()).await;
    // The server ends what we don't.
    let _ = connection.close_by_ref().await;
    status
}

/// Connections to the server, all of them with our settings.
async fn pool(url: &ServerUrl, connections: u32, zone: NpmTimeZone) -> Result<DatabaseConnection, DbErr> {
    match url.engine() {
        Engine::MySql => {
            let options: MySqlConnectOptions = zone::set(url.mysql().map_err(failed)?, zone);
            let pool = MySqlPoolOptions::new()
                .max_connections(connections)
                .min_connections(1)
                .acquire_timeout(ACQUIRE_TIMEOUT)
                .after_connect(|connection, _| {
                    Box::pin(async move {
                        connection.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").await?;
                        connection.execute(MYSQL_LOCK_TIMEOUT).await?;
                        match connection.execute(MARIADB_IDLE_TIMEOUT).await {
                            // MySQL says that it knows no such variable.
                            Ok(_) | Err(sqlx::Error::Database(_)) => Ok(()),
                            Err(error) => Err(error),
                        }
                    })
                })
                .connect_with(options.disable_statement_logging())
                .await
                .map_err(failed)?;
            Ok(pool.into())
        }
        _ => {
            let options: PgConnectOptions = url.postgres().map_err(failed)?;
            let options = options.application_name("eventflow").options([
                ("lock_timeout", POSTGRES_LOCK_TIMEOUT),
                ("idle_in_transaction_session_timeout", POSTGRES_IDLE_TIMEOUT),
                ("timezone", "UTC"),
            ]);
            let pool = PgPoolOptions::new()
                .max_connections(connections)
                .min_connections(1)
                .acquire_timeout(ACQUIRE_TIMEOUT)
                .connect_with(options.disable_statement_logging())
                .await
                .map_err(failed)?;
            Ok(pool.into())
        }
    }
}

fn failed(error: sqlx::Error) -> DbErr {
    DbErr::Conn(RuntimeErr::SqlxError(Arc::new(error)))
}

/// What a server says when it is first asked, in terms of its address.
fn explain(error: DbErr, url: &ServerUrl) -> StoreError {
    StoreError::Server { place: url.to_string(), source: error }
}

/// The connections that write.
pub(super) struct Writer {
    pool: DatabaseConnection,
    engine: Engine,
    fence: RwLock<Option<Fence>>,
    certificates: Option<CertificateLock>,
    damage: Damage,
}

/// Which hub writes.
#[derive(Clone)]
struct Fence {
    hub: Uid,
    epoch: i64,
}

impl Writer {
    pub(super) fn engine(&self) -> Engine {
        self.engine
    }

    pub(super) fn damage(&self) -> &Damage {
        &self.damage
    }

    pub(super) fn fence(&self, hub: &Uid, epoch: i64) {
        let fence = Fence { hub: hub.clone(), epoch };
        *self.fence.write().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(fence);
    }

    /// The lock under which certificates are changed; none where there is none.
    pub(super) async fn certificates(&self) -> Result<Option<Held<'_>>, DbErr> {
        match &self.certificates {
            Some(lock) => lock.get().await.map(Some),
            None => Ok(None),
        }
    }

    /// Begins a transaction within the fence, without a mark: one that somebody tries again if its end isn't known.
    pub(super) async fn begin(&self) -> Result<Transaction<'_>, DbErr> {
        self.begin_with(None).await
    }

    /// The same with a mark. There must be one at a time: the next would take the mark away from the one before.
    pub(super) async fn begin_marked(&self) -> Result<Transaction<'_>, DbErr> {
        self.begin_with(Some(i64::from_ne_bytes(fastrand::u64(..).to_ne_bytes()))).await
    }

    async fn begin_with(&self, mark: Option<i64>) -> Result<Transaction<'_>, DbErr> {
        let fence = self.fence.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        let Some(Fence { hub, epoch }) = fence else { return self.begin_unfenced().await };
        let transaction = self.start().await?;
        let sql = "UPDATE v1_hub_epoch SET mark = coalesce(?, mark) WHERE hub_id = ? AND epoch = ?";
        let hit = transaction.run(sql, vec![mark.into(), hub.as_str().into(), epoch.into()]).await?;
        if hit == 0 {
            // A failed end leaves nothing to do: the server rolls back with the connection.
            let _ = transaction.rollback().await;
            return Err(fenced());
        }
        Ok(Transaction { writer: self, transaction, mark: mark.map(|mark| (hub, mark)) })
    }

    pub(super) async fn begin_unfenced(&self) -> Result<Transaction<'_>, DbErr> {
        Ok(Transaction { writer: self, transaction: self.start().await?, mark: None })
    }

    async fn start(&self) -> Result<DatabaseTransaction, DbErr> {
        // READ COMMITTED, which is PostgreSQL's default and stands in MySQL's sessions.
        self.pool.begin().await
    }

    /// Whether the transaction that left this mark was committed. It waits until the server says so, however long that
    /// takes: what was committed and isn't known as such would be served by nobody.
    async fn is_committed(&self, hub: &Uid, mark: i64, lost: &DbErr) -> bool {
        let mut pause = Duration::from_millis(50);
        loop {
            tracing::warn!(error = %lost, "the connection was lost in a commit: asking the database whether it was one");
            match self.look(hub, mark).await {
                Ok(committed) => return committed,
                Err(error) => tracing::warn!(%error, "the database doesn't answer yet"),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Locks the row: as long as the lost transaction isn't over the server makes us wait.
    async fn look(&self, hub: &Uid, mark: i64) -> Result<bool, DbErr> {
        let transaction = self.start().await?;
        let sql = "SELECT mark FROM v1_hub_epoch WHERE hub_id = ? @locked";
        let row = transaction.row(sql, vec![hub.as_str().into()]).await?;
        let found = row.map(|row| row.try_get_by_index::<Option<i64>>(0)).transpose()?.flatten();
        transaction.rollback().await?;
        Ok(found == Some(mark))
    }

    /// How the server keeps what it acknowledges.
    pub(super) async fn synchronous(&self) -> Result<i64, StoreError> {
        let sql = match self.engine {
            Engine::MySql => "SELECT CASE WHEN @@innodb_flush_log_at_trx_commit = 1 THEN 2 ELSE 1 END",
            _ => {
                "SELECT CASE WHEN current_setting('fsync') = 'on' AND current_setting('synchronous_commit') <> 'off' \
                 THEN 2 ELSE 1 END"
            }
        };
        // These words aren't ours: MySQL's variables begin with `@` too.
        let read = async {
            let row =
                self.pool.query_one_raw(sea_orm::Statement::from_string(self.engine.into(), sql)).await?;
            row.map_or(Ok(1), |row| number(&row, 0))
        };
        read.await.map_err(refused("say how it is set"))
    }

    pub(super) async fn close(&self) {
        // The server ends what we don't.
        let _ = self.pool.close_by_ref().await;
    }
}

/// A transaction of a server.
pub(super) struct Transaction<'a> {
    writer: &'a Writer,
    transaction: DatabaseTransaction,
    mark: Option<(Uid, i64)>,
}

impl Transaction<'_> {
    pub(super) fn db(&self) -> &DatabaseTransaction {
        &self.transaction
    }

    pub(super) async fn commit(self) -> Result<(), DbErr> {
        let Self { writer, transaction, mark } = self;
        let Err(error) = transaction.commit().await else { return Ok(()) };
        match mark {
            Some((hub, mark)) if Class::of(&error) == Class::Unavailable => {
                if writer.is_committed(&hub, mark, &error).await { Ok(()) } else { Err(error) }
            }
            _ => Err(error),
        }
    }

    pub(super) async fn roll_back(self) {
        // A lost connection has rolled back already.
        let _ = self.transaction.rollback().await;
    }
}

/// What it means that another hub has taken this one's place.
const FENCED: &str = "this hub's epoch is over: another hub has taken its place";

fn fenced() -> DbErr {
    DbErr::Custom(FENCED.to_owned())
}

/// Whether it means that.
pub(super) fn is_fenced(error: &DbErr) -> bool {
    matches!(error, DbErr::Custom(text) if text == FENCED)
}

#[cfg(test)]
impl Writer {
    pub(super) fn raw(&self) -> &DatabaseConnection {
        &self.pool
    }
}
