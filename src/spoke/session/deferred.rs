//! Subscriptions and consumers of an earlier link that a busy hub couldn't restore yet: many clients may come back at
//! once.

use std::collections::BTreeMap;

use tokio::time::Instant;

use crate::{spoke::command::Key, wire::Req};

/// What is asked for again.
#[derive(Debug)]
pub(super) enum Wanted {
    Subscription(Key),
    Consumer(Key),
}

/// What waits to be asked for again on this link; the next one begins anew.
#[derive(Debug, Default)]
pub(super) struct Deferred(BTreeMap<(Instant, Req), Wanted>);

impl Deferred {
    pub(super) fn push(&mut self, wanted: Wanted, req: Req, due: Instant) {
        self.0.insert((due, req), wanted);
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.0.first_key_value().map(|((due, _), _)| *due)
    }

    /// One that is to be asked for now.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Wanted> {
        self.0.first_entry().filter(|first| first.key().0 <= now).map(|first| first.remove())
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
