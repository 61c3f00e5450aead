//! A database that no hub serves meanwhile: to bring its tables up to date, and to move what it holds.

use std::{
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    HubError,
    folder::{DATABASE, DataFolder},
    start::store_config_at,
};
use crate::{
    config::{DatabaseUrl, HubConfig},
    store::{MigrationStatus, Place, Store, StoreConfig},
};

/// How long a lease lives after its hub has stopped, at most, and a little more.
const LEASE: Duration = Duration::from_secs(12);
/// How often leases are looked at meanwhile.
const LOOK: Duration = Duration::from_millis(500);

/// Where a database is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabasePlace {
    /// The embedded one of this data folder.
    Folder(PathBuf),
    /// On a server.
    Server(DatabaseUrl),
}

impl DatabasePlace {
    /// A URL, or else a data folder.
    ///
    /// # Errors
    /// A sentence about a URL that is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.contains("://") {
            DatabaseUrl::parse(text).map(Self::Server).map_err(|why| format!("the URL {why}"))
        } else if text.is_empty() {
            Err("must be a URL or a data folder".to_owned())
        } else {
            Ok(Self::Folder(text.into()))
        }
    }

    /// Where a hub of this configuration has its database.
    #[must_use]
    pub fn of(config: &HubConfig) -> Self {
        config.server().map_or_else(|| Self::Folder(config.data.clone()), Self::Server)
    }

    fn store(&self) -> Result<Place, HubError> {
        match self {
            Self::Folder(folder) => Ok(Place::File(folder.join(DATABASE))),
            Self::Server(url) => {
                let invalid = |source| HubError::DatabaseUrl { url: url.to_string(), source };
                url.reveal().parse().map(Place::Server).map_err(invalid)
            }
        }
    }
}

impl fmt::Display for DatabasePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => folder.display().fmt(f),
            Self::Server(url) => url.fmt(f),
        }
    }
}

/// A database that is ours until this value is closed: of an embedded one the folder is locked, of a server's no hub has a
/// lease that lives.
#[derive(Debug)]
pub struct Offline {
    /// The database.
    pub store: Store,
    place: DatabasePlace,
    _folder: Option<DataFolder>,
}

impl Offline {
    /// Opens a database that is there and up to date; nothing of it is changed. Of a server it waits for leases of hubs that
    /// have stopped a moment ago.
    ///
    /// # Errors
    /// [`HubError::NoDatabase`], [`HubError::InUse`], [`HubError::Served`], [`StoreError::SchemaPending`](crate::store::StoreError::SchemaPending), or whatever
    /// opening says.
    pub async fn existing(config: &HubConfig, place: &DatabasePlace) -> Result<Self, HubError> {
        if let DatabasePlace::Folder(folder) = place
            && !folder.join(DATABASE).is_file()
        {
            return Err(HubError::NoDatabase { path: folder.clone() });
        }
        Self::open(config, place, false).await
    }

    /// Opens a database, makes it if it isn't there, and brings its tables up to date.
    ///
    /// # Errors
    /// The same, but for the first and the fourth.
    pub async fn made(config: &HubConfig, place: &DatabasePlace) -> Result<Self, HubError> {
        Self::open(config, place, true).await
    }

    async fn open(config: &HubConfig, place: &DatabasePlace, migrate: bool) -> Result<Self, HubError> {
        let folder = match place {
            DatabasePlace::Folder(path) => Some(DataFolder::take(path)?),
            DatabasePlace::Server(_) => None,
        };
        let config = StoreConfig { migrate, ..store_config_at(config, place.store()?) };
        let store = Store::open(&config).await?;
        let database = Self { store, place: place.clone(), _folder: folder };
        match database.unserved().await {
            Ok(()) => Ok(database),
            Err(error) => {
                database.store.close().await;
                Err(error)
            }
        }
    }

    /// Waits until no lease lives; one that is renewed ends it.
    async fn unserved(&self) -> Result<(), HubError> {
        let begun = tokio::time::Instant::now();
        let mut told = false;
        loop {
            let leases = self.store.leases().await?;
            let Some((hub, left)) = leases.first() else { return Ok(()) };
            if begun.elapsed() >= LEASE {
                return Err(HubError::Served { place: self.place.to_string(), hub: hub.clone() });
            }
            if !told {
                told = true;
                tracing::warn!(
                    hub.id = hub,
                    left_ms = left,
                    "waiting for the lease of a hub to end, which has stopped or still runs"
                );
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Where it is.
    #[must_use]
    pub fn place(&self) -> &DatabasePlace {
        &self.place
    }

    /// Ends its connections and lets the folder go.
    pub async fn close(self) {
        self.store.close().await;
    }
}

/// How the tables of a database stand to this version: nothing is changed, and a hub may be at work on it.
///
/// # Errors
/// If it can't be opened.
pub async fn migration_status(
    config: &HubConfig,
    place: &DatabasePlace,
) -> Result<MigrationStatus, HubError> {
    Ok(Store::migration_status(&store_config_at(config, place.store()?)).await?)
}

/// Brings the tables of a database up to date.
///
/// # Errors
/// [`StoreError::SchemaNewer`](crate::store::StoreError::SchemaNewer), [`HubError::InUse`] of an embedded database whose hub runs, or whatever opening says.
pub async fn migrate(config: &HubConfig, place: &DatabasePlace) -> Result<(), HubError> {
    let _folder = match place {
        DatabasePlace::Folder(path) => Some(DataFolder::take(Path::new(path))?),
        DatabasePlace::Server(_) => None,
    };
    let config = StoreConfig { migrate: true, ..store_config_at(config, place.store()?) };
    let store = Store::open(&config).await?;
    store.close().await;
    Ok(())
}
