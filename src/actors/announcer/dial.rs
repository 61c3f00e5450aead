//! One dial of a peer hub: a link of its own that says one record and ends.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{error::Elapsed, timeout},
};
use tokio_rustls::TlsConnector;

use super::Credentials;
use crate::{
    pki::{self, PkiError},
    store::HubRow,
    wire,
};

/// Why a peer couldn't be told.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// Nobody answers there, or the link broke.
    #[error("no link to it: {0}")]
    Link(#[from] io::Error),
    /// It isn't who it should be, or we aren't for it.
    #[error(transparent)]
    Tls(#[from] PkiError),
    /// Its first byte is another one.
    #[error("it is no Eventflow hub: its first byte is {0:#04x}")]
    NotReady(u8),
    /// It takes too long.
    #[error("no answer in time")]
    Late(#[from] Elapsed),
}

/// Dials the peer, waits until it is ready, says `record` and ends the link.
pub async fn tell(
    peer: &HubRow,
    credentials: &Credentials,
    record: &[u8],
    deadline: Duration,
) -> Result<(), DialError> {
    timeout(deadline, async {
        let (config, name) = credentials(&peer.id)?;
        let stream = TcpStream::connect((peer.external_ip.as_str(), peer.external_port)).await?;
        let mut stream = TlsConnector::from(config)
            .connect(name, stream)
            .await
            .map_err(|error| pki::tls::explain(&error))?;
        // Who refuses our certificate says so only now.
        let first = stream.read_u8().await.map_err(|error| pki::tls::explain(&error))?;
        if first != wire::READY {
            return Err(DialError::NotReady(first));
        }
        stream.write_all(record).await?;
        stream.shutdown().await?;
        // Read to the end: a socket that is closed with something unread may take back what it sent.
        let mut rest = [0; 1024];
        while matches!(stream.read(&mut rest).await, Ok(1..)) {}
        Ok(())
    })
    .await?
}
