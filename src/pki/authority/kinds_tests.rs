//! What stands may have keys of any kind; what is missing is made under it.

use std::time::SystemTime;

use x509_cert::{
    TbsCertificate,
    builder::{Builder, CertificateBuilder, Error, profile::BuilderProfile},
    der::{Decode, Encode},
    ext::Extension,
    name::Name,
    serial_number::SerialNumber,
    spki::{SubjectPublicKeyInfoOwned, SubjectPublicKeyInfoRef},
    time::Validity,
};

use super::{
    establish::span,
    issue::{Pair, certify, certify_public},
    shape::Shape,
    sign::{IssuerKey, Signature},
    *,
};
use crate::pki::{
    FreshKey, Vault,
    key::read_public_key,
    testing::{handshake::*, npm::Npm, *},
    tls,
};

fn now() -> SystemTime {
    npm::made_at()
}

fn standing(rows: &MemoryRows) -> Vec<(String, String)> {
    let rows = rows.0.lock().unwrap();
    rows.iter().filter(|row| row.version == 0).map(|row| (row.id.clone(), row.cert.clone())).collect()
}

/// A table with a root and an intermediate of the hubs that somebody else made.
async fn table(vault: &Vault, root: &str, hubs: &str) -> MemoryRows {
    let rows = MemoryRows::default();
    let span = span(30 * DAY, now(), None).unwrap();
    let keep = async |id: &str, pair: &Pair| {
        let pem = to_pem("CERTIFICATE", &pair.cert);
        assert!(rows.insert(vault.seal(id, pem, &pair.key, span.1).unwrap()).await.unwrap());
    };
    let root = certify(Role::Root, ROOT_ID, keys::key(root), None, span).unwrap();
    keep(ROOT_ID, &root).await;
    let hubs = certify(Role::Intermediate, "EVENTFLOW-HUB", keys::key(hubs), Some(&root), span).unwrap();
    keep("EVENTFLOW-HUB", &hubs).await;
    rows
}

#[tokio::test]
async fn what_stands_is_used_whatever_its_keys_are() {
    let vault = vault();
    for (root, hubs) in keys::KINDS.iter().zip(keys::KINDS.iter().cycle().skip(1)) {
        let rows = table(&vault, root, hubs).await;
        let before = standing(&rows);
        let authority = establish(&rows, &vault, &names(), Lifetimes::default(), now()).await.unwrap();
        let after = standing(&rows);
        assert_eq!(after[..2], before, "{root}, {hubs}: what stands stays");
        let made: Vec<_> = after[2..].iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(made, [HUB_ID, "EVENTFLOW-SPOKE"], "{root}, {hubs}: the rest is made");
        for cert in [&authority.hub_identity().chain()[0], authority.spoke_intermediate()] {
            let certificate = x509::parse(cert, "made").unwrap();
            assert_eq!(certificate.public_key().algorithm.algorithm.to_id_string(), "1.3.101.112");
        }
        let bundle = authority.issue_bundle(SPOKE_ID, vec![hub_address()], now()).unwrap();
        bundle.check(now()).unwrap();
        // Both sides of a handshake find the way to the root.
        let (client, name) = tls::client_config(&bundle, None).unwrap();
        let server = tls::server_config(&authority, HUB_ID, "EVENTFLOW-HUB").unwrap();
        let (client, server) = shake(client_at(&client, now()), name, server_at(&server, now())).await;
        client.unwrap();
        server.unwrap();
        // A second start changes nothing.
        establish(&rows, &vault, &names(), Lifetimes::default(), now()).await.unwrap();
        assert_eq!(standing(&rows), after);
    }
}

