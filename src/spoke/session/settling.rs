//! Claims on their way to their end, and those whose end the hub couldn't take yet.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;

use crate::{
    spoke::command::{Answering, ClaimId, Settle},
    wire::Req,
};

/// The least wait before a claim's end is told again.
const LEAST_WAIT: Duration = Duration::from_millis(20);

/// How a claim is to end, and who waits for that.
#[derive(Debug)]
pub(super) struct Settling {
    pub(super) claim: ClaimId,
    pub(super) how: Settle,
    pub(super) answer: Option<Answering<()>>,
}

/// What the hub refused for now (its database is full, say). The hub still counts these claims as held, so they
/// must be told again: forgotten here, they would keep their event and their credit for as long as the link lives.
#[derive(Debug, Default)]
pub(super) struct Deferred(BTreeMap<(Instant, Req), Settling>);

impl Deferred {
    pub(super) fn push(&mut self, settling: Settling, req: Req, wait: Duration, now: Instant) {
        self.0.insert((now + wait.max(LEAST_WAIT), req), settling);
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.0.first_key_value().map(|((due, _), _)| *due)
    }

    /// One that is to be told again now.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Settling> {
        self.0.first_entry().filter(|first| first.key().0 <= now).map(|first| first.remove())
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = Settling> + use<> {
        std::mem::take(&mut self.0).into_values()
    }
}
