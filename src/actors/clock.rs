//! The wall clock, as actors read it before they hand the time to what decides.

use std::{
    sync::LazyLock,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

/// Now, in microseconds since 1970 (UTC); before that, 0.
#[must_use]
pub fn now_micros() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

/// Now, in milliseconds since 1970 (UTC).
#[must_use]
pub fn now_millis() -> i64 {
    i64::try_from(now_micros() / 1_000).unwrap_or(i64::MAX)
}

/// A moment by two clocks: what is kept in the database goes by the wall clock, and what only this start of the hub
/// knows by one that nobody sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// In milliseconds since 1970 (UTC).
    pub wall: i64,
    /// In milliseconds since some moment of this start.
    pub steady: u64,
}

impl Now {
    /// This moment.
    #[must_use]
    pub fn read() -> Self {
        static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
        let steady = u64::try_from(BEGAN.elapsed().as_millis()).unwrap_or(u64::MAX);
        Self { wall: now_millis(), steady }
    }
}
