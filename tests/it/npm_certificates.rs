//! Promise: what npm Eventflow made is used, whatever its keys are: a hub starts on its certificate table and signs with
//! its intermediates, its spokes are served, and its hubs are dialed.
//!
//! That every kind of chain works both ways, and which are refused, is shown in `src/pki`; here are whole hubs, whole
//! clients, and node, which the npm stack runs on.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    sync::LazyLock,
    time::{Duration, SystemTime},
};

use base64ct::{Base64, Encoding};
use eventflow::{
    config::{self, CertificateSettings},
    pki::{Bundle, CertificateRow, CertificateRows, Secret, Vault, tls},
    spoke::{Publish, Spoke, SpokeConfig},
    wire::HubAddress,
};
use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::support::{Raw, TestHub, config, engine};

const PHRASE: &str = "encryptionKey123";
const ROOT: &str = "EVENTFLOW-ROOT-CA";
const HUB: &str = "NOBLE-TORDOR-MX000001.EVENTFLOW-HUB";
const SPOKE: &str = "SWIFT-LISZEN-MX000002.EVENTFLOW-SPOKE";

/// The rows of one of npm's certificate tables.
struct Npm(Vec<CertificateRow>);

impl Npm {
    /// None, with a line on stderr, on a machine whose clock is outside of their time: hubs have no other clock.
    fn read(kind: &str) -> Option<Self> {
        let made = SystemTime::UNIX_EPOCH + Duration::from_secs(1_796_022_000);
        let now = SystemTime::now();
        if now < made || now > made + Duration::from_secs(24 * 365 * 86_400) {
            eprintln!("skipped: npm's certificates hold from 2026-11-30 to 2051, the clock says otherwise");
            return None;
        }
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        let text = std::fs::read_to_string(folder.join(format!("npm-certificates-{kind}.json"))).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        Some(Self(json["rows"].as_array().unwrap().iter().map(row).collect()))
    }

    fn row(&self, id: &str) -> &CertificateRow {
        self.0.iter().find(|row| row.id == id).unwrap()
    }

    /// A folder whose database has these rows, as a hub finds it.
    async fn folder(&self) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        let data = config(&folder).data;
        std::fs::create_dir_all(&data).unwrap();
        let store = engine::store(&data.join("eventflow.db")).await;
        for row in &self.0 {
            assert!(store.insert(row.clone()).await.unwrap());
        }
        store.close().await;
        folder
    }

    /// The party of this id, whose intermediate has that one, as a bundle of ours.
    fn bundle(&self, id: &str, intermediate: &str) -> Bundle {
        // One for all: it remembers what a million rounds made of a salt.
        static VAULT: LazyLock<Vault> = LazyLock::new(|| Vault::new(Secret::new(PHRASE), 1_000_000).unwrap());
        let key = VAULT.open(self.row(id)).unwrap();
        let pem =
            pkcs8::der::pem::encode_string("PRIVATE KEY", pkcs8::der::pem::LineEnding::LF, key.secret_der());
        let cert = format!("{}\n{}", self.row(id).cert, self.row(intermediate).cert);
        Bundle::new(cert, Secret::new(pem.unwrap()), self.row(ROOT).cert.clone())
    }
}

fn row(json: &serde_json::Value) -> CertificateRow {
    let text = |name: &str| json[name].as_str().unwrap();
    let bytes = |name: &str| Base64::decode_vec(text(name)).unwrap();
    CertificateRow {
        version: 0,
        id: text("id").to_owned(),
        cert: text("cert").to_owned(),
        key: bytes("key"),
        key_iv: bytes("key_iv"),
        key_salt: bytes("key_salt"),
        key_tag: bytes("key_tag"),
        pass: bytes("pass"),
        pass_iv: bytes("pass_iv"),
        pass_salt: bytes("pass_salt"),
        pass_tag: bytes("pass_tag"),
        validity: 2_573_621_880,
        revoked: None,
    }
}

/// A hub with the phrase of npm's hubs.
async fn hub(folder: TempDir) -> TestHub {
    let phrase = config::Secret::new(PHRASE);
    TestHub::on(folder, |config| config.certificates = CertificateSettings::with_phrase(phrase)).await
}

