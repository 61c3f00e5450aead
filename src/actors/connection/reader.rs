//! The reading half of a link: bytes to records, a batch per read. It waits for the connection to take each batch,
//! so that a busy hub slows the peer down through TCP.

use tokio::io::{AsyncRead, AsyncReadExt};

use super::{Connection, message::Inbound};
use crate::{
    actors::{mail::Handle, outlet::Outlet},
    metrics::Metrics,
    wire::{self, Reader},
};

/// What a link must keep to, as far as reading goes.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Sizes of records.
    pub records: wire::Limits,
    /// npm publishes under way: nothing is read while there are more. Other links have a window that ends there.
    pub npm_publishes: usize,
}

/// What is read, at most, of a link that was cut, in bytes. Its socket stays open for the last words anyway.
const MOST_AFTER_CUT: usize = 256 * 1024;

/// Reads until the end of the stream, an error, a record that breaks the limits, or the end of the connection.
pub async fn run<R: AsyncRead + Unpin>(
    mut socket: R,
    limits: Limits,
    connection: Handle<Connection>,
    outlet: Outlet,
    metrics: Metrics,
) {
    let mut reader = Reader::new(limits.records);
    loop {
        outlet.within(limits.npm_publishes).await;
        let mut inbound = Inbound::default();
        match socket.read_buf(reader.spare()).await {
            Ok(0) => inbound.ended = Some(None),
            Ok(read) => {
                metrics.hub().bytes_in.add(read as u64);
                outlet.received(read);
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
        if connection.deliver::<Inbound>(inbound).await.is_err() || last {
            return;
        }
        // A record that breaks the limits cuts the link as well.
        if outlet.is_cut() {
            // What follows means nothing. Some of it is read, so that a peer that is still writing comes to read the
            // last words; a peer that floods is left to TCP.
            if drain(socket).await {
                // The connection may have ended by its own deadline.
                let _ =
                    connection.deliver::<Inbound>(Inbound { ended: Some(None), ..Inbound::default() }).await;
            }
            return;
        }
    }
}

/// Reads on without a look at what comes. True: the stream ended; false: more came than is worth reading.
async fn drain<R: AsyncRead + Unpin>(mut socket: R) -> bool {
    let mut sink = vec![0; 16 * 1024];
    let mut left = MOST_AFTER_CUT;
    while let Ok(read @ 1..) = socket.read(&mut sink).await {
        if read >= left {
            return false;
        }
        left -= read;
    }
    true
}
