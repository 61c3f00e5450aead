//! Whole handshakes: who is let in, and what both ends are told who aren't.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use rustls::{HandshakeKind, ProtocolVersion, ServerConfig, pki_types::ServerName, sign::CertifiedKey};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::pki::{
    Authority,
    testing::{handshake::*, *},
};

fn served(authority: &Authority) -> Arc<ServerConfig> {
    server_config(authority, HUB_ID, "EVENTFLOW-HUB").unwrap()
}

/// The server of an authority that shows another certificate.
fn masked(authority: &Authority, (chain, key): Forged) -> Arc<ServerConfig> {
    let mut config = (*served(authority)).clone();
    config.cert_resolver = single(chain, key);
    Arc::new(config)
}

#[tokio::test]
async fn a_spoke_and_a_hub_prove_themselves_to_each_other() {
    let authority = authority().await;
    let bundle = bundle(&authority);
    let lower = HUB_ID.to_ascii_lowercase();
    for expect in [Some(HUB_ID), Some(lower.as_str()), None] {
        let (config, name) = client_config(&bundle, expect).unwrap();
        let (client, server) = shake(config, name, served(&authority)).await;
        let (client, server) = (client.unwrap(), server.unwrap());
        let spoke = peer_uid(server.get_ref().1.peer_certificates().unwrap()).unwrap();
        assert_eq!(&*spoke, SPOKE_ID);
        let hub = peer_uid(client.get_ref().1.peer_certificates().unwrap()).unwrap();
        assert_eq!(&*hub, HUB_ID);
        assert_eq!(client.get_ref().1.protocol_version(), Some(ProtocolVersion::TLSv1_3));
    }
}

#[tokio::test]
async fn no_session_is_resumed() {
    let authority = authority().await;
    let (config, name) = client_config(&bundle(&authority), None).unwrap();
    let server = served(&authority);
    for _ in 0..2 {
        let (client, _server) = shake(Arc::clone(&config), name.clone(), Arc::clone(&server)).await;
        let client = client.unwrap();
        assert_eq!(client.get_ref().1.handshake_kind(), Some(HandshakeKind::Full));
        assert_eq!(client.get_ref().1.tls13_tickets_received(), 0);
    }
}

#[tokio::test]
async fn a_hub_of_another_root_is_refused() {
    let (ours, theirs) = (authority().await, authority().await);
    let (config, name) = client_config(&bundle(&ours), None).unwrap();
    let (client, server) = refused(config, name, served(&theirs)).await;
    says(&client, &["the peer", "not issued under the root that this side trusts", "issue the bundle anew"]);
    says(&server, &["this side", "not issued under the root that the peer trusts"]);
    assert_eq!(client.code(), "E_EVENTFLOW_CERTIFICATE");
}

#[tokio::test]
async fn a_spoke_of_another_root_is_refused() {
    let (ours, theirs) = (authority().await, authority().await);
    let other = bundle(&theirs).identity().unwrap();
    let (config, name) = impostor(&bundle(&ours), (other.chain().to_vec(), other.key().clone_key()));
    let (client, server) = refused(config, name, served(&ours)).await;
    says(&server, &["the peer", "not issued under the root"]);
    says(&client, &["this side", "refused by the peer", "issue the bundle anew"]);
}

#[tokio::test]
async fn an_expired_leaf_is_refused() {
    let authority = authority().await;
    let old = authority.issue_spoke_leaf(SPOKE_ID, SystemTime::now() - 100 * DAY).unwrap().identity;
    let (config, name) = impostor(&bundle(&authority), (old.chain().to_vec(), old.key().clone_key()));
    let (client, server) = refused(config, name, served(&authority)).await;
    says(&server, &["the peer", "expired at", "renew theirs by themselves"]);
    says(&client, &["this side", "expired", "renew it"]);
}

