//! The record channel: TLS, the ready byte, records.

use std::{io, sync::Arc, time::Duration};

use rustls::{
    ClientConfig, RootCertStore, client::Resumption, crypto::ring::default_provider, pki_types::ServerName,
    version::TLS13,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::certificates::Credentials;

/// Between units.
const UNIT: u8 = 0x1f;
/// After each record.
const RECORD: u8 = 0x1e;
/// The one byte that a server sends when it's ready.
pub const READY: u8 = 0x02;

/// How long npm waits for the ready byte.
const CONNECT: Duration = Duration::from_secs(5);

/// What a client hears.
pub type Incoming = Reader<ReadHalf<TlsStream<TcpStream>>>;
/// What a client says.
pub type Outgoing = Writer<WriteHalf<TlsStream<TcpStream>>>;

/// A client's end, until it's split.
pub struct Channel {
    stream: TlsStream<TcpStream>,
}

impl Channel {
    /// Connects, with the hub's id for SNI, and compares the whole first chunk with the ready byte.
    ///
    /// # Errors
    /// What TLS or the connection says; anything else than the ready byte.
    pub async fn connect(address: (&str, u16), hub: &str, credentials: &Credentials) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(hub.to_owned()).map_err(io::Error::other)?;
        let connecting = async {
            let mut stream = TlsConnector::from(client_config(credentials)).connect(name, stream).await?;
            let mut chunk = [0; 64];
            let read = stream.read(&mut chunk).await?;
            if chunk[..read] == [READY] {
                Ok(Self { stream })
            } else {
                Err(io::Error::other(format!("not ready: {:?}", &chunk[..read])))
            }
        };
        timeout(CONNECT, connecting).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }

    /// What the server presents, leaf first.
    pub fn peer_chain(&self) -> Vec<Vec<u8>> {
        let chain = self.stream.get_ref().1.peer_certificates().unwrap_or_default();
        chain.iter().map(|certificate| certificate.to_vec()).collect()
    }

    pub fn split(self) -> (Incoming, Outgoing) {
        split(self.stream)
    }
}

/// Both directions of either end.
pub fn split<S: AsyncRead + AsyncWrite>(stream: S) -> (Reader<ReadHalf<S>>, Writer<WriteHalf<S>>) {
    let (reader, writer) = tokio::io::split(stream);
    (Reader { stream: reader, buffer: Vec::new() }, Writer { stream: writer })
}

pub struct Reader<R> {
    stream: R,
    buffer: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    /// The next record; none: the link is over. It may be dropped and called again.
    pub async fn receive(&mut self) -> Option<Vec<String>> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == RECORD) {
                let record: Vec<u8> = self.buffer.drain(..=end).collect();
                let units = record[..end].split(|byte| *byte == UNIT);
                return Some(units.map(|unit| String::from_utf8(unit.to_vec()).unwrap()).collect());
            }
            if self.stream.read_buf(&mut self.buffer).await.is_ok_and(|read| read > 0) {
                continue;
            }
            return None;
        }
    }
}

pub struct Writer<W> {
    stream: W,
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    /// A link that is over is noticed by its reader.
    pub async fn send(&mut self, units: &[&str]) {
        let mut record = units.join(std::str::from_utf8(&[UNIT]).unwrap_or_default()).into_bytes();
        record.push(RECORD);
        let _ = self.stream.write_all(&record).await;
        let _ = self.stream.flush().await;
    }

    /// Says goodbye.
    pub async fn end(&mut self) {
        let _ = self.stream.shutdown().await;
    }
}

/// As node's: the root alone is trusted, the own chain is leaf and intermediate.
pub fn client_config(credentials: &Credentials) -> Arc<ClientConfig> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_root_certificates(roots(credentials))
        .with_client_auth_cert(credentials.chain.clone(), credentials.key.clone_key())
        .unwrap();
    config.resumption = Resumption::disabled();
    Arc::new(config)
}

pub fn roots(credentials: &Credentials) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(credentials.root.clone()).unwrap();
    roots
}
