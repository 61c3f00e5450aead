//! What the endpoints learn from the hub itself.

use std::{net::SocketAddr, time::Duration};

use async_trait::async_trait;

use crate::metrics::ActorsReport;

/// What a hub is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// Its id.
    pub hub: String,
    /// The program's version.
    pub version: &'static str,
    /// Raised at each start.
    pub epoch: u64,
    /// Where it listens for links.
    pub address: SocketAddr,
    /// Since it started.
    pub uptime: Duration,
    /// What database it is: `SQLite`, `PostgreSQL` or `MySQL`.
    pub engine: &'static str,
    /// Size of the database's files in bytes, if it has any here.
    pub database_bytes: Option<u64>,
}

/// What a hub tells about itself.
#[async_trait]
pub trait Inspect: std::fmt::Debug + Send + Sync {
    /// What it is. Quick: no question to an actor or the database.
    fn about(&self) -> About;

    /// What its actors tell, within a second at most.
    async fn actors(&self) -> ActorsReport;
}
