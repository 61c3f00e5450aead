//! A copy of the whole database at one moment, made while the hub works.

use std::{
    fs::OpenOptions,
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use sea_orm::{
    DbErr, RuntimeErr,
    sqlx::{self, ConnectOptions, Connection, SqliteConnection, sqlite::SqliteConnectOptions},
};

use super::{
    Store, StoreError,
    engine::Ask,
    sql::{refused, unsigned},
};

/// How often SQLite looks whether somebody still waits for the copy, in steps of its machine: about every
/// millisecond.
const STEPS: i32 = 10_000;

impl Store {
    /// What the database holds in bytes; a copy takes no more. None in memory: there is no file to copy.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn bytes(&self) -> Result<Option<u64>, StoreError> {
        if self.file.is_none() {
            return Ok(None);
        }
        let sql = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()";
        let row = self.readers.row(sql, Vec::new()).await;
        let bytes = row.and_then(|row| row.map(|row| row.try_get_by_index(0)).transpose());
        bytes.map(|bytes| bytes.map(unsigned)).map_err(refused("say how large it is"))
    }

    /// Copies all that is committed into a new file at `to`, readable for this user alone, and checks that file. Others read and write meanwhile:
    /// the copy is made from one moment, by a connection of its own. Until it is done the write-ahead log only grows.
    /// It ends early, with what it wrote left behind, if this future is dropped.
    ///
    /// # Errors
    /// [`StoreError::Refused`] in memory, [`StoreError::Damaged`] if the check finds a fault, or whatever the database
    /// says: [`StoreError::Full`] above all.
    pub async fn snapshot(&self, to: &Path) -> Result<(), StoreError> {
        let refused = refused("copy itself");
        let Some(file) = self.file.as_deref() else {
            return Err(refused(DbErr::Custom("it is in memory".to_owned())));
        };
        let Some(target) = to.to_str() else {
            return Err(refused(DbErr::Custom(format!("the name {} isn't UTF-8", to.display()))));
        };
        // SQLite fills an empty file, and gives a new one the mode that the process makes files with.
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(to).map_err(|source| {
            StoreError::Folder { action: "make the copy", path: to.to_owned(), source: Arc::new(source) }
        })?;
        let wanted = Wanted::default();
        let copied = copy(file, target, &wanted).await.map_err(query_error);
        self.writer.damage().look(copied).map_err(&refused)?;
        let found = check(to, &wanted).await.map_err(|error| refused(query_error(error)))?;
        if found == "ok" {
            return Ok(());
        }
        Err(StoreError::Damaged {
            what: format!("a fault that a copy of it shows: {found}"),
            reason: "the disk or the file is damaged: stop the hub, and restore an earlier backup".to_owned(),
        })
    }
}

async fn copy(file: &Path, target: &str, wanted: &Wanted) -> Result<(), sqlx::Error> {
    let options = SqliteConnectOptions::new().filename(file).read_only(true);
    let mut connection = open(options, wanted).await?;
    let done = sqlx::query("VACUUM INTO ?").bind(target).execute(&mut connection).await;
    connection.close().await?;
    done.map(drop)
}

/// Reads the whole copy; `ok` if all of it is sound.
async fn check(copy: &Path, wanted: &Wanted) -> Result<String, sqlx::Error> {
    let options = SqliteConnectOptions::new().filename(copy).read_only(true).immutable(true);
    let mut connection = open(options, wanted).await?;
    let found = sqlx::query_scalar("PRAGMA quick_check(1)").fetch_one(&mut connection).await;
    connection.close().await?;
    found
}

async fn open(options: SqliteConnectOptions, wanted: &Wanted) -> Result<SqliteConnection, sqlx::Error> {
    let mut connection = options.disable_statement_logging().connect().await?;
    let dropped = wanted.0.clone();
    connection.lock_handle().await?.set_progress_handler(STEPS, move || !dropped.load(Ordering::Relaxed));
    Ok(connection)
}

/// Set when nobody waits any more, by its drop: SQLite works on in a thread of its own, whatever becomes of the future.
#[derive(Default)]
struct Wanted(Arc<AtomicBool>);

impl Drop for Wanted {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn query_error(error: sqlx::Error) -> DbErr {
    DbErr::Query(RuntimeErr::SqlxError(Arc::new(error)))
}

/// A copy whose future was dropped at once.
#[cfg(test)]
pub(super) async fn copy_unwanted(file: &Path, target: &str) -> Result<(), sqlx::Error> {
    let wanted = Wanted::default();
    wanted.0.store(true, Ordering::Relaxed);
    copy(file, target, &wanted).await
}
