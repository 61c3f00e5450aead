//! Whole handshakes over a pipe in memory, by any clock.

use std::{
    io,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rustls::{
    ClientConfig, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime},
    sign::{CertifiedKey, SingleCertAndKey},
    time_provider::TimeProvider,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

use super::Forged;
use crate::pki::{
    Bundle, PkiError, provider,
    tls::{client_config, explain},
};

/// What a hub sends first.
pub(crate) const READY: u8 = 2;

pub(crate) type Ends =
    (io::Result<client::TlsStream<DuplexStream>>, io::Result<server::TlsStream<DuplexStream>>);

/// Both ends of a handshake; the client also reads the hub's first byte, as it learns only there whether
/// its certificate was accepted.
pub(crate) async fn shake(
    client: Arc<ClientConfig>,
    name: ServerName<'static>,
    server: Arc<ServerConfig>,
) -> Ends {
    let (near, far) = duplex(64 * 1024);
    let dial = async {
        let mut stream = TlsConnector::from(client).connect(name, near).await?;
        let byte = stream.read_u8().await?;
        assert_eq!(byte, READY);
        Ok(stream)
    };
    let accept = async {
        let mut stream = TlsAcceptor::from(server).accept(far).await?;
        stream.write_u8(READY).await?;
        stream.flush().await?;
        Ok(stream)
    };
    tokio::time::timeout(Duration::from_secs(20), async { tokio::join!(dial, accept) }).await.unwrap()
}

/// A handshake that must fail; the explanations of both ends.
pub(crate) async fn refused(
    client: Arc<ClientConfig>,
    name: ServerName<'static>,
    server: Arc<ServerConfig>,
) -> (PkiError, PkiError) {
    let (client, server) = shake(client, name, server).await;
    let client = client.expect_err("the client must fail");
    let server = server.expect_err("the server must fail");
    (explain(&client), explain(&server))
}

/// What shows this chain, whoever asks.
pub(crate) fn single(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Arc<SingleCertAndKey> {
    let key = provider().key_provider.load_private_key(key).unwrap();
    Arc::new(SingleCertAndKey::from(CertifiedKey::new(chain, key)))
}

/// The client of a good bundle that shows another certificate.
pub(crate) fn impostor(bundle: &Bundle, (chain, key): Forged) -> (Arc<ClientConfig>, ServerName<'static>) {
    let (config, name) = client_config(bundle, None).unwrap();
    let mut config = (*config).clone();
    config.client_auth_cert_resolver = single(chain, key);
    (Arc::new(config), name)
}

#[track_caller]
pub(crate) fn says(error: &PkiError, parts: &[&str]) {
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "{text:?} must contain {part:?}");
    }
}

/// The same client by a clock that stands.
pub(crate) fn client_at(config: &ClientConfig, now: SystemTime) -> Arc<ClientConfig> {
    let mut config = config.clone();
    config.time_provider = Arc::new(Stands(now));
    Arc::new(config)
}

/// The same server by a clock that stands.
pub(crate) fn server_at(config: &ServerConfig, now: SystemTime) -> Arc<ServerConfig> {
    let mut config = config.clone();
    config.time_provider = Arc::new(Stands(now));
    Arc::new(config)
}

#[derive(Debug)]
struct Stands(SystemTime);

impl TimeProvider for Stands {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(self.0.duration_since(UNIX_EPOCH).ok()?))
    }
}
