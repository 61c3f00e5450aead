//! The reading half of a link: bytes to records, a batch per read. It waits for the connection to take each batch,
//! so that a busy hub slows the peer down through TCP.

use tokio::io::{AsyncRead, AsyncReadExt};

use super::{Connection, message::Inbound};
use crate::{
    actors::mail::Handle,
    metrics::Metrics,
    wire::{Limits, Reader},
};

/// Reads until the end of the stream, an error, a record that breaks the limits, or the end of the connection.
pub async fn run<R: AsyncRead + Unpin>(
    mut socket: R,
    limits: Limits,
    connection: Handle<Connection>,
    metrics: Metrics,
) {
    let mut reader = Reader::new(limits);
    loop {
        let mut inbound = Inbound::default();
        match socket.read_buf(reader.spare()).await {
            Ok(0) => inbound.ended = Some(None),
            Ok(read) => {
                metrics.hub().bytes_in.add(read as u64);
                loop {
                    match reader.next() {
                        Ok(Some(record)) => inbound.records.push(record),
                        Ok(None) => break,
                        Err(error) => {
                            inbound.broken = Some(error);
                            break;
                        }
                    }
                }
            }
            Err(error) => inbound.ended = Some(Some(error)),
        }
        let last = inbound.ended.is_some();
        let broken = inbound.broken.is_some();
        if connection.deliver::<Inbound>(inbound).await.is_err() || last {
            return;
        }
        if broken {
            // What follows means nothing; it is read to the end so that the last words arrive.
            drain(socket).await;
            // The connection may have ended by its own deadline.
            let _ = connection.deliver::<Inbound>(Inbound { ended: Some(None), ..Inbound::default() }).await;
            return;
        }
    }
}

async fn drain<R: AsyncRead + Unpin>(mut socket: R) {
    let mut sink = vec![0; 4096];
    while socket.read(&mut sink).await.is_ok_and(|read| read > 0) {}
}
