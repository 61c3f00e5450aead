//! The hub's sequence: one number per dispatched event, which is also its time.

/// Gives sequence numbers: microseconds since 1970, raised by one where the clock didn't move on or went back.
#[derive(Debug, Clone, Copy)]
pub struct Sequence {
    last: u64,
}

/// A place in the sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The sequence number.
    pub seq: u64,
    /// The event's time, in milliseconds since 1970: that of `seq`, so that logs read in dispatch order.
    pub timestamp: i64,
}

impl Sequence {
    /// Goes on after `last`.
    #[must_use]
    pub fn after(last: u64) -> Self {
        Self { last }
    }

    /// The last number that was given.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The next place, at `now` microseconds since 1970.
    pub fn next(&mut self, now: u64) -> Place {
        self.last = now.max(self.last + 1);
        Place { seq: self.last, timestamp: millis(self.last) }
    }

    /// The first of so many numbers, one after the other, at `now` microseconds since 1970. Those that aren't used leave holes.
    pub fn block(&mut self, numbers: usize, now: u64) -> u64 {
        let first = self.next(now).seq;
        self.last = first.saturating_add((numbers as u64).saturating_sub(1));
        first
    }

    /// A time that parts what has its place from what comes: in milliseconds since 1970, every earlier place's time is
    /// below it, and no later one's.
    pub fn part(&mut self, now: u64) -> i64 {
        let first = now.max(self.last + 1).next_multiple_of(1_000);
        self.last = first - 1;
        millis(first)
    }
}

fn millis(micros: u64) -> i64 {
    i64::try_from(micros / 1_000).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_rises_whatever_the_clock_does() {
        let mut sequence = Sequence::after(0);
        assert_eq!(sequence.next(5_000), Place { seq: 5_000, timestamp: 5 });
        assert_eq!(sequence.next(5_000).seq, 5_001);
        assert_eq!(sequence.next(4_000).seq, 5_002);
        assert_eq!(sequence.next(9_000).seq, 9_000);
    }

    #[test]
    fn a_block_is_nobody_elses() {
        let mut sequence = Sequence::after(5_000);
        assert_eq!(sequence.block(3, 4_000), 5_001);
        assert_eq!(sequence.next(4_000).seq, 5_004);
        assert_eq!(sequence.block(1, 9_000), 9_000);
        assert_eq!(sequence.next(9_000).seq, 9_001);
    }

    #[test]
    fn a_parting_time_lies_between_what_was_and_what_comes() {
        for now in [1, 4_999, 5_000, 5_001, 5_999, 6_000, 6_001] {
            let mut sequence = Sequence::after(5_998);
            let before = sequence.next(5_999).timestamp;
            let parting = sequence.part(now);
            let after = sequence.next(now);
            assert!(before < parting && parting <= after.timestamp, "{before} {parting} {after:?}");
            assert!(after.seq > 5_999);
        }
    }
}
