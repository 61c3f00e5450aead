//! Which events of a run came, and how often each.

use std::{
    sync::atomic::{AtomicU8, AtomicU64, Ordering},
    time::Duration,
};

use tokio::time::Instant;

use super::finding::Count;

/// Without anything new for so long nothing more is expected.
const STALLED: Duration = Duration::from_secs(30);
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(1);

/// Counts by number, from several tasks at once.
pub(super) struct Tally {
    seen: Vec<AtomicU8>,
    total: AtomicU64,
    /// What isn't of this run.
    foreign: AtomicU64,
}

impl Tally {
    pub(super) fn new(events: usize) -> Self {
        let seen = std::iter::repeat_with(AtomicU8::default).take(events).collect();
        Self { seen, total: AtomicU64::new(0), foreign: AtomicU64::new(0) }
    }

    /// It came.
    pub(super) fn see(&self, number: Option<usize>) {
        match number.and_then(|number| self.seen.get(number)) {
            Some(seen) => {
                // Beyond 255 times it would begin again at 0: it stays at what says "too often".
                if seen.fetch_add(1, Ordering::Relaxed) == u8::MAX {
                    seen.store(u8::MAX, Ordering::Relaxed);
                }
            }
            None => drop(self.foreign.fetch_add(1, Ordering::Relaxed)),
        }
        self.total.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// How many came, how many of them more than once, and what isn't of this run; each beside what it must be.
    pub(super) fn counts(&self, what: &str) -> Vec<Count> {
        let times = || self.seen.iter().map(|seen| seen.load(Ordering::Relaxed));
        let came = times().filter(|times| *times > 0).count();
        let doubled = times().filter(|times| *times > 1).count();
        let foreign = self.foreign.load(Ordering::Relaxed);
        vec![
            Count::new(what, self.seen.len() as u64, came as u64),
            Count::new(&format!("{what} twice"), 0, doubled as u64),
            Count::new(&format!("{what} of others"), 0, foreign),
        ]
    }
}

/// Waits until a number is reached, or doesn't change any more.
pub(super) async fn reaches(target: u64, number: impl Fn() -> u64) {
    let (mut last, mut since) = (number(), Instant::now());
    while last < target && since.elapsed() < STALLED {
        tokio::time::sleep(LOOK).await;
        let now = number();
        if now != last {
            (last, since) = (now, Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_doubled_or_foreign_shows() {
        let tally = Tally::new(3);
        for number in [Some(0), Some(0), Some(2), Some(3), None] {
            tally.see(number);
        }
        let counts = tally.counts("handled");
        let found: Vec<_> = counts.iter().map(|count| (count.expected, count.found)).collect();
        assert_eq!(found, [(3, 2), (0, 1), (0, 2)]);
        assert_eq!(tally.total(), 5);
        assert!(counts.iter().all(|count| count.is_wrong()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_number_that_stands_still_is_not_awaited_for_ever() {
        let began = Instant::now();
        reaches(2, || 1).await;
        assert!(began.elapsed() >= STALLED && began.elapsed() < 2 * STALLED);
    }
}
