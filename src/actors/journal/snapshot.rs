//! What a [`Journal`] tells about itself.

use actix::Handler;
use serde::Serialize;

use super::Journal;
use crate::actors::snapshot::{Snapshot, State};

/// How much waits, and how far it has come.
#[derive(Debug, Serialize)]
struct JournalState {
    /// Writes that wait for a transaction.
    queued: usize,
    /// What they count for, in bytes.
    queued_bytes: usize,
    /// Beyond it publishes are refused.
    queue_bytes_limit: usize,
    /// Writes of the transaction that is under way.
    committing: usize,
    /// The last sequence number that was given.
    last_seq: u64,
    /// It takes no publishes any more.
    closed: bool,
}

impl Handler<Snapshot> for Journal {
    type Result = State;

    fn handle(&mut self, _: Snapshot, _: &mut Self::Context) -> Self::Result {
        State::of(&JournalState {
            queued: self.queue.len(),
            queued_bytes: self.queued_bytes,
            queue_bytes_limit: self.config.queue_bytes,
            committing: self.committing,
            last_seq: self.sequence.last(),
            closed: self.closed,
        })
    }
}
