//! What may be un-acked at once.

use crate::wire::LinkLimits;

/// The hub's publish window, as the client keeps it: in requests and in bytes, whichever is full first; a
/// lone request always fits. One that goes beyond would be cut by the hub.
#[derive(Debug, Default)]
pub(super) struct Window {
    most_requests: u32,
    most_bytes: u64,
    requests: u32,
    bytes: u64,
}

impl Window {
    /// The empty window of a new link.
    pub(super) fn of(limits: &LinkLimits) -> Self {
        Self {
            most_requests: limits.window_requests.max(1),
            most_bytes: limits.window_bytes,
            ..Self::default()
        }
    }

    /// Takes a place, if there is one.
    #[must_use]
    pub(super) fn take(&mut self, weight: usize) -> bool {
        let weight = weight as u64;
        let fits = self.requests < self.most_requests
            && (self.requests == 0 || self.bytes.saturating_add(weight) <= self.most_bytes);
        if fits {
            self.requests += 1;
            self.bytes += weight;
        }
        fits
    }

    /// Gives a place back.
    pub(super) fn give_back(&mut self, weight: usize) {
        self.requests = self.requests.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(weight as u64);
    }
}
