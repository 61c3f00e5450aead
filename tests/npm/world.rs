//! Our hub and the npm stack on one database.

use eventflow::{
    config::{CertificateSettings, DatabaseUrl, HubConfig, NpmTimeZone, Secret},
    hub::{Hub, HubHandle},
    spoke::{Spoke, SpokeConfig},
};
use tempfile::TempDir;

use crate::{
    scratch::{Scratch, until},
    stack::deployment::Deployment,
};

/// What everybody of the deployment is configured with.
pub const PHRASE: &str = "encryptionKey123";

/// Few rounds, so that tests are quick; one test has npm's million.
pub const ROUNDS: u32 = 1_000;

/// A hub of ours that runs, and what npm parties need to know.
pub struct World {
    pub scratch: Scratch,
    pub npm: Deployment,
    pub hub: HubHandle,
    folder: TempDir,
    change: fn(&mut HubConfig),
}

impl World {
    /// Our hub starts first, on an empty database. None: skipped.
    pub async fn start() -> Option<Self> {
        Self::with(|_| {}).await
    }

    /// The same with settings of its own.
    pub async fn with(change: fn(&mut HubConfig)) -> Option<Self> {
        let scratch = Scratch::new().await?;
        let npm = Deployment::new(&scratch.url, PHRASE, ROUNDS);
        Some(Self::on(scratch, npm, change).await)
    }

    /// On what others may have used already.
    pub async fn on(scratch: Scratch, npm: Deployment, change: fn(&mut HubConfig)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let hub = start(&folder, &scratch, change).await;
        Self { scratch, npm, hub, folder, change }
    }

    /// Another hub of ours in the same deployment, and its folder.
    pub async fn another_hub(&self) -> (HubHandle, TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let hub = start(&folder, &self.scratch, self.change).await;
        assert_ne!(hub.info().id, self.hub.info().id, "a hub of its own");
        (hub, folder)
    }

    /// Stops our hub; `after` it starts again with the same folder, on another port.
    pub async fn restarted(self, after: impl AsyncFnOnce(&Deployment)) -> Self {
        let Self { scratch, npm, hub, folder, change } = self;
        stop(hub).await;
        after(&npm).await;
        let hub = start(&folder, &scratch, change).await;
        Self { scratch, npm, hub, folder, change }
    }

    /// A client of ours, with the operator's bundle.
    pub async fn ours(&self) -> Spoke {
        Spoke::connect(SpokeConfig::from_bundle(self.hub.bundle())).await.expect("the spoke connects")
    }

    /// Until our hub has taken so many messages of this name, since npm knows no answers.
    pub async fn taken(&self, message: &str, count: u64) {
        until(message, || async {
            let actors = self.hub.metrics().actors;
            actors["registry"].messages.get(message).is_some_and(|taken| *taken >= count)
        })
        .await;
    }

    /// Ends all of it.
    pub async fn end(self) {
        stop(self.hub).await;
        self.npm.database.close().await;
        self.scratch.drop_database().await;
    }
}

/// Drains a hub of ours.
pub async fn stop(hub: HubHandle) {
    let outcome = hub.shutdown().await.expect("the hub drains");
    assert!(outcome.is_clean(), "{outcome:?}");
}

/// Starts a hub of ours with this folder.
pub async fn start(folder: &TempDir, scratch: &Scratch, change: fn(&mut HubConfig)) -> HubHandle {
    let mut config = HubConfig { data: folder.path().join("data"), ..HubConfig::default() };
    config.hub.internal_port = 0;
    config.admin.port = 0;
    config.certificates =
        CertificateSettings { iterations: ROUNDS, ..CertificateSettings::with_phrase(Secret::new(PHRASE)) };
    if scratch.is_zoned {
        config.mysql.npm_time_zone = NpmTimeZone::Server;
    }
    change(&mut config);
    let url = DatabaseUrl::parse(&scratch.url).unwrap();
    Hub::builder().config(config).database(url).start().await.expect("the hub starts")
}
