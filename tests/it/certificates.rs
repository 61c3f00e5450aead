//! Promise: only peers with a certificate of the hub's own authority are let in, and each refusal says which
//! certificate, why, and what to do.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use eventflow::{
    pki::{
        Authority, Bundle, CertificateRows, Lifetimes, Names, PkiError, Vault, authority, provider, tls,
        vault,
    },
    spoke::{ConnectError, Publish, Spoke, SpokeConfig},
    wire::HubAddress,
};
use rcgen::{CertificateParams, DistinguishedName, DnType, Issuer, KeyPair, SanType};
use rustls::{
    ClientConfig, SignatureScheme,
    client::ResolvesClientCert,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName},
    sign::{CertifiedKey, SingleCertAndKey},
};
use sea_orm::ConnectionTrait;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::support::{PATIENCE, TestHub, engine, until};

const SPOKE: &str = "KEEN-WREN-MX000002.EVENTFLOW-SPOKE";
const CERTIFICATE: &str = "E_EVENTFLOW_CERTIFICATE";
const HOUR: Duration = Duration::from_secs(3_600);

/// The authority of a running hub, and what its intermediate for spokes signs with.
struct Issuing {
    authority: Authority,
    spokes: (CertificateDer<'static>, PrivateKeyDer<'static>),
}

impl Issuing {
    async fn of(hub: &TestHub) -> Self {
        let info = hub.handle.info();
        let phrase = vault::phrase_file(hub.data().join("key-phrase")).unwrap();
        let vault = Vault::new(phrase, 1_000).unwrap();
        let table = engine::store(&hub.database()).await;
        let names = Names { hub_id: info.id.clone(), ..Names::default() };
        let lifetimes = Lifetimes { spoke_leaf: HOUR, ..Lifetimes::default() };
        let now = SystemTime::now();
        let authority = authority::establish(&table, &vault, &names, lifetimes, now).await.unwrap();
        let row = table.current(&names.spoke_name).await.unwrap().unwrap();
        let key = vault.open(&row).unwrap();
        // A leaf comes with its intermediate.
        let leaf = authority.issue_spoke_leaf(SPOKE, now).unwrap();
        let spokes = (leaf.identity.chain()[1].clone(), key);
        table.close().await;
        Self { authority, spokes }
    }

    fn bundle(&self, hub: &TestHub, uid: &str, now: SystemTime) -> Bundle {
        self.authority.issue_bundle(uid, hub.bundle().hubs, now).unwrap()
    }

    /// A leaf that no hub would issue: with this UID and these DNS names.
    fn forged(&self, uid: &str, dns: &[&str]) -> Shown {
        let signer = KeyPair::try_from(&self.spokes.1).unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        let attribute = DnType::CustomDnType(vec![0, 9, 2342, 19_200_300, 100, 1, 1]);
        params.distinguished_name.push(attribute, uid);
        params.subject_alt_names =
            dns.iter().map(|name| SanType::DnsName((*name).try_into().unwrap())).collect();
        let issuer = Issuer::from_ca_cert_der(&self.spokes.0, &signer).unwrap();
        let leaf = params.signed_by(&key, &issuer).unwrap();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
        shown(vec![leaf.der().clone(), self.spokes.0.clone()], key)
    }
}

/// What a side shows of itself.
type Shown = Arc<SingleCertAndKey>;

