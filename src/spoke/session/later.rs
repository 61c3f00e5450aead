//! What the hub has refused for now, until it is asked again.

use std::time::Duration;

use tokio::time::Instant;

use super::Asked;

/// The least wait, whatever the hub says.
const LEAST_WAIT: Duration = Duration::from_millis(20);

/// Requests that are to be made again on the same link. As many as were under way at most: each claim, each
/// subscription and each consumer has one.
#[derive(Debug, Default)]
pub(super) struct Later {
    waiting: Vec<Asked>,
    due: Option<Instant>,
}

impl Later {
    /// Of those refused together, the first one sets the wait.
    pub(super) fn add(&mut self, asked: Asked, wait: Duration, now: Instant) {
        self.due.get_or_insert(now + wait.max(LEAST_WAIT));
        self.waiting.push(asked);
    }

    /// All of them, once the wait is over.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<Asked> {
        if self.due.is_some_and(|due| due <= now) { self.take() } else { Vec::new() }
    }

    /// All of them, now.
    pub(super) fn take(&mut self) -> Vec<Asked> {
        self.due = None;
        std::mem::take(&mut self.waiting)
    }

    /// When to look again, if ever.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