#[tokio::test]
async fn openssl_accepts_what_is_made_under_any_key() {
    let vault = vault();
    let folder = tempfile::tempdir().unwrap();
    for kind in keys::KINDS {
        let rows = table(&vault, kind, kind).await;
        let authority = establish(&rows, &vault, &names(), Lifetimes::default(), now()).await.unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let chain = authority.hub_identity().chain();
        let chain = to_pem("CERTIFICATE", &chain[0]) + &to_pem("CERTIFICATE", &chain[1]);
        let (root, chain) = (file("root", &authority.root_pem()), file("chain", &chain));
        let at = crate::pki::unix_seconds(now()).to_string();
        let verify = ["verify", "-x509_strict", "-attime", &at, "-purpose", "sslserver"];
        let verify = [&verify[..], &["-CAfile", &root, "-untrusted", &chain, &chain]].concat();
        let Some(output) = openssl(&verify) else { return };
        let output = output.unwrap();
        assert!(output.status.success(), "{kind}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[tokio::test]
async fn npms_databases_are_used_as_they_stand() {
    for kind in npm::KINDS {
        let npm = Npm::read(kind);
        let table = npm.table();
        let names = Names { hub_id: npm::HUB.to_owned(), ..Names::default() };
        let authority = establish(&table, &npm.vault, &names, Lifetimes::default(), now()).await.unwrap();
        assert_eq!(*table.0.lock().unwrap(), npm.rows, "{kind}: what stands is used");
        assert_eq!(authority.hub_identity().uid().as_str(), npm::HUB);
        // A hub of ours signs its leaf with npm's intermediate; npm's spoke is a peer of both.
        let names = Names { hub_id: HUB_ID.to_owned(), ..names };
        let authority = establish(&table, &npm.vault, &names, Lifetimes::default(), now()).await.unwrap();
        let added: Vec<_> = standing(&table).split_off(npm.rows.len());
        assert_eq!(added.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), [HUB_ID], "{kind}");
        authority.issue_bundle(SPOKE_ID, vec![hub_address()], now()).unwrap().check(now()).unwrap();
        assert_eq!(npm.bundle().uid().unwrap().as_str(), npm::SPOKE);
        npm.bundle().check(now()).unwrap();
        // Intermediates of names that npm doesn't have are made under its root, leaves on public keys below them.
        let names = Names {
            hub_id: "A-B-1.OTHER".to_owned(),
            hub_name: "OTHER".to_owned(),
            spoke_name: "others".to_owned(),
        };
        let lives = Lifetimes::default();
        let other = establish(&table, &npm.vault, &names, lives, now()).await.unwrap();
        assert_eq!(other.root(), authority.root());
        let signer = Signer::open(&table, &npm.vault, "EVENTFLOW-SPOKE", lives, now()).await.unwrap();
        let key = FreshKey::generate().unwrap();
        let leaf = signer.certify(SPOKE_ID, key.public_key(), DAY, now()).await.unwrap();
        Bundle::new(leaf.cert, key.private_key().clone(), leaf.root).check(now()).unwrap();
    }
}

/// npm's intermediate for spokes, and an authority beside it.
async fn npms(kind: &str) -> (Authority, Pair) {
    let npm = Npm::read(kind);
    let names = Names { hub_id: HUB_ID.to_owned(), ..Names::default() };
    let authority = establish(&npm.table(), &npm.vault, &names, Lifetimes::default(), now()).await.unwrap();
    let row = npm.row("EVENTFLOW-SPOKE");
    let cert = x509::pem_chain(&row.cert, "npm").unwrap().remove(0);
    (authority, Pair { cert, key: npm.vault.open(row).unwrap() })
}

#[tokio::test]
async fn a_leaf_outside_the_name_constraint_is_refused_under_any_key() {
    for kind in npm::KINDS {
        let (authority, issuer) = npms(kind).await;
        let span = span(DAY, now(), Some(&issuer)).unwrap();
        let leaf =
            certify(Role::Leaf, "X-Y-1.EVENTFLOW-HUB", keys::key("Ed448"), Some(&issuer), span).unwrap();
        let bundle = authority.issue_bundle(SPOKE_ID, vec![hub_address()], now()).unwrap();
        let forged = || (vec![leaf.cert.clone(), issuer.cert.clone()], leaf.key.clone_key());
        let (client, name) = impostor(&bundle, forged());
        let server = tls::server_config(&authority, HUB_ID, "EVENTFLOW-HUB").unwrap();
        let server = server_at(&server, now());
        let (told, error) = refused(client_at(&client, now()), name, server.clone()).await;
        says(&error, &["the peer", "outside of what its issuer may sign", "issue the bundle anew"]);
        says(&told, &["this side", "refused by the peer"]);
        // As a server too: who may sign for spokes can't make hubs.
        let mut masked = (*server).clone();
        masked.cert_resolver = single(forged().0, forged().1);
        let (client, name) = tls::client_config(&bundle, None).unwrap();
        let (error, _) = refused(client_at(&client, now()), name, masked.into()).await;
        says(&error, &["the peer", "outside of what its issuer may sign"]);
    }
}

/// A leaf as it should be, but without names.
struct Nameless(Shape);

impl BuilderProfile for Nameless {
    fn get_issuer(&self, subject: &Name) -> Name {
        self.0.get_issuer(subject)
    }

    fn get_subject(&self) -> Name {
        self.0.get_subject()
    }

    fn build_extensions(
        &self,
        key: SubjectPublicKeyInfoRef<'_>,
        issuer_key: SubjectPublicKeyInfoRef<'_>,
        certificate: &TbsCertificate,
    ) -> Result<Vec<Extension>, Error> {
        let mut made = self.0.build_extensions(key, issuer_key, certificate)?;
        made.retain(|extension| extension.extn_id.to_string() != "2.5.29.17");
        Ok(made)
    }
}

#[tokio::test]
async fn a_leaf_without_names_is_refused_under_any_key() {
    for kind in npm::KINDS {
        let (authority, issuer) = npms(kind).await;
        let key = keys::key("Ed448");
        let own = IssuerKey::load(&key).unwrap();
        let shape = Shape::new(Role::Leaf, SPOKE_ID, Some(&issuer.cert)).unwrap();
        let times = x509_cert::Certificate::from_der(&issuer.cert).unwrap();
        let times = times.tbs_certificate().validity();
        let leaf = CertificateBuilder::new(
            Nameless(shape),
            SerialNumber::from(7_u32),
            Validity::new(times.not_before, times.not_after),
            SubjectPublicKeyInfoOwned::from_der(own.public()).unwrap(),
        );
        let signer = IssuerKey::load(&issuer.key).unwrap();
        let leaf = leaf.unwrap().build::<_, Signature>(&signer).unwrap().to_der().unwrap();
        let bundle = authority.issue_bundle(SPOKE_ID, vec![hub_address()], now()).unwrap();
        let (client, name) = impostor(&bundle, (vec![leaf.into(), issuer.cert.clone()], key));
        let server = tls::server_config(&authority, HUB_ID, "EVENTFLOW-HUB").unwrap();
        let (_, error) = refused(client_at(&client, now()), name, server_at(&server, now())).await;
        says(&error, &[SPOKE_ID, "exactly one DNS name", "it has 0", "issued by the hub"]);
    }
}

#[tokio::test]
async fn a_key_that_cannot_sign_is_named() {
    let (_, issuer) = npms("ed448").await;
    let span = span(DAY, now(), Some(&issuer)).unwrap();
    let key = FreshKey::generate().unwrap();
    let public = read_public_key(key.public_key()).unwrap();
    let mut broken = issuer.clone();
    broken.key = rustls::pki_types::PrivatePkcs8KeyDer::from(vec![0x30, 0]).into();
    let error = certify_public(SPOKE_ID, &public, &broken, span).unwrap_err();
    says(&error, &[SPOKE_ID, "of a kind that can't sign here", "Ed448", "P-521"]);
}

#[tokio::test]
async fn a_signature_of_an_unknown_kind_is_left_to_people() {
    let npm = Npm::read("mixed-p256-ed448");
    let table = npm.table();
    {
        let mut rows = table.0.lock().unwrap();
        let row = rows.iter_mut().find(|row| row.id == "EVENTFLOW-HUB").unwrap();
        let der = npm::with_sha224(x509::pem_chain(&row.cert, "npm").unwrap().remove(0).to_vec());
        row.cert = to_pem("CERTIFICATE", &der);
    }
    let before = standing(&table);
    let error = establish(&table, &npm.vault, &names(), Lifetimes::default(), now()).await.unwrap_err();
    says(&error, &["EVENTFLOW-HUB", "isn't known here (1.2.840.10045.4.3.1)", "stays as it is", "SHA-512"]);
    assert_eq!(standing(&table), before);
}
