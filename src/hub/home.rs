//! Where a hub keeps what outlives it: in a data folder, or nowhere.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use super::{
    HubError,
    backup::forget_copies,
    folder::{AdminFile, DATABASE, DATABASE_LOG, DataFolder, KEY_PHRASE, OPERATOR},
};
use crate::{
    admin::{AdminError, AdminToken},
    config::DatabaseUrl,
    event::Uid,
    pki::{self, PkiError, Secret},
    store::{Place, Seat},
};

/// A hub's home, ours until this value is dropped.
#[derive(Debug)]
pub enum Home {
    /// A data folder, and all in it.
    Folder(DataFolder),
    /// Memory: id, keys and events are new at each start and gone with the hub.
    Memory,
}

impl Home {
    /// Takes a data folder, or with none memory.
    ///
    /// # Errors
    /// As [`DataFolder::take`].
    pub fn take(folder: Option<&Path>) -> Result<Self, HubError> {
        let Some(path) = folder else { return Ok(Self::Memory) };
        let folder = DataFolder::take(path)?;
        forget_copies(folder.path());
        Ok(Self::Folder(folder))
    }

    /// The folder's absolute path, if there is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Folder(folder) => Some(folder.path()),
            Self::Memory => None,
        }
    }

    /// The file with the operator's bundle, if there is one.
    #[must_use]
    pub fn bundle_file(&self) -> Option<PathBuf> {
        self.path().map(|path| path.join(OPERATOR))
    }

    /// Where the database is: on the server that is named, else here. A hub in memory has it there in any case.
    ///
    /// # Errors
    /// [`HubError::DatabaseUrl`].
    pub fn place(&self, server: Option<&DatabaseUrl>) -> Result<Place, HubError> {
        match (self, server) {
            (Self::Memory, _) => Ok(Place::Memory),
            (Self::Folder(_), Some(url)) => {
                let invalid = |source| HubError::DatabaseUrl { url: url.to_string(), source };
                url.reveal().parse().map(Place::Server).map_err(invalid)
            }
            (Self::Folder(folder), None) => Ok(Place::File(folder.file(DATABASE))),
        }
    }

    /// The files of a database in the data folder, if there is one.
    #[must_use]
    pub fn database_files(&self) -> Vec<PathBuf> {
        match self {
            Self::Folder(folder) => [DATABASE, DATABASE_LOG].map(|name| folder.file(name)).into(),
            Self::Memory => Vec::new(),
        }
    }

    /// Where that is, among hubs on other machines.
    #[must_use]
    pub fn seat(&self) -> Seat {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let folder = self.path().map(|path| path.display().to_string()).unwrap_or_default();
        Seat { host, folder }
    }

    /// The hub's id, which ends with the configured name.
    ///
    /// # Errors
    /// As [`DataFolder::hub_id`].
    pub fn hub_id(&self, name: &str, known: &[Uid]) -> Result<Uid, HubError> {
        match self {
            Self::Folder(folder) => folder.hub_id(name, known),
            Self::Memory => Ok(Uid::from_stored(pki::new_id(name))),
        }
    }

    /// The phrase that keys at rest are encrypted under, if none is configured.
    ///
    /// # Errors
    /// As [`pki::vault::phrase_file`].
    pub fn phrase(&self) -> Result<Secret, PkiError> {
        match self {
            Self::Folder(folder) => pki::vault::phrase_file(folder.file(KEY_PHRASE)),
            Self::Memory => pki::vault::new_phrase(),
        }
    }

    /// What opens the admin HTTP.
    ///
    /// # Errors
    /// As [`AdminToken::load_or_create`].
    pub fn token(&self) -> Result<AdminToken, AdminError> {
        match self {
            Self::Folder(folder) => AdminToken::load_or_create(folder.path()),
            Self::Memory => AdminToken::random(),
        }
    }

    /// As [`DataFolder::tell_admin`], if there is a folder.
    ///
    /// # Errors
    /// The same.
    pub fn tell_admin(&self, addr: SocketAddr) -> Result<Option<AdminFile>, HubError> {
        match self {
            Self::Folder(folder) => folder.tell_admin(addr).map(Some),
            Self::Memory => Ok(None),
        }
    }

    /// As [`DataFolder::forget_admin`], if there is a folder.
    ///
    /// # Errors
    /// The same.
    pub fn forget_admin(&self) -> Result<(), HubError> {
        match self {
            Self::Folder(folder) => folder.forget_admin(),
            Self::Memory => Ok(()),
        }
    }
}
