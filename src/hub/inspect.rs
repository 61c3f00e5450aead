//! What the admin HTTP learns from this hub.

use std::{fs, net::SocketAddr, path::PathBuf, sync::Arc, time::Instant};

use async_trait::async_trait;

use super::cast::Cast;
use crate::{
    admin::{About, Inspect},
    metrics::ActorsReport,
};

/// Answers for a hub that is up.
#[derive(Debug)]
pub struct Inspector {
    /// Who knows all actors.
    pub cast: Arc<Cast>,
    /// The hub's id.
    pub hub: String,
    /// This start of it.
    pub epoch: u64,
    /// Where it listens for links.
    pub address: SocketAddr,
    /// When it started.
    pub since: Instant,
    /// The database's files.
    pub files: Vec<PathBuf>,
    /// What database it is.
    pub engine: &'static str,
}

#[async_trait]
impl Inspect for Inspector {
    async fn actors(&self) -> ActorsReport {
        self.cast.report().await
    }

    fn about(&self) -> About {
        // The write-ahead log may not be there; without any file there is no size.
        let sizes = self.files.iter().filter_map(|file| fs::metadata(file).ok()).map(|file| file.len());
        About {
            hub: self.hub.clone(),
            version: env!("CARGO_PKG_VERSION"),
            epoch: self.epoch,
            address: self.address,
            uptime: self.since.elapsed(),
            engine: self.engine,
            database_bytes: sizes.reduce(|all, size| all + size),
        }
    }
}