fn shown(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Shown {
    let key = provider().key_provider.load_private_key(key).unwrap();
    Arc::new(SingleCertAndKey::from(CertifiedKey::new(chain, key)))
}

fn shown_by(bundle: &Bundle) -> Shown {
    let identity = bundle.identity().unwrap();
    shown(identity.chain().to_vec(), identity.key().clone_key())
}

#[derive(Debug)]
struct Nothing;

impl ResolvesClientCert for Nothing {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}

/// A client that trusts the hub and asks for it rightly, but shows something else.
fn showing(hub: &TestHub, shown: Arc<dyn ResolvesClientCert>) -> (Arc<ClientConfig>, ServerName<'static>) {
    let (config, name) = tls::client_config(&hub.bundle(), None).unwrap();
    let mut config = (*config).clone();
    config.client_auth_cert_resolver = shown;
    (Arc::new(config), name)
}

/// Dials the hub up to its first byte; a client learns only there whether it was let in.
async fn dial(hub: &TestHub, config: Arc<ClientConfig>, name: ServerName<'static>) -> Result<(), PkiError> {
    let dialing = async {
        let stream = TcpStream::connect(hub.handle.info().address).await?;
        let mut stream = TlsConnector::from(config).connect(name, stream).await?;
        stream.read_u8().await
    };
    let byte = timeout(PATIENCE, dialing).await.expect("an answer in time");
    byte.map(|byte| assert_eq!(byte, 2)).map_err(|error| tls::explain(&error))
}

/// Until the hub has counted so many handshakes that failed for this reason.
async fn counted(hub: &TestHub, reason: &str, count: u64) {
    until(reason, || async { hub.handle.metrics().hub.handshakes_failed.get(reason) == Some(&count) }).await;
}

/// Until the hub's log table has a row that says all of this.
async fn logged(hub: &TestHub, parts: &[&str]) {
    let database = engine::open(&hub.database()).await;
    let database = &database;
    until(&format!("the log says {parts:?}"), || async move {
        let rows = database.query_all_raw(engine::statement(
            database,
            "SELECT message || ' ' || error FROM log",
            [],
        ));
        let rows = rows.await.unwrap();
        let texts = rows.iter().map(|row| row.try_get_by_index::<String>(0).unwrap());
        texts.into_iter().any(|text| parts.iter().all(|part| text.contains(part)))
    })
    .await;
}

fn says(error: &PkiError, code: &str, parts: &[&str]) {
    let text = error.to_string();
    assert_eq!(error.code(), code, "{text}");
    for part in parts {
        assert!(text.contains(part), "{text:?} must contain {part:?}");
    }
}

#[tokio::test]
async fn the_wrong_authority_is_refused_by_both_ends() {
    let (hub, other) = (TestHub::start().await, TestHub::start().await);
    let (config, name) = showing(&hub, shown_by(&other.bundle()));
    let error = dial(&hub, config, name).await.unwrap_err();
    says(&error, CERTIFICATE, &["this side", "not issued under the root", "issue the bundle anew"]);
    counted(&hub, "certificate", 1).await;
    logged(&hub, &["handshake with 127.0.0.1:", "not issued under the root", "issue the bundle anew"]).await;

    // The client's end is the first to notice when it trusts another root.
    let stranger = SpokeConfig::from_bundle(other.bundle())
        .hub(hub.handle.info().address.ip().to_string(), hub.handle.info().address.port());
    let error = Spoke::connect(stranger).await.unwrap_err();
    let ConnectError::Refused { fault, .. } = &error else { panic!("a final refusal, not {error}") };
    assert_eq!(fault.code, CERTIFICATE);
    assert!(error.to_string().contains("root"), "{error}");
    counted(&hub, "certificate", 2).await;
    other.stop().await;
    hub.stop().await;
}

#[tokio::test]
async fn an_expired_leaf_is_refused() {
    let hub = TestHub::start().await;
    let issuing = Issuing::of(&hub).await;
    let expired = issuing.bundle(&hub, SPOKE, SystemTime::now() - 3 * HOUR);
    let (config, name) = showing(&hub, shown_by(&expired));
    let error = dial(&hub, config, name).await.unwrap_err();
    says(&error, CERTIFICATE, &["this side", "expired", "renew it"]);
    counted(&hub, "certificate", 1).await;
    logged(&hub, &["handshake with", "leaf", "expired at", "gets a new bundle"]).await;

    // A spoke doesn't even dial with it.
    says(
        &expired.check(SystemTime::now()).unwrap_err(),
        "E_EVENTFLOW_CERTIFICATE_EXPIRED",
        &[SPOKE, "expired"],
    );
    // While it held it would have been let in, as one that holds is.
    let holds = issuing.bundle(&hub, SPOKE, SystemTime::now());
    let (config, name) = showing(&hub, shown_by(&holds));
    dial(&hub, config, name).await.unwrap();
    hub.stop().await;
}

#[tokio::test]
async fn a_client_without_certificate_is_refused() {
    let hub = TestHub::start().await;
    let (config, name) = showing(&hub, Arc::new(Nothing));
    let error = dial(&hub, config, name).await.unwrap_err();
    says(&error, CERTIFICATE, &["this side", "is missing", "present the leaf and intermediate"]);
    counted(&hub, "certificate", 1).await;
    logged(&hub, &["the peer", "is missing", "present the leaf and intermediate"]).await;
    hub.stop().await;
}

#[tokio::test]
async fn a_leaf_must_name_its_bearer_exactly_once() {
    let hub = TestHub::start().await;
    let issuing = Issuing::of(&hub).await;
    let (lower, other) = (SPOKE.to_ascii_lowercase(), "other.eventflow-spoke");
    for (count, (dns, reason)) in [
        (vec![], "exactly one DNS name as its subject alternative name, it has 0"),
        (vec![&*lower, other], "exactly one DNS name as its subject alternative name, it has 2"),
        (vec![other], "which is not its UID"),
    ]
    .into_iter()
    .enumerate()
    {
        let (config, name) = showing(&hub, issuing.forged(SPOKE, &dns));
        let error = dial(&hub, config, name).await.unwrap_err();
        says(&error, CERTIFICATE, &["this side", "is refused by the peer", "issue the bundle anew"]);
        counted(&hub, "certificate", count as u64 + 1).await;
        logged(&hub, &[SPOKE, reason, "get one issued by the hub"]).await;
    }
    // Forged rightly it is let in: it was the names that were judged.
    let (config, name) = showing(&hub, issuing.forged(SPOKE, &[&lower]));
    dial(&hub, config, name).await.unwrap();
    hub.stop().await;
}

#[tokio::test]
async fn a_name_that_lives_elsewhere_ends_the_handshake() {
    let hub = TestHub::start().await;
    let bundle = hub.bundle();
    let id = hub.handle.info().id.clone();
    for (count, wrong) in
        ["any.OTHER-HUB", "CALM-OTTER-MX000001.EVENTFLOW-HUB", "localhost"].into_iter().enumerate()
    {
        let (config, _) = tls::client_config(&bundle, None).unwrap();
        let error = dial(&hub, config, wrong.try_into().unwrap()).await.unwrap_err();
        says(&error, "E_EVENTFLOW_INVALID_HOSTNAME", &["doesn't live at this address", "correct"]);
        counted(&hub, "hostname", count as u64 + 1).await;
    }
    logged(&hub, &["a hub that doesn't live here", "any.<hub name>"]).await;
    for right in ["any.EVENTFLOW-HUB".to_owned(), id.to_ascii_lowercase(), id] {
        let (config, _) = tls::client_config(&bundle, None).unwrap();
        dial(&hub, config, right.try_into().unwrap()).await.unwrap();
    }
    hub.stop().await;
}

#[tokio::test]
async fn a_spoke_refuses_a_hub_that_shows_a_spokes_leaf() {
    let hub = TestHub::start().await;
    let issuing = Issuing::of(&hub).await;
    let bundle = issuing.bundle(&hub, SPOKE, SystemTime::now());
    let mut impostor =
        (*tls::server_config(&issuing.authority, &hub.handle.info().id, "EVENTFLOW-HUB").unwrap()).clone();
    impostor.cert_resolver = shown_by(&bundle);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let impostor = TlsAcceptor::from(Arc::new(impostor));
    let posing = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(mut stream) = impostor.accept(stream).await {
                let _ = stream.write_u8(2).await;
            }
        }
    });
    for id in [None, Some(hub.handle.info().id.clone())] {
        let mut config = SpokeConfig::from_bundle(hub.bundle());
        config.hubs = vec![HubAddress { id, host: address.ip().to_string(), port: address.port() }];
        let error = Spoke::connect(config).await.unwrap_err();
        let ConnectError::Refused { fault, tried } = &error else { panic!("a final refusal, not {error}") };
        assert_eq!(fault.code, CERTIFICATE);
        for part in [SPOKE, "is no hub's", "set it in the bundle"] {
            assert!(fault.message.contains(part), "{:?} must contain {part:?}", fault.message);
        }
        assert!(tried[0].address.contains(&address.to_string()), "{tried:?}");
    }
    posing.abort();
    hub.stop().await;
}

