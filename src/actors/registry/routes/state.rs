//! What [`Routes`] show of themselves.

use serde::Serialize;

use super::{LinkId, Routes, Wish};
use crate::actors::registry::late::RingState;

/// Who wants what, in numbers.
#[derive(Debug, Serialize)]
pub struct RoutesState {
    /// Links that want anything.
    pub links: usize,
    /// Subscriptions of v1 links.
    pub subscriptions: usize,
    /// Subscriptions that replay and are about to be live.
    pub seats: usize,
    /// Consumers: their events come elsewhere, but count as wanted.
    pub consumers: usize,
    /// Subscriptions of npm links.
    pub npm_subscriptions: usize,
    /// The last sequence number that was dispatched.
    pub head: u64,
    /// Events that no link wanted, kept for late subscribers.
    pub ring: RingState,
}

impl Routes {
    /// How they stand.
    #[must_use]
    pub fn state(&self) -> RoutesState {
        let wishes = self.links.values().flat_map(|link| link.wishes.keys());
        let mut counts = (0, 0, 0);
        for wish in wishes {
            match wish {
                Wish::Subscription(_) => counts.0 += 1,
                Wish::Consumer(_) => counts.1 += 1,
                Wish::Npm(_) => counts.2 += 1,
                Wish::Seat(_) => {}
            }
        }
        let (subscriptions, consumers, npm_subscriptions) = counts;
        let (links, ring) = (self.links.len(), self.ring.state());
        RoutesState {
            links,
            subscriptions,
            seats: self.seats.len(),
            consumers,
            npm_subscriptions,
            head: self.head,
            ring,
        }
    }

    /// How much a link wants.
    #[must_use]
    pub fn wishes_of(&self, link: LinkId) -> usize {
        self.links.get(&link).map_or(0, |link| link.wishes.len())
    }
}
