//! Rows that npm Eventflow wrote, of keys of several kinds: `tests/fixtures/npm-certificates-*.json`.

use std::{
    path::{Path, PathBuf},
    sync::LazyLock,
    time::{Duration, SystemTime},
};

use base64ct::{Base64, Encoding};

use super::{MemoryRows, hub_address};
use crate::pki::{Bundle, CertificateRow, Secret, Vault, authority::ROOT_ID, vault::DEFAULT_ITERATIONS};

/// The files: by the kinds of the hubs' keys, and the spokes' if they differ. The root's are as the hubs'.
pub(crate) const KINDS: [&str; 4] = ["ed448", "ed25519", "mixed-p256-ed448", "mixed-rsa-p384"];
/// The hub that has a leaf in each.
pub(crate) const HUB: &str = "NOBLE-TORDOR-MX000001.EVENTFLOW-HUB";
/// The spoke that has one.
pub(crate) const SPOKE: &str = "SWIFT-LISZEN-MX000002.EVENTFLOW-SPOKE";

/// A vault of the files' phrase that knows their salts already: each would cost a million rounds.
static VAULT: LazyLock<Vault> = LazyLock::new(|| {
    let vault = unprepared();
    for (salt, key) in derived() {
        vault.remember(&salt, &key);
    }
    vault
});

/// The same, ignorant.
pub(crate) fn unprepared() -> Vault {
    Vault::new(Secret::new("encryptionKey123"), DEFAULT_ITERATIONS).unwrap()
}

/// The salts of the files and what becomes of them, which another program computed.
pub(crate) fn derived() -> Vec<(Vec<u8>, Vec<u8>)> {
    let text = std::fs::read_to_string(folder().join("npm-derived-keys.txt")).unwrap();
    let line = |line: &str| {
        let (salt, key) = line.split_once(' ').unwrap();
        (Base64::decode_vec(salt).unwrap(), Base64::decode_vec(key).unwrap())
    };
    text.lines().skip(1).map(line).collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// A minute after the rows were made; they hold for 25 years.
pub(crate) fn made_at() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_796_022_000)
}

/// What one file holds.
pub(crate) struct Npm {
    pub(crate) rows: Vec<CertificateRow>,
    pub(crate) vault: Vault,
}

impl Npm {
    pub(crate) fn read(kind: &str) -> Self {
        let file = folder().join(format!("npm-certificates-{kind}.json"));
        let text = std::fs::read_to_string(file).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["encryption_key"], "encryptionKey123");
        assert_eq!(json["pbkdf2"]["iterations"], DEFAULT_ITERATIONS);
        Self { rows: json["rows"].as_array().unwrap().iter().map(row).collect(), vault: VAULT.clone() }
    }

    /// A certificate table with these rows.
    pub(crate) fn table(&self) -> MemoryRows {
        MemoryRows(self.rows.clone().into())
    }

    pub(crate) fn row(&self, id: &str) -> &CertificateRow {
        self.rows.iter().find(|row| row.id == id).unwrap()
    }

    /// What npm's spoke is, as a bundle of ours.
    pub(crate) fn bundle(&self) -> Bundle {
        let leaf = self.row(SPOKE);
        let key = self.vault.open(leaf).unwrap();
        let cert = leaf.cert.clone() + "\n" + &self.row("EVENTFLOW-SPOKE").cert;
        let key = Secret::new(crate::pki::key::pem("PRIVATE KEY", key.secret_der()));
        let bundle = Bundle::new(cert, key, self.row(ROOT_ID).cert.clone());
        Bundle { hubs: vec![hub_address()], ..bundle }
    }
}

/// A certificate that says to be signed by ECDSA with SHA-224 (1.2.840.10045.4.3.1) in place of SHA-512, which the last
/// byte of the id tells apart: nobody here knows it.
pub(crate) fn with_sha224(mut der: Vec<u8>) -> Vec<u8> {
    let sha512 = [6, 8, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 4, 3, 4];
    for at in 0..der.len() - sha512.len() {
        if der[at..at + sha512.len()] == sha512 {
            der[at + sha512.len() - 1] = 1;
        }
    }
    der
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