#[tokio::test]
async fn a_leaf_of_the_future_is_refused() {
    let authority = authority().await;
    let early = authority.issue_spoke_leaf(SPOKE_ID, SystemTime::now() + DAY).unwrap().identity;
    let (config, name) = impostor(&bundle(&authority), (early.chain().to_vec(), early.key().clone_key()));
    let (_, server) = refused(config, name, served(&authority)).await;
    says(&server, &["holds only from", "compare the clocks"]);
}

#[tokio::test]
async fn a_client_without_certificate_is_refused() {
    let authority = authority().await;
    let (config, name) = client_config(&bundle(&authority), None).unwrap();
    let mut config = (*config).clone();
    config.client_auth_cert_resolver = Arc::new(Nobody);
    let (client, server) = refused(Arc::new(config), name, served(&authority)).await;
    says(&server, &["the peer", "is missing", "present the leaf and intermediate"]);
    says(&client, &["this side", "is missing"]);
}

#[derive(Debug)]
struct Nobody;

impl rustls::client::ResolvesClientCert for Nobody {
    fn resolve(&self, _: &[&[u8]], _: &[rustls::SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}

#[tokio::test]
async fn a_spokes_leaf_is_no_hub() {
    let authority = authority().await;
    let spoke = bundle(&authority).identity().unwrap();
    let server = masked(&authority, (spoke.chain().to_vec(), spoke.key().clone_key()));
    for expect in [None, Some(HUB_ID)] {
        let (config, name) = client_config(&bundle(&authority), expect).unwrap();
        let (client, _) = refused(config, name, Arc::clone(&server)).await;
        says(&client, &[SPOKE_ID, "is no hub's", "EVENTFLOW-HUB"]);
    }
}

#[tokio::test]
async fn another_hub_than_the_dialed_one_is_refused() {
    let authority = authority().await;
    let other = "BOLD-TERN-MX000009.EVENTFLOW-HUB";
    let (config, name) = client_config(&bundle(&authority), Some(other)).unwrap();
    // It answers for the other's name but has its own certificate.
    let server = server_config(&authority, other, "EVENTFLOW-HUB").unwrap();
    let (client, _) = refused(config, name, server).await;
    says(&client, &[HUB_ID, other, "which was dialed"]);
}

#[tokio::test]
async fn a_hub_with_another_name_is_asked_for_by_the_bundles_hub_name() {
    let authority = authority().await;
    let mut bundle = bundle(&authority);
    bundle.hubs[0].id = None;
    bundle.hub_name = Some("OTHER-HUB".to_owned());
    let (config, name) = client_config(&bundle, None).unwrap();
    assert_eq!(name.to_str(), "any.OTHER-HUB");
    let (client, _) = refused(Arc::clone(&config), name, served(&authority)).await;
    assert_eq!(client.code(), "E_EVENTFLOW_INVALID_HOSTNAME");
    // Even if it answered to that name, its certificate is under another.
    let server = server_config(&authority, HUB_ID, "OTHER-HUB").unwrap();
    let (_, name) = client_config(&bundle, None).unwrap();
    let (client, _) = refused(config, name, server).await;
    says(&client, &[HUB_ID, "OTHER-HUB", "EVENTFLOW_HUB_NAME"]);
}

#[tokio::test]
async fn a_leaf_without_dns_name_is_refused_whatever_its_common_name() {
    let authority = authority().await;
    let forged = forged(&authority, &[SPOKE_ID], &[], Some("evil.example"));
    let (config, name) = impostor(&bundle(&authority), forged);
    let (client, server) = refused(config, name, served(&authority)).await;
    says(&server, &[SPOKE_ID, "exactly one DNS name", "it has 0"]);
    says(&client, &["this side", "whose log says why"]);
}

#[tokio::test]
async fn a_leaf_with_two_dns_names_is_refused() {
    let authority = authority().await;
    let forged = forged(&authority, &[SPOKE_ID], &[SPOKE_ID, "two.eventflow-spoke"], None);
    let (config, name) = impostor(&bundle(&authority), forged);
    let (_, server) = refused(config, name, served(&authority)).await;
    says(&server, &["exactly one DNS name", "it has 2"]);
}

#[tokio::test]
async fn a_dns_name_that_is_not_the_uid_is_refused() {
    let authority = authority().await;
    let forged = forged(&authority, &[HUB_ID], &["one.eventflow-spoke"], None);
    let (config, name) = impostor(&bundle(&authority), forged);
    let (_, server) = refused(config, name, served(&authority)).await;
    says(&server, &[HUB_ID, "one.eventflow-spoke", "not its UID"]);
}

#[tokio::test]
async fn a_leaf_without_uid_is_refused() {
    let authority = authority().await;
    let forged = forged(&authority, &[], &[SPOKE_ID], Some(SPOKE_ID));
    let (config, name) = impostor(&bundle(&authority), forged);
    let (_, server) = refused(config, name, served(&authority)).await;
    says(&server, &["exactly one UID"]);
}

#[tokio::test]
async fn a_name_outside_the_issuers_constraint_is_refused() {
    let authority = authority().await;
    let outside = "X-Y-1.EVENTFLOW-HUB";
    let (config, name) = impostor(&bundle(&authority), forged(&authority, &[outside], &[outside], None));
    let (client, server) = refused(config, name, served(&authority)).await;
    assert_eq!(server.code(), "E_EVENTFLOW_CERTIFICATE");
    says(&client, &["refused by the peer"]);
    // As a server too: the spokes' intermediate can't make hubs.
    let server = masked(&authority, forged(&authority, &[outside], &[outside], None));
    let (config, name) = client_config(&bundle(&authority), None).unwrap();
    let (client, _) = refused(config, name, server).await;
    assert_eq!(client.code(), "E_EVENTFLOW_CERTIFICATE");
}

#[tokio::test]
async fn a_client_that_asks_for_another_hub_is_refused() {
    let authority = authority().await;
    let (config, _) = client_config(&bundle(&authority), None).unwrap();
    for asked in ["any.other-hub", "localhost", SPOKE_ID] {
        let name = ServerName::try_from(asked).unwrap();
        let (client, server) = refused(Arc::clone(&config), name, served(&authority)).await;
        assert_eq!(client.code(), "E_EVENTFLOW_INVALID_HOSTNAME");
        assert_eq!(server.code(), "E_EVENTFLOW_INVALID_HOSTNAME");
        says(&server, &["doesn't live here", "any.<hub name>"]);
    }
    // An address in place of a name sends no SNI at all.
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let (_, server) = refused(config, name, served(&authority)).await;
    assert_eq!(server.code(), "E_EVENTFLOW_INVALID_HOSTNAME");
}

#[tokio::test]
async fn a_further_check_may_refuse_a_peer() {
    let authority = authority().await;
    let check: PeerCheck = Arc::new(|uid, chain| {
        assert_eq!(chain.len(), 2);
        if uid.as_str() != SPOKE_ID {
            return Ok(());
        }
        Err(PkiError::Revoked { certificate: uid.to_string(), remedy: "issue a new one".to_owned() })
    });
    let server = server_config_with(&authority, HUB_ID, "EVENTFLOW-HUB", Some(check)).unwrap();
    let (config, name) = client_config(&bundle(&authority), None).unwrap();
    // Both ends know that it was revoked, and so does each one's program by the code.
    let (client, explained) = refused(config, name, Arc::clone(&server)).await;
    for error in [&client, &explained] {
        assert_eq!(error.code(), "E_EVENTFLOW_CERTIFICATE_REVOKED");
    }
    says(&client, &["this side", "was revoked", "needs a new bundle"]);
    says(&explained, &["the peer", "was revoked"]);
    let other = authority.issue_bundle("A-B-2.EVENTFLOW-SPOKE", vec![], SystemTime::now()).unwrap();
    let (config, name) = client_config(&other, None).unwrap();
    let (client, server) = shake(config, name, server).await;
    client.unwrap();
    server.unwrap();
}

#[tokio::test]
async fn tls_1_2_is_refused() {
    let authority = authority().await;
    let (mut near, far) = duplex(64 * 1024);
    let dial = async {
        near.write_all(&tls12_hello()).await.unwrap();
        let mut answer = Vec::new();
        near.read_to_end(&mut answer).await.unwrap();
        answer
    };
    let accept = async { TlsAcceptor::from(served(&authority)).accept(far).await.map(drop) };
    let (answer, accepted) = tokio::join!(dial, accept);
    // An alert record: fatal, protocol_version.
    assert_eq!((answer[0], &answer[5..7]), (21, &[2, 70][..]), "{answer:?}");
    says(&explain(&accepted.unwrap_err()), &["TLS 1.3"]);
}

/// The ClientHello of a client that knows TLS 1.2 at most, with what it needs for an ECDHE handshake.
fn tls12_hello() -> Vec<u8> {
    let extensions = [
        vec![0, 10, 0, 4, 0, 2, 0, 29],      // groups: x25519
        vec![0, 11, 0, 2, 1, 0],             // point formats
        vec![0, 13, 0, 6, 0, 4, 8, 7, 4, 3], // signatures: ed25519, ecdsa p256
        vec![0, 23, 0, 0],                   // extended master secret
    ]
    .concat();
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0, 4, 0xC0, 0x2B, 0xC0, 0x2F, 1, 0]);
    body.extend(u16::try_from(extensions.len()).unwrap().to_be_bytes());
    body.extend(extensions);
    let length = u8::try_from(body.len()).unwrap();
    let mut record = vec![22, 3, 1, 0, length + 4, 1, 0, 0, length];
    record.extend(body);
    record
}

