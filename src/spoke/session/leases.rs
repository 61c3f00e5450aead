//! The claims of the present link that are not settled, and when each is to be extended.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

use crate::{
    spoke::{Hold, command::Key},
    wire::Token,
};

/// One look for all claims rather than a timer for each: those that are due within this part of a lease of each other
/// are extended together.
const TOGETHER: u32 = 12;

#[derive(Debug, Default)]
pub(super) struct Leases {
    held: HashMap<Token, Held>,
    /// When to look next for claims that are to be extended.
    look: Option<Instant>,
}

/// A claim that is not settled.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) hold: Hold,
    /// Whose it is.
    pub(super) key: Key,
    /// How long the hub holds it without a word of ours; none: as long as the link.
    lease: Option<Duration>,
    /// When it is to be extended; none: never.
    due: Option<Instant>,
    /// The hub was asked to extend it and hasn't answered.
    asked: bool,
}

impl Leases {
    pub(super) fn add(&mut self, token: Token, key: Key, hold: Hold, lease: Option<Duration>, now: Instant) {
        let due = lease.map(|lease| now + lease / 3);
        self.look_at(due);
        self.held.insert(token, Held { hold, key, lease, due, asked: false });
    }

    /// It is being settled: from here on it isn't held, unless it is put back.
    pub(super) fn take(&mut self, token: Token) -> Option<Held> {
        self.held.remove(&token)
    }

    /// The hub couldn't settle it: it is held as before.
    pub(super) fn put_back(&mut self, token: Token, held: Held) {
        self.look_at(held.due);
        self.held.insert(token, held);
    }

    /// The claims that are to be extended now.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Token> {
        if self.look.is_none_or(|look| now < look) {
            return Vec::new();
        }
        let mut extended = Vec::new();
        let (mut next, mut shortest) = (None, Duration::MAX);
        for (token, held) in &mut self.held {
            let (Some(lease), Some(due)) = (held.lease, held.due) else { continue };
            shortest = shortest.min(lease);
            if due <= now {
                held.due = Some(now + lease / 3);
                // One question at a time: a hub that doesn't answer isn't asked more and more.
                if !std::mem::replace(&mut held.asked, true) {
                    extended.push(*token);
                }
            }
            next = next.into_iter().chain(held.due).min();
        }
        self.look = next.map(|next| next.max(now + shortest / TOGETHER));
        extended
    }

    /// The hub is asked to hold it for this time from now on. Says whether it is held.
    pub(super) fn ask(&mut self, token: Token, time: Duration, now: Instant) -> bool {
        let Some(held) = self.held.get_mut(&token) else { return false };
        // The next word would shorten it: it is said when as much is left as usual.
        let usual = held.lease.map_or(Duration::ZERO, |lease| lease * 2 / 3);
        held.due = held.lease.map(|_| now + (time / 3).max(time.saturating_sub(usual)));
        self.look_at(self.held.get(&token).and_then(|held| held.due));
        true
    }

    /// The hub has extended it.
    pub(super) fn extended(&mut self, token: Token) {
        if let Some(held) = self.held.get_mut(&token) {
            held.asked = false;
        }
    }

    /// The hub couldn't extend it: when to ask again, if ever.
    pub(super) fn not_extended(&mut self, token: Token, again: Option<Instant>) {
        if let Some(held) = self.held.get_mut(&token) {
            held.asked = false;
            held.due = held.lease.and(again);
            self.look_at(again);
        }
    }

    /// When to look again, if ever.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.look.filter(|_| !self.held.is_empty())
    }

    /// All of them are lost: the link is gone. Gives how many there were.
    pub(super) fn lose_all(&mut self) -> usize {
        let held = std::mem::take(self).held;
        held.values().for_each(|held| held.hold.lose());
        held.len()
    }

    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    fn look_at(&mut self, due: Option<Instant>) {
        self.look = self.look.into_iter().chain(due).min();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(30);

    fn leases(now: Instant, tokens: impl IntoIterator<Item = Token>) -> Leases {
        let mut leases = Leases::default();
        for token in tokens {
            leases.add(token, 1, Hold::new(), Some(LEASE), now);
        }
        leases
    }

    fn at(start: Instant, secs: u64) -> Instant {
        start + Duration::from_secs(secs)
    }

    #[test]
    fn a_claim_is_extended_at_a_third_of_its_lease_and_not_before() {
        let start = Instant::now();
        let mut leases = leases(start, [1]);
        assert_eq!(leases.next_due(), Some(at(start, 10)));
        assert!(leases.due(at(start, 9)).is_empty());
        assert_eq!(leases.due(at(start, 10)), [1]);
        leases.extended(1);
        assert!(leases.due(at(start, 19)).is_empty());
        assert_eq!(leases.due(at(start, 20)), [1]);
        leases.take(1).unwrap();
        assert_eq!((leases.next_due(), leases.len()), (None, 0));
    }

    #[test]
    fn claims_that_are_due_close_together_are_extended_together() {
        let start = Instant::now();
        let mut leases = leases(start, [1]);
        leases.add(2, 1, Hold::new(), Some(LEASE), at(start, 1));
        leases.add(3, 1, Hold::new(), Some(LEASE), at(start, 2));
        assert_eq!(leases.due(at(start, 10)), [1]);
        let look = leases.next_due().unwrap();
        assert_eq!(look, at(start, 10) + LEASE / TOGETHER);
        let mut both = leases.due(look);
        both.sort_unstable();
        assert_eq!(both, [2, 3]);
    }

    #[test]
    fn a_hub_that_is_silent_is_asked_once_and_one_that_is_busy_again() {
        let start = Instant::now();
        let mut leases = leases(start, [1]);
        assert_eq!(leases.due(at(start, 10)), [1]);
        assert!(leases.due(at(start, 21)).is_empty());
        leases.not_extended(1, Some(at(start, 23)));
        assert_eq!(leases.next_due(), Some(at(start, 23)));
        assert_eq!(leases.due(at(start, 23)), [1]);
        // A hub without leases.
        leases.not_extended(1, None);
        assert!(leases.due(at(start, 900)).is_empty());
    }

    #[test]
    fn what_is_held_for_longer_by_hand_is_not_shortened() {
        let start = Instant::now();
        let mut leases = leases(start, [1]);
        assert!(leases.ask(1, Duration::from_secs(600), start));
        assert!(leases.due(at(start, 570)).is_empty());
        assert_eq!(leases.due(at(start, 580)), [1]);
        assert!(!leases.ask(2, LEASE, start));
    }
}