#[tokio::test]
async fn a_handshake_that_stands_still_is_cut_in_time() {
    let handshake = Duration::from_millis(50);
    let hub = TestHub::with(|config| config.limits.handshake = handshake).await;
    let began = tokio::time::Instant::now();
    let mut silent = TcpStream::connect(hub.handle.info().address).await.unwrap();
    let read = timeout(PATIENCE, silent.read_u8()).await.expect("the hub ends it");
    assert!(read.is_err() && began.elapsed() >= handshake, "{read:?}");
    counted(&hub, "timeout", 1).await;
    logged(
        &hub,
        &["handshake with 127.0.0.1:", "wasn't done after 50ms", "is a TLS client at the other end?"],
    )
    .await;

    hub.stop().await;
}

#[tokio::test]
async fn handshakes_that_fail_again_and_again_fill_no_table() {
    let hub = TestHub::start().await;
    for _ in 0..40 {
        let mut link = TcpStream::connect(hub.handle.info().address).await.unwrap();
        link.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        // Until the hub ends it.
        let _ = link.read_to_end(&mut Vec::new()).await;
    }
    counted(&hub, "tls", 40).await;
    logged(&hub, &["handshake with 127.0.0.1:"]).await;
    let database = engine::open(&hub.database()).await;
    let rows = database.query_one_raw(engine::statement(
        &database,
        "SELECT count(*) FROM log WHERE message LIKE 'handshake%'",
        [],
    ));
    let rows: i64 = rows.await.unwrap().unwrap().try_get_by_index(0).unwrap();
    assert!((1..=3).contains(&rows), "{rows} rows for 40 failures");
    hub.stop().await;
}

