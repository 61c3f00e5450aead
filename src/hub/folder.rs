//! The data folder: made at the first start, for this user alone, and in use by one hub at a time.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError},
    io::{self, Read, Write},
    net::SocketAddr,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use super::HubError;
use crate::{event::Uid, pki};

/// The database.
pub const DATABASE: &str = "eventflow.db";
/// The database's write-ahead log.
pub const DATABASE_LOG: &str = "eventflow.db-wal";
/// Where the admin HTTP of the hub is that uses the folder; only while it runs.
const ADMIN: &str = "admin-address";
/// The lock of the hub that uses the folder.
const LOCK: &str = "lock";
/// The hub's id, made once.
const HUB_ID: &str = "hub-id";
/// The phrase that keys at rest are encrypted under, if none is configured.
pub const KEY_PHRASE: &str = "key-phrase";
/// The operator's bundle.
pub const OPERATOR: &str = "operator.toml";

/// A data folder that is ours until this value is dropped.
#[derive(Debug)]
pub struct DataFolder {
    path: PathBuf,
    /// Locked by the operating system: it lets go when the process ends, however that happens.
    _lock: File,
}

impl DataFolder {
    /// Makes the folder if need be, and takes it.
    ///
    /// # Errors
    /// [`HubError::Folder`] if it can't be made or written, [`HubError::NotAFolder`], [`HubError::InUse`] if another hub has it.
    pub fn take(path: &Path) -> Result<Self, HubError> {
        let failed =
            |action: &'static str, source| HubError::Folder { action, path: path.to_owned(), source };
        if path.is_file() {
            return Err(HubError::NotAFolder { path: path.to_owned() });
        }
        if !path.is_dir() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(path)
                .map_err(|error| failed("make", error))?;
        }
        let path = path.canonicalize().map_err(|error| failed("find", error))?;
        if let Some(mode) = open_to_others(&path) {
            // It may be wanted: the secrets in it have modes of their own.
            tracing::warn!(
                path = %path.display(),
                mode = format_args!("{mode:04o}"),
                "other users may look into the data folder: chmod 700 it unless that is wanted"
            );
        }
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(path.join(LOCK))
            .map_err(|error| failed("write to", error))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path, _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(HubError::InUse { path }),
            Err(TryLockError::Error(error)) => Err(failed("lock", error)),
        }
    }

    /// Its absolute path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file in it.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Tells programs on this machine where the admin HTTP is, until the returned value is dropped.
    ///
    /// # Errors
    /// [`HubError::Folder`] if it can't be written.
    pub fn tell_admin(&self, addr: SocketAddr) -> Result<AdminFile, HubError> {
        let path = self.file(ADMIN);
        match write(&path, &format!("{addr}\n")) {
            Ok(()) => Ok(AdminFile(path)),
            Err(source) => Err(HubError::Folder { action: "write", path, source }),
        }
    }

    /// Removes what a hub that was killed left behind.
    ///
    /// # Errors
    /// [`HubError::Folder`] if it is there and can't be removed.
    pub fn forget_admin(&self) -> Result<(), HubError> {
        let path = self.file(ADMIN);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(HubError::Folder { action: "remove", path, source })
            }
            _ => Ok(()),
        }
    }

    /// The id of the hub that lives here: made at the first start, kept from then on. It ends with the configured
    /// name; a hub that is renamed gets another id. `known` are the hubs that the database knows, the latest first:
    /// without the file, as after a restore, the hub is the latest of this name, whose events are in there.
    ///
    /// # Errors
    /// [`HubError::Folder`] if it can't be read or written.
    pub fn hub_id(&self, name: &str, known: &[Uid]) -> Result<Uid, HubError> {
        let path = self.file(HUB_ID);
        let failed = |action: &'static str, source| HubError::Folder { action, path: path.clone(), source };
        let suffix = format!(".{}", name.to_ascii_uppercase());
        let is_named = |id: &str| id.to_ascii_uppercase().ends_with(&suffix);
        match read(&path) {
            Ok(text) => {
                let id = text.trim();
                match Uid::parse(id.to_owned()) {
                    Ok(uid) if is_named(id) => return Ok(uid),
                    Ok(_) => tracing::warn!(id, name, "the hub was renamed and gets a new id"),
                    Err(error) => {
                        return Err(failed("read", io::Error::new(io::ErrorKind::InvalidData, error)));
                    }
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed("read", error)),
        }
        let known = known.iter().find(|id| is_named(id.as_str())).map(Uid::to_string);
        let id = known.unwrap_or_else(|| pki::new_id(name));
        write(&path, &format!("{id}\n")).map_err(|error| failed("write", error))?;
        Uid::parse(id).map_err(|error| failed("write", io::Error::new(io::ErrorKind::InvalidData, error)))
    }
}

