//! Milliseconds since 1970 to the database's `DATETIME` and back, always in UTC.

use chrono::{DateTime, NaiveDateTime};

/// A moment as the entities hold it; what lies beyond the calendar becomes 1970.
pub(super) fn datetime(ms: i64) -> NaiveDateTime {
    DateTime::from_timestamp_millis(ms).unwrap_or_default().naive_utc()
}

/// A moment as milliseconds since 1970.
pub(super) fn millis(at: NaiveDateTime) -> i64 {
    at.and_utc().timestamp_millis()
}

/// A moment as text with exactly three decimals. Texts of this form sort like the moments.
pub(super) fn text(ms: i64) -> String {
    datetime(ms).format("%F %T%.3f").to_string()
}

/// A moment as a value of a statement.
pub(super) fn value(ms: i64) -> sea_orm::Value {
    sea_orm::Value::ChronoDateTime(Some(datetime(ms)))
}

/// A moment for people; one beyond the calendar as its number.
pub(super) fn utc(ms: i64) -> String {
    match DateTime::from_timestamp_millis(ms) {
        Some(at) => at.format("%F %T%.3f UTC").to_string(),
        None => format!("{ms} ms since 1970"),
    }
}

/// Now, in milliseconds since 1970.
pub(super) fn now() -> i64 {
    chrono::Utc::now().timestamp_millis()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_sort_like_moments() {
        assert_eq!(text(0), "1970-01-01 00:00:00.000");
        assert_eq!(text(1_796_030_712_007), "2026-11-30 09:25:12.007");
        assert!(text(999) < text(1_000));
        assert_eq!(millis(datetime(1_796_030_712_007)), 1_796_030_712_007);
    }

    #[test]
    fn moments_beyond_the_calendar_are_shown_as_numbers() {
        assert_eq!(utc(1_796_030_712_007), "2026-11-30 09:25:12.007 UTC");
        assert_eq!(utc(i64::MAX), "9223372036854775807 ms since 1970");
    }
}
