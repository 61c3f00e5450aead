//! Opening SQLite: one writer, a pool of readers, and the settings that the promises rest on.

mod message;

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use sea_orm::{
    ConnectionTrait, DatabaseConnection, DbErr, RuntimeErr,
    sqlx::{
        ConnectOptions,
        sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
    },
};
use tokio::sync::{Mutex, MutexGuard, Semaphore};

use super::{
    Durability, Store, StoreConfig, StoreError,
    damage::Damage,
    engine::Ask,
    migration::{self, MigrationStatus},
    readers::Readers,
    sql::{Script, primary_code, refused},
    writer,
};

/// How long one statement waits for a lock that another program holds; tests shouldn't wait that long.
const BUSY_TIMEOUT: Duration = Duration::from_millis(if cfg!(test) { 100 } else { 500 });
/// How long a read waits for a free connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(30);
/// The log is copied back after so many pages: at 1,000 to 4,000 throughput is best.
const CHECKPOINT_PAGES: &str = "2000";
/// What the log file keeps on disk after a burst, in bytes.
const WAL_KEPT: &str = "67108864";
/// The writer's page cache in KiB, negative as SQLite wants it.
const WRITER_CACHE: &str = "-16384";

/// SQLite's result code for a file that is damaged.
const CORRUPT: i32 = 11;

/// Opens (or makes) the database and brings its tables up to date.
pub(super) async fn open(config: &StoreConfig, file: Option<&Path>) -> Result<Store, StoreError> {
    let options = match file {
        Some(path) => {
            make_file(path)?;
            SqliteConnectOptions::new().filename(path).journal_mode(SqliteJournalMode::Wal)
        }
        // Sorting must not go to a temporary file either.
        None => SqliteConnectOptions::new().in_memory(true).pragma("temp_store", "MEMORY"),
    };
    let synchronous = match config.durability {
        Durability::Full => SqliteSynchronous::Full,
        Durability::Relaxed => SqliteSynchronous::Normal,
    };
    let options = options
        .synchronous(synchronous)
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
        .statement_cache_capacity(128)
        .pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
        .pragma("journal_size_limit", WAL_KEPT)
        .disable_statement_logging();

    let connection = pool(1, options.clone().pragma("cache_size", WRITER_CACHE)).await;
    let mut writer = Writer::new(connection.map_err(|error| explain(error, file))?);
    let place = config.place.to_string();
    let migrated = match config.migrate {
        true => migration::run(&writer, &place).await,
        false => migration::demand(writer.turn().await.db().into(), &place).await,
    };
    migrated.map_err(|error| match error {
        // A damaged file may show itself only here.
        StoreError::Corrupt { source } => explain(source, file),
        error => error,
    })?;
    if let Some(bytes) = config.max_bytes {
        writer.limit(bytes).await?;
    }
    check(&writer, config.durability).await?;
    if let Some(path) = file {
        writer.remember(path);
    }

    let writer = Arc::new(writer);
    let readers = match file {
        Some(_) => Readers::Pool {
            pool: pool(config.readers.max(1), options.read_only(true))
                .await
                .map_err(|error| explain(error, file))?,
            damage: writer.damage.clone(),
        },
        // Each connection to memory would be a database of its own.
        None => Readers::shared(writer.clone()),
    };
    let replays = Arc::new(Semaphore::new((config.readers / 2).max(1) as usize));
    Ok(Store {
        writer: Arc::new(writer::Writer::Sqlite(writer)),
        readers,
        replays,
        renewed: Arc::default(),
        file: file.map(Into::into),
    })
}

/// How the tables of a database stand; nothing is made or changed. A hub may be at work on it.
pub(super) async fn status(file: &Path) -> Result<MigrationStatus, StoreError> {
    if !file.exists() {
        return Ok(migration::none_applied());
    }
    let options =
        SqliteConnectOptions::new().filename(file).create_if_missing(false).busy_timeout(BUSY_TIMEOUT);
    let connection = pool(1, options).await.map_err(|error| explain(error, Some(file)))?;
    let status = migration::status((&connection).into()).await;
    // A failed close leaves nothing to do.
    let _ = connection.close_by_ref().await;
    status
}

