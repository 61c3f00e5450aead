//! What the hub refused for now (it is busy, say, or its database is full) and is to be told again.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;

use crate::{
    spoke::command::{Answering, ClaimId, Key, Settle},
    wire::Req,
};

/// The least wait before the hub is told again.
const LEAST_WAIT: Duration = Duration::from_millis(20);

/// How a claim is to end, and who waits for that.
#[derive(Debug)]
pub(super) struct Settling {
    pub(super) claim: ClaimId,
    pub(super) how: Settle,
    pub(super) answer: Option<Answering<()>>,
}

/// What is told again.
#[derive(Debug)]
pub(super) enum Later {
    /// The hub still counts the claim as held: forgotten here, it would keep its event and its credit for as long
    /// as the link lives.
    Settle(Settling),
    /// A subscription of an earlier link: many clients may come back at once.
    Subscribe(Key),
    /// The same for a consumer.
    Consume(Key),
}

/// What waits to be told again, on this link.
#[derive(Debug, Default)]
pub(super) struct Deferred(BTreeMap<(Instant, Req), Later>);

impl Deferred {
    pub(super) fn push(&mut self, later: Later, req: Req, wait: Duration, now: Instant) {
        self.0.insert((now + wait.max(LEAST_WAIT), req), later);
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.0.first_key_value().map(|((due, _), _)| *due)
    }

    /// One that is to be told again now.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Later> {
        self.0.first_entry().filter(|first| first.key().0 <= now).map(|first| first.remove())
    }

    /// The end of the link: what was to be settled is void, the rest begins anew with the next link.
    pub(super) fn void(&mut self) -> impl Iterator<Item = Settling> + use<> {
        std::mem::take(&mut self.0).into_values().filter_map(|later| match later {
            Later::Settle(settling) => Some(settling),
            Later::Subscribe(_) | Later::Consume(_) => None,
        })
    }
}
