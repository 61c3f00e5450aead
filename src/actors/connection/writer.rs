//! The writing half of a link: encodes what is queued, sends it in as few writes as it can.

use std::{io, time::Duration};

use bytes::{BufMut, BytesMut};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    sync::mpsc::UnboundedReceiver,
    time::timeout,
};

use crate::{
    actors::outlet::{Answered, Frame, Outlet, Queued},
    event::{Fault, code},
    metrics::{CutReason, Metrics},
    wire::{self, ControlCharacter, Reply},
};

/// Bytes are handed to TLS when so many are encoded.
const CHUNK: usize = 64 * 1024;
/// A buffer that grew beyond this is given back.
const KEEP: usize = 4 * CHUNK;
/// Frames taken from the queue at once.
const FRAMES: usize = 64;

/// Sends frames until the last words or the end of the queue, then closes the writing side: true. A peer that
/// takes nothing for `stall`, or whose socket fails, is cut: false.
pub async fn run<W: AsyncWrite + Unpin>(
    socket: W,
    mut frames: UnboundedReceiver<Queued>,
    outlet: Outlet,
    metrics: Metrics,
    stall: Duration,
) -> bool {
    let mut writer = Writer { socket, buffer: BytesMut::new(), outlet: outlet.clone(), metrics, stall };
    let served = writer.serve(&mut frames).await;
    if let Err(error) = &served {
        let (reason, fault) = match error.kind() {
            io::ErrorKind::TimedOut => (
                CutReason::WriteTimeout,
                Fault::retryable(
                    code::LINK_SILENT,
                    format!("this link took no bytes for {stall:?}: read what the hub sends"),
                    Duration::from_secs(1),
                ),
            ),
            _ => (
                CutReason::Transport,
                Fault::retryable(code::LINK_LOST, format!("the link broke: {error}"), Duration::ZERO),
            ),
        };
        outlet.cut(reason, fault);
    }
    served.is_ok()
}

struct Writer<W> {
    socket: W,
    buffer: BytesMut,
    outlet: Outlet,
    metrics: Metrics,
    stall: Duration,
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    async fn serve(&mut self, frames: &mut UnboundedReceiver<Queued>) -> io::Result<()> {
        let mut queued = Vec::with_capacity(FRAMES);
        while frames.recv_many(&mut queued, FRAMES).await > 0 {
            for Queued { frame, weight } in queued.drain(..) {
                match frame {
                    Frame::Bye(words) => {
                        if let Some(words) = words {
                            self.encode(&Reply::Bye(words));
                        }
                        self.send().await?;
                        return self.close().await;
                    }
                    // The other end doesn't take these; the last words are to get through.
                    _ if self.outlet.is_stuck() => {}
                    frame => self.frame(frame).await?,
                }
                drop(weight);
            }
            self.send().await?;
            if frames.is_empty() {
                self.flush().await?;
                self.outlet.wrote();
                if self.buffer.capacity() > KEEP {
                    self.buffer = BytesMut::new();
                }
            }
        }
        self.close().await
    }

    async fn frame(&mut self, frame: Frame) -> io::Result<()> {
        match frame {
            Frame::Answers(answers) => {
                for Answered { req, result, permit } in answers {
                    self.encode(&match result {
                        Ok(answer) => Reply::Ok { req, answer },
                        Err(fault) => Reply::Err { req, fault },
                    });
                    drop(permit);
                    self.send_if_full().await?;
                }
            }
            Frame::Item(req, event) => {
                self.encode(&Reply::Item { req, event: *event });
                self.send_if_full().await?;
            }
            Frame::Events(events) => {
                for push in events {
                    wire::event_head(&mut self.buffer, &push.subs, push.event.seq);
                    self.buffer.put_slice(push.event.tail());
                    self.send_if_full().await?;
                }
            }
            Frame::Claims(claims) => {
                for claim in claims {
                    let seq = claim.event.original;
                    wire::claim_head(&mut self.buffer, claim.sub, claim.token, claim.attempt, seq);
                    self.buffer.put_slice(claim.event.tail());
                    self.send_if_full().await?;
                }
            }
            Frame::Npm(events) => {
                for event in events {
                    self.buffer.put_slice(event.npm());
                    self.send_if_full().await?;
                }
            }
            Frame::Raw(bytes) => {
                self.buffer.put_slice(&bytes);
                self.send_if_full().await?;
            }
            // The caller has dealt with it.
            Frame::Bye(_) => {}
        }
        Ok(())
    }

    fn encode(&mut self, reply: &Reply) {
        let start = self.buffer.len();
        if let Err(ControlCharacter { .. }) = reply.encode(&mut self.buffer) {
            // Only a row that somebody else wrote into the database can hold one.
            self.buffer.truncate(start);
            let req = match reply {
                Reply::Item { req, .. } | Reply::Ok { req, .. } | Reply::Err { req, .. } => *req,
                _ => return,
            };
            let fault = Fault::refused(
                code::CONTROL_CHARACTER,
                "the stored event has a control character, which can't be sent: read it from the database",
            );
            // Our own words hold none.
            let _ = Reply::Err { req, fault }.encode(&mut self.buffer);
        }
    }

    async fn send_if_full(&mut self) -> io::Result<()> {
        if self.buffer.len() >= CHUNK { self.send().await } else { Ok(()) }
    }

    async fn send(&mut self) -> io::Result<()> {
        // In chunks, so that a slow peer shows progress within the time-out.
        for chunk in self.buffer.chunks(CHUNK) {
            timeout(self.stall, self.socket.write_all(chunk))
                .await
                .map_err(|_| io::ErrorKind::TimedOut)??;
        }
        self.metrics.hub().bytes_out.add(self.buffer.len() as u64);
        self.outlet.sent(self.buffer.len());
        self.buffer.clear();
        Ok(())
    }

    async fn flush(&mut self) -> io::Result<()> {
        timeout(self.stall, self.socket.flush()).await.map_err(|_| io::ErrorKind::TimedOut)?
    }

    async fn close(&mut self) -> io::Result<()> {
        timeout(self.stall, self.socket.shutdown()).await.map_err(|_| io::ErrorKind::TimedOut)?
    }
}