async fn pool(connections: u32, options: SqliteConnectOptions) -> Result<DatabaseConnection, DbErr> {
    let pool = SqlitePoolOptions::new()
        .max_connections(connections)
        .min_connections(1)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        .connect_with(options)
        .await
        .map_err(|error| DbErr::Conn(RuntimeErr::SqlxError(Arc::new(error))))?;
    Ok(pool.into())
}

/// The promise "acknowledged means synced" rests on this setting: read it back rather than believe it.
async fn check(writer: &Writer, durability: Durability) -> Result<(), StoreError> {
    let wanted = match durability {
        Durability::Full => 2,
        Durability::Relaxed => 1,
    };
    let found = writer.synchronous().await?;
    if found == wanted {
        return Ok(());
    }
    Err(StoreError::Damaged {
        what: format!("the setting synchronous = {found}"),
        reason: format!("{wanted} is needed, and SQLite didn't take it"),
    })
}

/// Makes the folder (0700) and the file (0600) if they aren't there. SQLite gives its side files the mode of
/// the database file.
fn make_file(path: &Path) -> Result<(), StoreError> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder).map_err(folder_error("make the folder", folder))?;
    }
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(folder_error("open the database file", path))?;
    Ok(())
}

fn folder_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    move |source| StoreError::Folder { action, path: path.to_owned(), source: Arc::new(source) }
}

/// What SQLite says when it opens a file, in terms of that file.
fn explain(error: DbErr, file: Option<&Path>) -> StoreError {
    const PERM: i32 = 3;
    const READONLY: i32 = 8;
    const CANTOPEN: i32 = 14;
    const NOTADB: i32 = 26;
    match (primary_code(&error), file) {
        (Some(PERM | READONLY | CANTOPEN), Some(path)) => StoreError::Folder {
            action: "open the database in",
            path: path.to_owned(),
            source: Arc::new(io::Error::other(error)),
        },
        (Some(CORRUPT), Some(path)) => StoreError::Damaged {
            what: format!("a damaged file, {}", path.display()),
            reason: format!("{error}: restore it from a backup, or name another data folder"),
        },
        (Some(NOTADB), Some(path)) => StoreError::Damaged {
            what: format!("no SQLite database in {}", path.display()),
            reason: format!("{error}: move that file away, or name another data folder"),
        },
        _ => refused("open")(error),
    }
}

/// The one connection that writes.
pub(super) struct Writer {
    /// Exactly one connection, never replaced.
    pool: DatabaseConnection,
    /// Whether a transaction is open that nobody ended, since its future was dropped.
    left_open: Mutex<bool>,
    /// The database's files as they were opened.
    files: Vec<Opened>,
    damage: Damage,
}

/// A file by its name and by what it was when it was opened.
struct Opened {
    path: PathBuf,
    identity: (u64, u64),
}

impl Opened {
    fn look(path: &Path) -> io::Result<(u64, u64)> {
        let file = fs::metadata(path)?;
        Ok((file.dev(), file.ino()))
    }
}

impl Writer {
    fn new(pool: DatabaseConnection) -> Self {
        Self { pool, left_open: Mutex::new(false), files: Vec::new(), damage: Damage::none() }
    }

    /// What is known of damage to the file.
    pub(super) fn damage(&self) -> &Damage {
        &self.damage
    }

    /// Keeps in mind which files these are: the database and its write-ahead log.
    fn remember(&mut self, path: &Path) {
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        for path in [path.to_owned(), log.into()] {
            if let Ok(identity) = Opened::look(&path) {
                self.files.push(Opened { path, identity });
            }
        }
    }

    /// SQLite goes on with files that were deleted or replaced under it, and commits to what nobody will find again;
    /// and on the sound pages of a damaged file. Such a commit must not be acknowledged.
    fn check_files(&self) -> Result<(), DbErr> {
        self.damage.known()?;
        let gone = |file: &&Opened| !Opened::look(&file.path).is_ok_and(|found| found == file.identity);
        match self.files.iter().find(gone) {
            None => Ok(()),
            Some(file) => Err(DbErr::Conn(RuntimeErr::Internal(format!(
                "{} was deleted or replaced while the hub runs: restore it and restart the hub",
                file.path.display()
            )))),
        }
    }