/// The file that tells where the admin HTTP is; gone with this value.
#[derive(Debug)]
pub struct AdminFile(PathBuf);

impl Drop for AdminFile {
    fn drop(&mut self) {
        // Left behind it would lead to nobody, and the next start removes it.
        let _ = fs::remove_file(&self.0);
    }
}

/// The mode of a folder that others than its owner may look into or write to.
fn open_to_others(folder: &Path) -> Option<u32> {
    let mode = fs::metadata(folder).ok()?.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then_some(mode)
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

/// Writes a whole file or nothing, for this user alone.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.as_file().set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_stays_and_the_folder_has_one_hub() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("data");
        let folder = DataFolder::take(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        let id = folder.hub_id("EVENTFLOW-HUB", &[]).unwrap();
        assert!(id.ends_with(".EVENTFLOW-HUB"), "{id}");
        assert!(matches!(DataFolder::take(&path), Err(HubError::InUse { .. })));
        drop(folder);
        let folder = DataFolder::take(&path).unwrap();
        assert_eq!(folder.hub_id("EVENTFLOW-HUB", &[]).unwrap(), id);
        assert_ne!(folder.hub_id("OTHER", &[]).unwrap(), id);
        assert_eq!(path.join(HUB_ID).metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn without_its_file_the_id_is_the_latest_that_the_database_knows() {
        let root = tempfile::tempdir().unwrap();
        let folder = DataFolder::take(&root.path().join("data")).unwrap();
        let known = ["A-1.OTHER", "B-2.HUBS", "C-3.HUBS"].map(|id| Uid::parse(id).unwrap());
        assert_eq!(folder.hub_id("HUBS", &known).unwrap(), known[1]);
        // From then on the file counts.
        assert_eq!(folder.hub_id("HUBS", &known[2..]).unwrap(), known[1]);
    }

    #[test]
    fn the_admin_address_is_told_while_there_is_one() {
        let root = tempfile::tempdir().unwrap();
        let folder = DataFolder::take(root.path()).unwrap();
        let file = folder.tell_admin(([127, 0, 0, 1], 7).into()).unwrap();
        assert_eq!(read(&folder.file(ADMIN)).unwrap(), "127.0.0.1:7\n");
        std::mem::forget(file);
        folder.forget_admin().unwrap();
        folder.forget_admin().unwrap();
        drop(folder.tell_admin(([127, 0, 0, 1], 8).into()).unwrap());
        assert!(!folder.file(ADMIN).exists());
    }

    #[test]
    fn a_folder_that_lets_others_in_is_noticed() {
        let root = tempfile::tempdir().unwrap();
        for (mode, noticed) in [(0o700, None), (0o755, Some(0o755)), (0o710, Some(0o710))] {
            fs::set_permissions(root.path(), Permissions::from_mode(mode)).unwrap();
            assert_eq!(open_to_others(root.path()), noticed);
        }
        // It is the owner's to decide.
        let _folder = DataFolder::take(root.path()).unwrap();
        assert_eq!(root.path().join(LOCK).metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = DataFolder::take(&file).unwrap_err();
        assert!(error.to_string().contains("is a file, not a folder"), "{error}");
        let error = DataFolder::take(&file.join("data")).unwrap_err();
        assert!(error.to_string().contains("file/data"), "{error}");
        assert_eq!(error.code(), crate::event::code::DATA_FOLDER);
    }
}
