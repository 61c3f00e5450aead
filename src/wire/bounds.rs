//! Times that a client may ask for, and the refusal of those that are out of range.

use std::{ops::RangeInclusive, time::Duration};

use serde::{Deserialize, Deserializer, de::Error};

use super::retry_ms;
use crate::event::{Fault, code};

/// How long a claim may be held without a word of its holder, in milliseconds: 1 second to 1 hour.
pub const LEASE_MS: RangeInclusive<u64> = 1_000..=3_600_000;
/// The longest wait for the next attempt that a nack may ask for, in milliseconds: 30 days.
pub const LONGEST_DELAY_MS: u64 = 30 * 24 * 3_600 * 1_000;

fn lease_out_of_range(lease: u64) -> Option<String> {
    (!LEASE_MS.contains(&lease)).then(|| {
        format!(
            "`lease` is {lease} ms, and may be {} to {}: 1 second to 1 hour",
            LEASE_MS.start(),
            LEASE_MS.end()
        )
    })
}

/// A lease in whole milliseconds.
///
/// # Errors
/// Which ones there are, if this is none.
pub fn lease_ms(lease: Duration) -> Result<u64, Fault> {
    let lease = retry_ms(lease);
    match lease_out_of_range(lease) {
        Some(problem) => Err(Fault::refused(code::INVALID_RECORD, problem)),
        None => Ok(lease),
    }
}

/// Reads a lease; none: not given.
pub(super) fn read_lease<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let lease = Option::<u64>::deserialize(deserializer)?;
    match lease.and_then(lease_out_of_range) {
        Some(problem) => Err(D::Error::custom(problem)),
        None => Ok(lease),
    }
}

/// Reads the credit of a consumer.
pub(super) fn read_credit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        0 => Err(D::Error::custom("`credit` is 0, and must be 1 or more: without it nothing is handed out")),
        credit => Ok(credit),
    }
}

/// Reads the wait of a nack; none: not given.
pub(super) fn read_delay<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let delay = Option::<u64>::deserialize(deserializer)?;
    match delay.filter(|delay| *delay > LONGEST_DELAY_MS) {
        Some(delay) => Err(D::Error::custom(format!(
            "`delay` is {delay} ms, and may be {LONGEST_DELAY_MS} at most: 30 days"
        ))),
        None => Ok(delay),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{ConsumeOptions, ExtendOptions, NackOptions},
        *,
    };

    #[test]
    fn a_credit_of_nothing_is_refused() {
        let read = |credit| serde_json::from_str::<ConsumeOptions>(&format!(r#"{{"credit":{credit}}}"#));
        assert_eq!(read(1).unwrap().credit, 1);
        let told = read(0).unwrap_err().to_string();
        assert!(told.contains("1 or more"), "{told}");
    }

    #[test]
    fn times_out_of_range_are_refused_by_their_range() {
        for lease in [1_000, 60_000, 3_600_000] {
            let text = format!(r#"{{"lease":{lease}}}"#);
            assert_eq!(serde_json::from_str::<ExtendOptions>(&text).unwrap().lease, Some(lease));
            assert_eq!(lease_ms(Duration::from_millis(lease)), Ok(lease));
        }
        assert_eq!(serde_json::from_str::<ExtendOptions>("{}").unwrap().lease, None);
        for lease in [0, 999, 3_600_001, u64::MAX] {
            let extend = serde_json::from_str::<ExtendOptions>(&format!(r#"{{"lease":{lease}}}"#));
            let consume =
                serde_json::from_str::<ConsumeOptions>(&format!(r#"{{"credit":1,"lease":{lease}}}"#));
            for told in [extend.unwrap_err().to_string(), consume.unwrap_err().to_string()] {
                assert!(told.contains("1000 to 3600000"), "{told}");
            }
            assert_eq!(lease_ms(Duration::from_millis(lease)).unwrap_err().code, code::INVALID_RECORD);
        }
        let nack = |delay| serde_json::from_str::<NackOptions>(&format!(r#"{{"delay":{delay}}}"#));
        assert_eq!(nack(LONGEST_DELAY_MS).unwrap().delay, Some(LONGEST_DELAY_MS));
        let told = nack(LONGEST_DELAY_MS + 1).unwrap_err().to_string();
        assert!(told.contains("2592000000 at most"), "{told}");
    }
}
