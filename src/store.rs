//! The database: events and outcomes, bindings and cursors, hubs, certificates and the log.
//!
//! Tables that the npm stack has too are named and shaped as it knows them; ours begin with `v1_`, except for
//! the columns `v1_hub` and `seq` of `event_published`. Times are kept in UTC as `DATETIME` columns, so that
//! the same entities work on servers; here they are milliseconds since 1970.
//!
//! There is one writer. [`Store::commit`] puts many writes into one transaction; reads go to a pool of their
//! own, page by page, and no read transaction outlives a page.

mod about;
mod adoption;
mod backlog;
mod bindings;
mod census;
mod certificates;
mod commit;
mod damage;
mod dead;
mod deletion;
mod engine;
mod entity;
mod error;
mod events;
mod first;
mod groups;
mod history;
mod hubs;
mod keep;
mod lease;
mod leaves;
mod log;
mod marker;
mod migration;
mod open;
mod page;
mod readers;
mod recurring;
mod removed;
mod replay;
mod retries;
mod room;
mod schedules;
mod server;
mod snapshot;
mod sql;
mod sqlite;
mod standing;
mod sweep;
#[cfg(test)]
mod tests;
mod time;
mod trace;
mod transfer;
mod unfinished;
mod unserved;
mod write;
mod writer;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

pub use adoption::{Adopted, AdoptionWork, TakenOver};
pub use backlog::{OpenMark, OpenMarks};
pub use bindings::KnownBindings;
pub use census::{Census, Retrying};
pub use deletion::{Delete, Deleted, Gone};
pub use error::StoreError;
pub use events::Counts;
pub use groups::{GroupCounts, GroupKey, GroupRow, HeldKey, Letter, Redriven};
pub use history::{History, HistoryPage, HistoryPlace, Left, Past};
pub use hubs::HubRow;
pub use keep::{Fate, KeepMark, Looked, UNHEARD_OF};
pub use lease::Seat;
pub use leaves::LogLine;
pub use migration::{Applied, MigrationStatus};
pub use open::{OpenEvent, OpenPage};
pub use page::{LogKey, PidKey};
pub use recurring::{MOST_SCHEDULES, occurrence_id};
pub use removed::{Removed, RemovedMark};
pub use replay::{Place as EventPlace, ReplayPage};
pub use retries::{RetryEvent, RetryPage};
pub use schedules::{Due, MAX_DUE};
pub use server::{ServerUrl, UrlError};
pub use standing::Standing;
pub use sweep::{Sweep, Swept};
pub use transfer::{
    RowRefused, TRANSFER_FORMAT, TransferEnd, TransferHead, TransferHub, TransferLayout, TransferPage,
    TransferPlace, TransferRow, TransferTable,
};
pub use unserved::{Unserved, UnservedKey, UnservedPage};
pub use write::{
    AttemptRow, Binding, Collected, CollectedAs, Collecting, NotTaken, Placed, Ran, Recurred, Replaced,
    Running, Taken, Write, Written,
};

/// Where the database is, and how it is kept.
#[derive(Debug, Clone)]
pub struct StoreConfig {
    /// Which database.
    pub place: Place,
    /// What an acknowledged write survives.
    pub durability: Durability,
    /// The database file's limit in bytes, rounded down to whole pages: beyond it publishes are refused as
    /// retryable, reads still work.
    pub max_bytes: Option<u64>,
    /// How many connections serve reads; at least one.
    pub readers: u32,
    /// How many connections to a server write; at least two. SQLite has one.
    pub writers: u32,
    /// In which zone the npm stack's columns are, on MySQL and MariaDB.
    pub npm_time_zone: NpmTimeZone,
    /// Whether tables are made and brought up to date; else a database that isn't up to date is refused.
    pub migrate: bool,
}

impl StoreConfig {
    /// A database at `place` with the defaults: full durability, no size limit, four readers.
    #[must_use]
    pub fn new(place: Place) -> Self {
        Self {
            place,
            durability: Durability::Full,
            max_bytes: None,
            readers: 4,
            writers: 3,
            npm_time_zone: NpmTimeZone::Utc,
            migrate: true,
        }
    }
}

/// Which database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A server's: PostgreSQL, MySQL or MariaDB.
    Server(ServerUrl),
    /// An SQLite file; it and its folder are made if they don't exist, readable for this user alone.
    File(PathBuf),
    /// An SQLite database in memory, gone with the last [`Store`]: no file at all. Reads share the writer's connection, one at a time.
    Memory,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::File(path) => path.display().fmt(f),
            Place::Memory => f.write_str("in memory"),
            Place::Server(url) => url.fmt(f),
        }
    }
}

/// In which zone the columns are to which the npm stack leaves the time of its session, on MySQL: `timestamp`, `published`,
/// `created` and `updated` of the tables that it shares. Its sessions are in the server's zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NpmTimeZone {
    /// UTC: a server in another zone is refused.
    #[default]
    Utc,
    /// The server's, whatever it is: those columns are read and written in it. In the hour that a zone goes through twice
    /// in autumn they can't tell which time it was, and say one of the two.
    Server,
}

/// What an acknowledged write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// A power cut: synced before it is acknowledged (`synchronous=FULL`).
    #[default]
    Full,
    /// A crash of the hub, but a power cut may take the last moments (`synchronous=NORMAL`).
    Relaxed,
}

/// The database. Cheap to clone; all clones share the writer and the readers.
#[derive(Clone)]
pub struct Store {
    writer: Arc<writer::Writer>,
    readers: readers::Readers,
    /// How many may replay at once: half of the readers.
    replays: Arc<tokio::sync::Semaphore>,
    /// When the hub's lease was renewed, on a server.
    renewed: Arc<lease::Renewed>,
    /// None in memory.
    file: Option<Arc<Path>>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the database, makes it if it doesn't exist, and brings its tables up to date.
    ///
    /// # Errors
    /// [`StoreError::Folder`] if the file or its folder can't be used, [`StoreError::SchemaNewer`] if a newer
    /// version made it, or whatever the database says.
    pub async fn open(config: &StoreConfig) -> Result<Self, StoreError> {
        match &config.place {
            Place::Server(url) => server::open(config, url).await,
            Place::File(path) => sqlite::open(config, Some(path)).await,
            Place::Memory => sqlite::open(config, None).await,
        }
    }

    /// How the tables of the database stand to this version. Nothing is made or changed, and a hub may be at work on it.
    ///
    /// # Errors
    /// If it can't be opened, or whatever it says.
    pub async fn migration_status(config: &StoreConfig) -> Result<MigrationStatus, StoreError> {
        match &config.place {
            Place::Server(url) => server::status(url).await,
            Place::File(path) => sqlite::status(path).await,
            Place::Memory => Ok(migration::none_applied()),
        }
    }

    /// Ends all connections. Writes that are under way come to their end first. The writer goes last: the last
    /// connection folds the write-ahead log into the database, which a reader may not.
    pub async fn close(self) {
        self.readers.close().await;
        self.writer.close().await;
    }

    /// `PRAGMA synchronous` of the live writer: 2 is `FULL`, 1 is `NORMAL`.
    ///
    /// # Errors
    /// If the database doesn't answer.
    pub async fn synchronous(&self) -> Result<i64, StoreError> {
        self.writer.synchronous().await
    }
}
