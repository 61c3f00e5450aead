//! Copies of the hub's database, for the admin HTTP.

use std::{
    fs::{self, File, Permissions},
    io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::sync::{Semaphore, watch};

use crate::{
    admin::{Backup, Snapshot},
    event::{Fault, code},
    metrics::Readiness,
    store::Store,
};

/// How the folders begin, in the data folder, that copies are made in.
const TEMPORARY: &str = "backup-";
/// What a copy leaves free on the disk, so that publishers don't find it full.
const RESERVE: u64 = 16 << 20;

/// Makes copies for a hub.
#[derive(Debug)]
pub struct Backups {
    store: Store,
    /// None: the hub is in memory.
    folder: Option<PathBuf>,
    readiness: watch::Receiver<Readiness>,
    /// One at a time: each takes the room of the whole database.
    turn: Arc<Semaphore>,
}

impl Backups {
    /// For this store and data folder.
    #[must_use]
    pub fn new(store: Store, folder: Option<&Path>, readiness: watch::Receiver<Readiness>) -> Self {
        let folder = folder.map(Path::to_owned);
        Self { store, folder, readiness, turn: Arc::new(Semaphore::new(1)) }
    }

    /// Waits until the hub stops.
    async fn draining(&self) {
        let mut readiness = self.readiness.clone();
        if readiness.wait_for(|state| *state == Readiness::Draining).await.is_err() {
            // The last value holds.
            std::future::pending().await
        }
    }

    async fn copy(&self, folder: &Path) -> Result<(File, u64), Fault> {
        let needed = self.store.bytes().await?.unwrap_or_default() + RESERVE;
        let free = free_bytes(folder).map_err(|error| no_file(folder, &error))?;
        if free < needed {
            let sentence = format!(
                "there is no room for a copy of the database: {folder} has {free} bytes free, and {needed} are \
                 needed; free some there, or stop the hub and copy the folder elsewhere",
                folder = folder.display()
            );
            return Err(Fault::refused(code::DB_FULL, sentence));
        }
        // A copy holds all that the database holds: nobody else looks into it while it has a name.
        let alone = Permissions::from_mode(0o700);
        let place = tempfile::Builder::new().prefix(TEMPORARY).permissions(alone).tempdir_in(folder);
        let place = place.map_err(|error| no_file(folder, &error))?;
        let path = place.path().join("copy.db");
        self.store.snapshot(&path).await?;
        let opened = || {
            let file = File::open(&path)?;
            let bytes = file.metadata()?.len();
            // Only its name: whoever has it open can read it.
            place.close()?;
            Ok((file, bytes))
        };
        opened().map_err(|error: io::Error| no_file(folder, &error))
    }
}

#[async_trait::async_trait]
impl Backup for Backups {
    async fn snapshot(&self) -> Result<Snapshot, Fault> {
        let Some(folder) = &self.folder else {
            let sentence =
                "this hub keeps everything in memory: there is no database that could be backed up";
            return Err(Fault::refused(code::UNSUPPORTED, sentence));
        };
        if self.store.is_on_server() {
            let (engine, tool) = match self.store.engine_name() {
                "PostgreSQL" => ("PostgreSQL", "pg_dump"),
                _ => ("MySQL or MariaDB", "mariadb-dump --single-transaction (or mysqldump)"),
            };
            let sentence = format!(
                "this hub's database is on a {engine} server, which makes its own backups: use {tool} there, and copy \
                 the hub's data folder beside it"
            );
            return Err(Fault::refused(code::UNSUPPORTED, sentence));
        }
        let Ok(turn) = self.turn.clone().try_acquire_owned() else {
            let sentence = "a backup is being made already: wait until it is done";
            return Err(Fault::refused(code::BACKUP, sentence));
        };
        let (file, bytes) = tokio::select! {
            copied = self.copy(folder) => copied?,
            () = self.draining() => {
                let sentence = "the hub is stopping: make the backup when it is up again, or copy its data folder \
                                once it has ended";
                return Err(Fault::refused(code::HUB_DRAINING, sentence));
            }
        };
        tracing::info!(bytes, "a backup was made");
        Ok(Snapshot { file, bytes, hold: Box::new(turn) })
    }
}

/// Removes what a hub that was killed left of its copies.
pub fn forget_copies(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(TEMPORARY) {
            continue;
        }
        let path = entry.path();
        match fs::remove_dir_all(&path) {
            Ok(()) => tracing::info!(path = %path.display(), "an unfinished backup was removed"),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "an unfinished backup can't be removed: do it by hand");
            }
        }
    }
}