#[tokio::test]
async fn what_speaks_no_tls_is_told_apart() {
    let hub = TestHub::start().await;
    let mut plain = TcpStream::connect(hub.handle.info().address).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    counted(&hub, "tls", 1).await;
    logged(&hub, &["doesn't speak TLS", "check address and port"]).await;

    // So is one that hangs up.
    drop(TcpStream::connect(hub.handle.info().address).await.unwrap());
    counted(&hub, "transport", 1).await;
    assert_eq!(hub.handle.metrics().hub.links["npm"], 0, "none of them was a link");
    hub.stop().await;
}

#[tokio::test]
async fn several_links_may_bear_one_name_and_each_is_who_its_certificate_says() {
    let hub = TestHub::start().await;
    let issuing = Issuing::of(&hub).await;
    let bundle = issuing.bundle(&hub, SPOKE, SystemTime::now());
    let connect = || Spoke::connect(SpokeConfig::from_bundle(bundle.clone()));
    let (one, two, operator) = (connect().await.unwrap(), connect().await.unwrap(), hub.spoke().await);
    assert_eq!(hub.handle.metrics().hub.links["v1"], 3);
    for (spoke, id) in [(&one, "e1"), (&two, "e2"), (&operator, "e3")] {
        spoke.publish(Publish::new("orders", "created", "p").id(id)).await.unwrap();
    }
    for (id, uid) in [("e1", SPOKE), ("e2", SPOKE), ("e3", hub.bundle().uid().unwrap().as_str())] {
        assert_eq!(operator.show(id).await.unwrap().1.publisher.as_deref(), Some(uid));
    }
    for spoke in [one, two, operator] {
        spoke.close().await;
    }
    hub.stop().await;
}
