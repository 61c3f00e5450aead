//! Handshakes that fail: a few lines per peer, reason and window. Whoever tries again and again fills neither table nor
//! log.

use std::{
    collections::HashMap,
    net::IpAddr,
    time::{Duration, Instant},
};

use crate::metrics::HandshakeFault;

/// A peer that fails again and again for the same reason within it is only counted.
pub const WINDOW: Duration = Duration::from_secs(10);
/// So many failures of a window are told: a person who tries things is to be answered.
const TOLD: u64 = 3;
/// Peers with their reasons that are told apart; those beyond are counted together.
const MOST: usize = if cfg!(test) { 3 } else { 1_024 };

/// Who failed lately.
#[derive(Debug, Default)]
pub struct Failures {
    /// By address and reason; no address: all those for whom there was no room.
    seen: HashMap<(Option<IpAddr>, HandshakeFault), Seen>,
}

#[derive(Debug)]
struct Seen {
    since: Instant,
    /// Failures that were told.
    told: u64,
    /// Failures beyond them.
    untold: u64,
    last: String,
}

/// Failures of a window that is over.
#[derive(Debug, PartialEq, Eq)]
pub struct Repeated {
    /// Whose; none: of several peers.
    pub peer: Option<IpAddr>,
    /// How many there were besides those that were told.
    pub times: u64,
    /// Why the last one failed.
    pub last: String,
}

impl Failures {
    /// A handshake with `peer` failed. True: it is to be told now; else it is counted.
    pub fn note(&mut self, peer: IpAddr, reason: HandshakeFault, text: &str, now: Instant) -> bool {
        let known = self.seen.contains_key(&(Some(peer), reason));
        let key = ((known || self.seen.len() < MOST).then_some(peer), reason);
        let fresh = Seen { since: now, told: 0, untold: 0, last: String::new() };
        let seen = self.seen.entry(key).or_insert(fresh);
        if seen.told < TOLD {
            seen.told += 1;
            return true;
        }
        seen.untold += 1;
        text.clone_into(&mut seen.last);
        false
    }

    /// Ends the windows that are over; those in which more failed are to be told. A peer that goes on begins a
    /// window that tells nothing at its begin.
    pub fn over(&mut self, now: Instant) -> Vec<Repeated> {
        let mut told = Vec::new();
        self.seen.retain(|(peer, _), seen| {
            if now.duration_since(seen.since) < WINDOW {
                return true;
            }
            let times = std::mem::take(&mut seen.untold);
            if times > 0 {
                told.push(Repeated { peer: *peer, times, last: std::mem::take(&mut seen.last) });
                seen.since = now;
            }
            times > 0
        });
        told
    }

    /// Windows that aren't over: peers, each with a reason.
    #[must_use]
    pub fn len(&self) -> usize {
        self.seen.len()
    }
}

#[cfg(test)]
mod tests {
    use super::{HandshakeFault::*, *};

    fn ip(last: u8) -> IpAddr {
        [127, 0, 0, last].into()
    }

    #[test]
    fn the_first_are_told_at_once_and_the_rest_as_a_number() {
        let (mut failures, start) = (Failures::default(), Instant::now());
        for _ in 0..TOLD {
            assert!(failures.note(ip(1), Tls, "a", start));
        }
        for _ in 0..1_000 {
            assert!(!failures.note(ip(1), Tls, "b", start));
        }
        assert!(failures.note(ip(2), Tls, "a", start), "another peer has a line of its own");
        assert!(failures.note(ip(1), Timeout, "t", start), "so has another reason");
        assert!(failures.over(start + WINDOW / 2).is_empty());
        let told = failures.over(start + WINDOW);
        assert_eq!(told, [Repeated { peer: Some(ip(1)), times: 1_000, last: "b".into() }]);
        assert!(!failures.note(ip(1), Tls, "c", start + WINDOW), "it goes on: the next window counts it");
        assert!(failures.note(ip(2), Tls, "a", start + WINDOW), "it had stopped");
        let told = failures.over(start + WINDOW * 2);
        assert_eq!(told, [Repeated { peer: Some(ip(1)), times: 1, last: "c".into() }]);
        assert!(failures.over(start + WINDOW * 3).is_empty());
        assert_eq!(failures.len(), 0, "who has stopped is forgotten");
    }

    #[test]
    fn peers_beyond_the_bound_are_counted_together() {
        let (mut failures, start) = (Failures::default(), Instant::now());
        let told = (0..100).filter(|last| failures.note(ip(*last), Tls, "a", start)).count() as u64;
        assert_eq!(told, MOST as u64 + TOLD, "each of those that have room, and a few of the others");
        assert_eq!(failures.len(), MOST + 1);
        let others = 100 - told;
        let told = failures.over(start + WINDOW);
        assert_eq!(told, [Repeated { peer: None, times: others, last: "a".into() }]);
    }
}
