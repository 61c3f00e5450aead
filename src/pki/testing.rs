//! What tests of certificates share: rows in memory, an authority at once, and certificates against the rules.

pub(crate) mod handshake;
pub(crate) mod keys;
pub(crate) mod npm;

use std::{convert::Infallible, io, process::Command, sync::Mutex, time::SystemTime};

use rcgen::{CertificateParams, DistinguishedName, DnType, Issuer, KeyPair, SanType};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::{
    Authority, Bundle, CertificateRow, CertificateRows, Lifetimes, Names, Secret, Vault, authority::establish,
};
use crate::wire::HubAddress;

pub(crate) const HUB_ID: &str = "CALM-OTTER-MX000001.EVENTFLOW-HUB";
pub(crate) const SPOKE_ID: &str = "KEEN-WREN-MX000002.EVENTFLOW-SPOKE";

pub(crate) use super::authority::DAY;

/// The certificate table, in memory.
#[derive(Debug, Default)]
pub(crate) struct MemoryRows(pub(crate) Mutex<Vec<CertificateRow>>);

impl CertificateRows for MemoryRows {
    type Error = Infallible;

    async fn current(&self, id: &str) -> Result<Option<CertificateRow>, Infallible> {
        // Lets a racing task run between any two steps.
        tokio::task::yield_now().await;
        let rows = self.0.lock().unwrap();
        Ok(rows.iter().find(|row| row.id == id && row.version == 0 && row.revoked.is_none()).cloned())
    }

    async fn insert(&self, row: CertificateRow) -> Result<bool, Infallible> {
        tokio::task::yield_now().await;
        let mut rows = self.0.lock().unwrap();
        if rows.iter().any(|other| other.id == row.id && other.version == row.version) {
            return Ok(false);
        }
        rows.push(row);
        Ok(true)
    }

    async fn retire(&self, row: &CertificateRow) -> Result<(), Infallible> {
        tokio::task::yield_now().await;
        let mut rows = self.0.lock().unwrap();
        let count = rows.iter().filter(|other| other.id == row.id).count();
        let current = rows.iter_mut().find(|other| other.version == 0 && other.cert == row.cert);
        if let Some(current) = current {
            current.version = u32::try_from(count).unwrap();
        }
        Ok(())
    }
}

/// A vault whose rounds cost nothing.
pub(crate) fn vault() -> Vault {
    Vault::new(Secret::new("a phrase for tests"), 10).unwrap()
}

pub(crate) fn names() -> Names {
    Names { hub_id: HUB_ID.to_owned(), ..Names::default() }
}

/// A new authority with rows of its own.
pub(crate) async fn authority() -> Authority {
    establish(&MemoryRows::default(), &vault(), &names(), Lifetimes::default(), SystemTime::now())
        .await
        .unwrap()
}

pub(crate) fn hub_address() -> HubAddress {
    HubAddress { id: Some(HUB_ID.to_owned()), host: "127.0.0.1".to_owned(), port: 50_001 }
}

pub(crate) fn bundle(authority: &Authority) -> Bundle {
    authority.issue_bundle(SPOKE_ID, vec![hub_address()], SystemTime::now()).unwrap()
}

/// A chain and key that no authority of ours would issue.
pub(crate) type Forged = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// A leaf under the authority's spoke intermediate with any UIDs, DNS names and common name.
pub(crate) fn forged(authority: &Authority, uids: &[&str], dns: &[&str], common: Option<&str>) -> Forged {
    let (issuer, issuer_key) = authority.spoke_issuer();
    let signer = KeyPair::try_from(issuer_key).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    let uid = DnType::CustomDnType(vec![0, 9, 2342, 19_200_300, 100, 1, 1]);
    params.distinguished_name = DistinguishedName::new();
    for value in uids {
        params.distinguished_name.push(uid.clone(), *value);
    }
    if let Some(common) = common {
        params.distinguished_name.push(DnType::CommonName, common);
    }
    params.subject_alt_names = dns.iter().map(|name| SanType::DnsName((*name).try_into().unwrap())).collect();
    let issuer_of = Issuer::from_ca_cert_der(issuer, &signer).unwrap();
    let leaf = params.signed_by(&key, &issuer_of).unwrap();
    let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
    (vec![leaf.der().clone(), issuer.clone()], key)
}

/// Runs the openssl command; none (and a line on stderr) where there is no such command.
pub(crate) fn openssl(arguments: &[&str]) -> Option<io::Result<std::process::Output>> {
    match Command::new("openssl").args(arguments).output() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            eprintln!("skipped: no `openssl` command on this machine");
            None
        }
        other => Some(other),
    }
}
