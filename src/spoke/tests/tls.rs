//! Over TCP and TLS, with certificates of a real authority.

use tokio::{net::TcpListener, task::JoinHandle};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::{
    pki::{
        Authority, DEFAULT_HUB_NAME,
        testing::{HUB_ID, authority, bundle},
        tls::server_config,
    },
    spoke::ConnectError,
};

/// Listens, and takes one link after the other until one gets through TLS.
async fn listen(authority: &Authority) -> (u16, JoinHandle<FakeLink>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = TlsAcceptor::from(server_config(authority, HUB_ID, DEFAULT_HUB_NAME).unwrap());
    let accepted = tokio::spawn(async move {
        loop {
            let (tcp, _) = listener.accept().await.unwrap();
            if let Ok(io) = acceptor.accept(tcp).await {
                return FakeLink { io: Box::new(io), reader: Reader::new(Limits::default()) };
            }
        }
    });
    (port, accepted)
}

#[tokio::test]
async fn a_publish_goes_through_tls_and_close_reads_to_the_end() {
    let authority = authority().await;
    let (port, accepted) = listen(&authority).await;
    let config = SpokeConfig::from_bundle(bundle(&authority)).hub("127.0.0.1", port);
    let (spoke, link) = tokio::join!(Spoke::connect(config), async {
        let mut link = accepted.await.unwrap();
        link.welcome(limits()).await;
        link
    });
    let (spoke, mut link) = (spoke.unwrap(), link);
    let large = "x".repeat(700_000);
    let publish = publish("a").data(&large).unwrap();
    let (done, ()) = tokio::join!(spoke.publish(publish), async {
        let (req, _) = link.publish().await;
        link.committed(req, true, 1).await;
    });
    assert_eq!(done.unwrap().seq, 1);
    let (drained, ()) = tokio::join!(spoke.close(), async {
        assert_eq!(link.next().await, None);
        link.io.shutdown().await.unwrap();
    });
    assert!(drained.is_clean());
}

#[tokio::test]
async fn a_hub_of_another_root_is_refused_at_once_by_a_sentence() {
    let (ours, theirs) = (authority().await, authority().await);
    let (port, accepted) = listen(&theirs).await;
    let config = SpokeConfig::from_bundle(bundle(&ours)).hub("127.0.0.1", port);
    let error = Spoke::connect(config).await.unwrap_err();
    assert!(matches!(error, ConnectError::Refused { .. }), "{error:?}");
    assert_eq!(error.code(), code::CERTIFICATE);
    assert!(error.to_string().contains("root"), "{error}");
    accepted.abort();
}

#[tokio::test]
async fn a_hub_that_refuses_our_certificate_is_understood() {
    let (ours, theirs) = (authority().await, authority().await);
    let (port, accepted) = listen(&theirs).await;
    // Trusts their hub, but presents a leaf that they didn't issue.
    let mut credentials = bundle(&ours);
    credentials.root = theirs.root_pem();
    let mut config = SpokeConfig::from_bundle(bundle(&ours)).hub("127.0.0.1", port);
    config.bundle = credentials.clone();
    // The bundle itself doesn't hold together, which connecting says first.
    assert!(matches!(Spoke::connect(config.clone()).await, Err(ConnectError::Credentials(_))));
    let unchecked = crate::spoke::dial::Tls::unchecked(credentials);
    let error = Spoke::connect_by(config, Arc::new(unchecked), super::credentials()).await.unwrap_err();
    assert_eq!(error.code(), code::CERTIFICATE);
    assert!(error.to_string().contains("refused by the peer"), "{error}");
    accepted.abort();
}

#[tokio::test]
async fn nobody_at_the_port_is_told_at_the_deadline() {
    let authority = authority().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let mut config = SpokeConfig::from_bundle(bundle(&authority)).hub("127.0.0.1", port);
    config.connect_deadline = Duration::from_millis(300);
    let error = Spoke::connect(config).await.unwrap_err();
    assert_eq!(error.code(), code::NO_HUB);
    assert!(error.to_string().contains(&format!("127.0.0.1:{port}: can't connect")), "{error}");
}