fn free_bytes(folder: &Path) -> io::Result<u64> {
    let system = rustix::fs::statvfs(folder)?;
    Ok(system.f_bavail.saturating_mul(system.f_frsize))
}

fn no_file(folder: &Path, error: &io::Error) -> Fault {
    let sentence = format!(
        "the copy of the database can't be made in {}: {error}; look at that disk and its owner",
        folder.display()
    );
    Fault::refused(code::DATA_FOLDER, sentence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Place, StoreConfig};

    async fn backups(folder: &Path) -> Backups {
        let store = Store::open(&StoreConfig::new(Place::File(folder.join("eventflow.db")))).await.unwrap();
        Backups::new(store, Some(folder), watch::channel(Readiness::Ready).1)
    }

    fn leftovers(folder: &Path) -> usize {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with(TEMPORARY)).count()
    }

    #[tokio::test]
    async fn one_at_a_time_and_no_name_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let backups = backups(folder.path()).await;
        let first = backups.snapshot().await.unwrap();
        assert!(first.bytes > 0 && first.file.metadata().unwrap().len() == first.bytes);
        assert_eq!(leftovers(folder.path()), 0);
        // As long as it is read.
        let busy = backups.snapshot().await.unwrap_err();
        assert_eq!(busy.code, code::BACKUP);
        drop(first);
        backups.snapshot().await.unwrap();
    }

    /// The copy is made in a folder that is gone when the copy is there: so the folder is looked at meanwhile, and the
    /// copy itself by its handle.
    #[tokio::test]
    async fn nobody_else_reads_a_copy() {
        let folder = tempfile::tempdir().unwrap();
        let backups = backups(folder.path()).await;
        let (mut made, mut seen) = (Box::pin(backups.snapshot()), None);
        let snapshot = loop {
            let done = tokio::select! {
                biased;
                done = &mut made => Some(done.unwrap()),
                () = tokio::task::yield_now() => None,
            };
            let entries = fs::read_dir(folder.path()).unwrap().flatten();
            let places = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(TEMPORARY));
            seen = places.map(|place| place.metadata().unwrap().permissions().mode() & 0o777).next().or(seen);
            if let Some(snapshot) = done {
                break snapshot;
            }
        };
        assert_eq!(seen, Some(0o700));
        assert_eq!(snapshot.file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[tokio::test]
    async fn a_hub_that_stops_and_one_in_memory_make_none() {
        let folder = tempfile::tempdir().unwrap();
        let (state, readiness) = watch::channel(Readiness::Draining);
        let draining = Backups { readiness, ..backups(folder.path()).await };
        // The copy of an empty database may be faster.
        if let Err(fault) = draining.snapshot().await {
            assert_eq!(fault.code, code::HUB_DRAINING);
        }
        drop(state);
        let memory = Store::open(&StoreConfig::new(Place::Memory)).await.unwrap();
        let none = Backups::new(memory, None, watch::channel(Readiness::Ready).1);
        assert_eq!(none.snapshot().await.unwrap_err().code, code::UNSUPPORTED);
    }

    #[tokio::test]
    async fn what_was_left_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let left = folder.path().join("backup-x1");
        fs::create_dir(&left).unwrap();
        fs::write(left.join("copy.db"), "half").unwrap();
        fs::write(folder.path().join("eventflow.db"), "").unwrap();
        forget_copies(folder.path());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
