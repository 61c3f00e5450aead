//! What the promises are tested with: a hub in a temporary folder, clients, a link that speaks raw bytes, and
//! conditions that are waited for.

pub mod admin;
pub mod claims;
pub mod engine;
pub mod http;
pub mod load;
pub mod npm;
pub mod pair;
pub mod peer;
pub mod process;
pub mod proxy;
pub mod server;
pub mod wire;

use std::{collections::VecDeque, future::Future, path::PathBuf, sync::Arc, time::Duration};

use eventflow::{
    config::HubConfig,
    hub::{Hub, HubHandle},
    pki::{Bundle, tls},
    spoke::{Spoke, SpokeConfig},
};
use rustls::{ClientConfig, pki_types::ServerName};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, timeout},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// How long any condition may take before the test fails. Generous: machines stall.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A hub in this process, with its data in a temporary folder.
pub struct TestHub {
    pub handle: HubHandle,
    pub folder: TempDir,
}

/// A configuration with free ports and a folder of its own.
pub fn config(folder: &TempDir) -> HubConfig {
    let mut config = HubConfig { data: folder.path().join("data"), ..HubConfig::default() };
    config.hub.internal_port = 0;
    config.admin.port = 0;
    engine::settle(&mut config, folder.path());
    config
}

impl TestHub {
    /// With the defaults.
    pub async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// With settings of its own.
    pub async fn with(change: impl FnOnce(&mut HubConfig)) -> Self {
        Self::on(tempfile::tempdir().unwrap(), change).await
    }

    /// On a folder that another hub may have used before.
    pub async fn on(folder: TempDir, change: impl FnOnce(&mut HubConfig)) -> Self {
        let mut config = config(&folder);
        change(&mut config);
        let handle = Hub::builder().config(config).start().await.expect("the hub starts");
        Self { handle, folder }
    }

    /// Drains it; its folder stays.
    pub async fn stop(self) -> TempDir {
        let outcome = self.handle.shutdown().await.expect("the hub drains");
        assert!(outcome.is_clean(), "{outcome:?}");
        self.folder
    }

    /// The database's file; on a server that of [`engine::open`] and its like all the same.
    pub fn database(&self) -> PathBuf {
        self.data().join("eventflow.db")
    }

    pub fn data(&self) -> PathBuf {
        self.handle.info().data.clone().expect("a hub on disk")
    }

    pub fn bundle(&self) -> Bundle {
        self.handle.bundle()
    }

    /// A client with the operator's bundle.
    pub async fn spoke(&self) -> Spoke {
        Spoke::connect(SpokeConfig::from_bundle(self.bundle())).await.expect("the spoke connects")
    }

    /// A link after its handshake, before its first record.
    pub async fn raw(&self) -> Raw {
        Raw::connect(&self.bundle(), self.handle.info().address).await
    }

    /// A v1 link after `hello` and `welcome`.
    pub async fn v1(&self) -> Raw {
        self.raw().await.greeted().await
    }
}

/// A link that speaks raw records.
pub struct Raw {
    pub stream: TlsStream<TcpStream>,
    read: Vec<u8>,
    /// What came while an answer was waited for.
    aside: VecDeque<Vec<String>>,
}

impl Raw {
    /// A link after its handshake, before its first record.
    pub async fn connect(bundle: &Bundle, hub: impl tokio::net::ToSocketAddrs) -> Self {
        Self::over(bundle, TcpStream::connect(hub).await.unwrap()).await
    }

    /// The same over a connection that was made already.
    pub async fn over(bundle: &Bundle, stream: TcpStream) -> Self {
        let (config, name) = tls::client_config(bundle, None).expect("a client configuration");
        Self::with(config, name, stream).await
    }

    /// The same as somebody else.
    pub async fn with(config: Arc<ClientConfig>, name: ServerName<'static>, stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        let mut stream = TlsConnector::from(config).connect(name, stream).await.expect("a handshake");
        let mut first = [0; 64];
        let read = timeout(PATIENCE, stream.read(&mut first)).await.expect("the ready byte").unwrap();
        assert_eq!(first[..read], [0x02], "the ready byte comes alone in its record");
        Self { stream, read: Vec::new(), aside: VecDeque::new() }
    }

    /// The same after `hello` and `welcome`.
    pub async fn greeted(mut self) -> Self {
        self.send(&["hello", "1", "{}"]).await;
        let welcome = self.record().await.expect("a welcome");
        assert_eq!(welcome[0], "welcome");
        self
    }

    /// Sends one record.
    pub async fn send(&mut self, units: &[&str]) {
        let record = format!("{}\u{1e}", units.join("\u{1f}"));
        self.bytes(record.as_bytes()).await;
    }

    /// Sends bytes as they are. The other end may have closed already: that shows when reading.
    pub async fn bytes(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
        let _ = self.stream.flush().await;
    }

    /// The next record; none: the link is closed.
    pub async fn record(&mut self) -> Option<Vec<String>> {
        timeout(PATIENCE, self.next()).await.expect("a record or the end of the link in time")
    }

    /// The next record that isn't a ping.
    pub async fn answer(&mut self) -> Option<Vec<String>> {
        loop {
            let record = self.record().await?;
            if record[0] != "ping" {
                return Some(record);
            }
        }
    }

    /// Sends a request and waits for its `ok` or `err`; deliveries that come meanwhile are kept for [`Self::event`].
    pub async fn ask(&mut self, units: &[&str]) -> Vec<String> {
        self.send(units).await;
        self.reply(units[1]).await
    }

    /// The `ok` or `err` of a request that was sent; what else comes is kept.
    pub async fn reply(&mut self, req: &str) -> Vec<String> {
        let answers = |record: &[String]| ["ok", "err"].contains(&&*record[0]) && record[1] == req;
        if let Some(at) = self.aside.iter().position(|record| answers(record)) {
            return self.aside.remove(at).unwrap_or_default();
        }
        loop {
            let record =
                self.answer().await.unwrap_or_else(|| panic!("the link closed before {req} was answered"));
            if answers(&record) {
                return record;
            }
            self.aside.push_back(record);
        }
    }

    /// The next delivery: an event, a claim, an item.
    pub async fn event(&mut self) -> Vec<String> {
        match self.aside.pop_front() {
            Some(record) => record,
            None => self.answer().await.expect("a delivery"),
        }
    }

    /// The next record that came while an answer was waited for, if there is one.
    pub fn put_aside(&mut self) -> Option<Vec<String>> {
        self.aside.pop_front()
    }

    async fn next(&mut self) -> Option<Vec<String>> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == 0x1e) {
                let record: Vec<u8> = self.read.drain(..=end).collect();
                let text = String::from_utf8(record[..end].to_vec()).expect("records are UTF-8");
                return Some(text.split('\u{1f}').map(str::to_owned).collect());
            }
            let mut chunk = [0; 16 * 1024];
            match self.stream.read(&mut chunk).await {
                Ok(0) | Err(_) => return None,
                Ok(read) => self.read.extend_from_slice(&chunk[..read]),
            }
        }
    }
}

/// Looks at a condition until it holds.
pub async fn until<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let deadline = Instant::now() + PATIENCE;
    while !condition().await {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        tokio::task::yield_now().await;
        // Not a guess at how long it takes: only a rest between two looks.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