    /// Waits until no transaction is under way; none begins as long as the turn is held. First come, first served.
    pub(super) async fn turn(&self) -> Turn<'_> {
        let mut open = self.left_open.lock().await;
        if *open {
            self.roll_back().await;
            *open = false;
        }
        Turn { writer: self, open }
    }

    /// Waits for its turn and begins a transaction that may write.
    ///
    /// The statements are our own rather than sqlx's: SQLite rolls back by itself when the disk is full, which
    /// sqlx doesn't notice; its transactions would nest from then on.
    pub(super) async fn begin(&self) -> Result<Transaction<'_>, DbErr> {
        let Turn { mut open, .. } = self.turn().await;
        self.damage.known()?;
        *open = true;
        match self.pool.execute_unprepared("BEGIN IMMEDIATE").await {
            Ok(_) => Ok(Transaction { writer: self, open }),
            Err(error) => {
                *open = false;
                Err(error)
            }
        }
    }

    /// Waits for its turn and runs a script as one transaction, in one message.
    pub(super) async fn run(&self, script: Script) -> Result<(), DbErr> {
        let Turn { mut open, .. } = self.turn().await;
        self.damage.known()?;
        *open = true;
        let done = match script.message(true) {
            Some(message) => message::run(&self.pool, message).await,
            None => Ok(()),
        };
        if done.is_err() {
            self.roll_back().await;
        }
        *open = false;
        self.damage.look(done)?;
        self.check_files()
    }

    async fn roll_back(&self) {
        // The only failure is that SQLite has rolled back already.
        let _ = self.pool.execute_unprepared("ROLLBACK").await;
    }

    pub(super) async fn synchronous(&self) -> Result<i64, StoreError> {
        self.pragma("PRAGMA synchronous").await
    }

    /// Limits the file's size; what stands beyond it stays.
    async fn limit(&self, bytes: u64) -> Result<(), StoreError> {
        let page_size = self.pragma("PRAGMA page_size").await?.max(512).unsigned_abs();
        let pages = (bytes / page_size).clamp(1, 4_294_967_294);
        self.pragma(&format!("PRAGMA max_page_count = {pages}")).await?;
        Ok(())
    }

    async fn pragma(&self, sql: &str) -> Result<i64, StoreError> {
        let answer = async {
            match self.pool.row(sql, Vec::new()).await? {
                Some(row) => row.try_get_by_index(0),
                None => Err(DbErr::RecordNotFound(sql.to_owned())),
            }
        };
        answer.await.map_err(refused("say how it is set"))
    }

    pub(super) async fn close(&self) {
        let _turn = self.left_open.lock().await;
        // SQLite gives up its locks with the process anyway.
        let _ = self.pool.close_by_ref().await;
    }
}

/// The writer's connection between two transactions.
pub(super) struct Turn<'a> {
    writer: &'a Writer,
    open: MutexGuard<'a, bool>,
}

impl Turn<'_> {
    /// Where its statements go.
    pub(super) fn db(&self) -> &DatabaseConnection {
        &self.writer.pool
    }
}

/// A transaction of the writer. Dropped without an end it is rolled back before the next one begins.
pub(super) struct Transaction<'a> {
    writer: &'a Writer,
    open: MutexGuard<'a, bool>,
}

impl Transaction<'_> {
    /// Where its statements go.
    pub(super) fn db(&self) -> &DatabaseConnection {
        &self.writer.pool
    }

    pub(super) async fn commit(mut self) -> Result<(), DbErr> {
        let committed = self.writer.pool.execute_unprepared("COMMIT").await;
        if committed.is_err() {
            self.writer.roll_back().await;
        }
        *self.open = false;
        self.writer.damage.look(committed)?;
        self.writer.check_files()
    }

    /// Commits if the work is done, rolls back if it failed.
    pub(super) async fn end<T>(self, done: Result<T, DbErr>) -> Result<T, DbErr> {
        match done {
            Ok(value) => self.commit().await.map(|()| value),
            Err(error) => {
                let error = self.writer.damage.look(Err(error));
                self.roll_back().await;
                error
            }
        }
    }

    pub(super) async fn roll_back(mut self) {
        self.writer.roll_back().await;
        *self.open = false;
    }
}

/// Statements for tests that arrange what no API would.
#[cfg(test)]
impl Writer {
    pub(super) fn raw(&self) -> &DatabaseConnection {
        &self.pool
    }
}
