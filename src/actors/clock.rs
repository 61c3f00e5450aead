//! The wall clock, as actors read it before they hand the time to what decides.

use std::time::{SystemTime, UNIX_EPOCH};

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
