//! Moments: in milliseconds since 1970, as events have them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::{
    event::{EventId, Position},
    wire::{Since, StartAt},
};

/// A moment in milliseconds since 1970 (UTC), as an event's `timestamp`: made from such a number, or from a
/// [`SystemTime`], whose fraction of a millisecond is cut off. Whatever takes a time takes either.
///
/// ```
/// use std::time::{Duration, UNIX_EPOCH};
/// use eventflow::spoke::Timestamp;
///
/// let moment = UNIX_EPOCH + Duration::from_millis(1_750_000_000_000);
/// assert_eq!(Timestamp::from(moment), Timestamp::from(1_750_000_000_000));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The milliseconds since 1970; negative before.
    #[must_use]
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// What the clock of this machine says.
    #[must_use]
    pub fn now() -> Self {
        SystemTime::now().into()
    }
}

impl From<i64> for Timestamp {
    fn from(millis: i64) -> Self {
        Self(millis)
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let millis = |span: Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Self(match time.duration_since(UNIX_EPOCH) {
            Ok(since) => millis(since),
            // Rounded down too: a fraction before 1970 belongs to the millisecond before.
            Err(before) => -millis(before.duration() + Duration::from_nanos(999_999)),
        })
    }
}

impl From<Timestamp> for Since {
    fn from(time: Timestamp) -> Self {
        Self::Time(time.as_millis())
    }
}

impl From<Timestamp> for StartAt {
    fn from(time: Timestamp) -> Self {
        Self::Time(time.as_millis())
    }
}

impl From<EventId> for StartAt {
    fn from(id: EventId) -> Self {
        Self::Id(id)
    }
}

impl From<Position> for Since {
    fn from(position: Position) -> Self {
        Self::Position(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_cut_off_on_both_sides_of_1970() {
        let at = |nanos: i64| {
            let span = Duration::from_nanos(nanos.unsigned_abs());
            let time = if nanos < 0 { UNIX_EPOCH - span } else { UNIX_EPOCH + span };
            Timestamp::from(time).as_millis()
        };
        assert_eq!([at(0), at(999_999), at(1_000_000)], [0, 0, 1]);
        assert_eq!([at(-1), at(-1_000_000), at(-1_000_001)], [-1, -1, -2]);
    }
}