async fn publishes(bundle: Bundle, hub: &TestHub) {
    let address = hub.handle.info().address;
    let config = SpokeConfig::from_bundle(bundle).hub(address.ip().to_string(), address.port());
    let spoke = Spoke::connect(config).await.unwrap();
    spoke.publish(Publish::new("orders", "made", "order-1")).await.unwrap();
    spoke.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_uses_what_npm_made_and_makes_the_rest_under_it() {
    let Some(npm) = Npm::read("ed448") else { return };
    let hub = hub(npm.folder().await).await;
    let own = hub.handle.info().id.clone();
    // Ours, and a spoke of ours with npm's leaf.
    publishes(hub.bundle(), &hub).await;
    publishes(npm.bundle(SPOKE, "EVENTFLOW-SPOKE"), &hub).await;
    assert_eq!(hub.bundle().root.trim(), npm.row(ROOT).cert.trim());

    let database = hub.database();
    let _folder = hub.stop().await;
    let store = engine::store(&database).await;
    let rows = store.certificates().await.unwrap();
    store.close().await;
    for row in &npm.0 {
        let standing = rows.iter().find(|now| now.id == row.id && now.version == 0);
        assert_eq!(standing.map(|now| &now.cert), Some(&row.cert), "it stays");
    }
    let made = rows.iter().filter(|row| row.has_key() && npm.0.iter().all(|old| old.id != row.id));
    assert_eq!(made.map(|row| row.id.as_str()).collect::<Vec<_>>(), [own], "the hub's leaf was missing");
}

/// Node's TLS, as a hub and as a spoke of npm use it: both prove themselves, the hub sends its one byte.
const NODE: &str = r"
const tls = require('tls')
const [role, key, cert, ca, port, servername] = process.argv.slice(1)
const own = {key, cert, ca}
const said = (text) => console.log(text)
if (role === 'hub') {
  const server = tls.createServer({...own, requestCert: true, rejectUnauthorized: true}, (socket) => {
    said(socket.authorized + ' ' + socket.getPeerCertificate().subject.UID)
    socket.write(Buffer.from([2]))
    socket.on('error', () => {})
  })
  server.on('tlsClientError', (error) => said('refused ' + error.code))
  server.listen(0, '127.0.0.1', () => said(server.address().port))
} else {
  const socket = tls.connect({...own, host: '127.0.0.1', port, servername}, () => {
    said(socket.authorized + ' ' + socket.getPeerCertificate().subject.UID)
  })
  socket.on('data', (data) => said('ready ' + data.toString('hex')))
  socket.on('error', (error) => said('refused ' + error.code))
}
";

/// A node process; ended when the test is.
struct Node {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Node {
    /// None, with a line on stderr, on a machine without node.
    fn run(role: &str, bundle: &Bundle, more: &[&str]) -> Option<Self> {
        let own = [bundle.key.expose(), &bundle.cert, &bundle.root];
        let child = Command::new("node")
            .args(["-e", NODE, "--", role])
            .args(own)
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut child) = child else {
            eprintln!("skipped: no `node` command on this machine");
            return None;
        };
        let lines = BufReader::new(child.stdout.take().unwrap());
        Some(Self { child, lines })
    }

    /// The next line that it says; it ends by itself when its link does.
    async fn line(mut self) -> (Self, String) {
        let reading = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            self.lines.read_line(&mut line).unwrap();
            (self, line.trim().to_owned())
        });
        tokio::time::timeout(crate::support::PATIENCE, reading).await.expect("node says something").unwrap()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_of_npm_is_dialed() {
    let Some(npm) = Npm::read("ed448") else { return };
    let Some(node) = Node::run("hub", &npm.bundle(HUB, "EVENTFLOW-HUB"), &[]) else { return };
    let (node, port) = node.line().await;
    let port = port.parse().unwrap();
    // A spoke whose own chain is npm's too.
    let address = HubAddress { id: Some(HUB.to_owned()), host: "127.0.0.1".to_owned(), port };
    let mut bundle = npm.bundle(SPOKE, "EVENTFLOW-SPOKE");
    bundle.hubs = vec![address];
    let (config, name) = tls::client_config(&bundle, Some(HUB)).unwrap();
    let socket = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let link = Raw::with(config, name, socket).await;
    let (_node, line) = node.line().await;
    assert_eq!(line, format!("true {SPOKE}"));
    drop(link);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spoke_of_npm_is_served() {
    let Some(npm) = Npm::read("mixed-p256-ed448") else { return };
    let hub = hub(npm.folder().await).await;
    let (id, port) = (hub.handle.info().id.clone(), hub.handle.info().address.port().to_string());
    let bundle = npm.bundle(SPOKE, "EVENTFLOW-SPOKE");
    if let Some(node) = Node::run("spoke", &bundle, &[&port, &id]) {
        let (node, line) = node.line().await;
        assert_eq!(line, format!("true {id}"));
        let (_node, line) = node.line().await;
        assert_eq!(line, "ready 02");
    }
    hub.stop().await;
}