#[tokio::test]
async fn what_is_no_tls_is_said_to_be_none() {
    let authority = authority().await;
    let (mut near, far) = duplex(1024);
    near.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let error = TlsAcceptor::from(served(&authority)).accept(far).await.map(drop).unwrap_err();
    says(&explain(&error), &["doesn't speak TLS", "check address and port"]);

    let (near, far) = duplex(1024);
    drop(near);
    let error = TlsAcceptor::from(served(&authority)).accept(far).await.map(drop).unwrap_err();
    let error = explain(&error);
    assert!(error.is_retryable());
    says(&error, &["ended during the TLS handshake"]);
}

#[tokio::test]
async fn an_openssl_client_is_served() {
    let authority = authority().await;
    let bundle = bundle(&authority);
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let (chain, key, root) =
        (file("chain", &bundle.cert), file("key", bundle.key.expose()), file("root", &bundle.root));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let client = tokio::process::Command::new("openssl")
        .args(["s_client", "-quiet", "-verify_return_error", "-servername", "any.Eventflow-Hub"])
        .args(["-connect", &address])
        .args(
            [("-cert", &chain), ("-cert_chain", &chain), ("-key", &key), ("-CAfile", &root)]
                .iter()
                .flat_map(|(option, file)| [std::ffi::OsStr::new(*option), file.as_os_str()]),
        )
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .kill_on_drop(true)
        .spawn();
    let Ok(mut client) = client else {
        eprintln!("skipped: no `openssl` command on this machine");
        return;
    };
    let serve = async {
        let (socket, _) = listener.accept().await.unwrap();
        let mut stream = TlsAcceptor::from(served(&authority)).accept(socket).await.unwrap();
        assert_eq!(peer_uid(stream.get_ref().1.peer_certificates().unwrap()).unwrap().as_str(), SPOKE_ID);
        stream.write_u8(READY).await.unwrap();
        stream.flush().await.unwrap();
        assert_eq!(client.stdout.as_mut().unwrap().read_u8().await.unwrap(), READY);
    };
    tokio::time::timeout(Duration::from_secs(20), serve).await.unwrap();
}
