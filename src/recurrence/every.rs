//! `@every 90s`: so often, whatever the wall says.

use super::error::{RuleError, shown};

/// The shortest interval, in milliseconds.
const SHORTEST: i64 = 1_000;
/// The longest one.
const LONGEST: i64 = 3_650 * 86_400_000;
const UNITS: [(&str, i64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Reads what follows `@every`, in milliseconds: numbers with their units, such as `90s` or `1h30m`.
pub(super) fn interval(rule: &str, text: &str) -> Result<i64, RuleError> {
    let wrong = |reason| RuleError::Every { rule: shown(rule), reason };
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(wrong("lacks its duration"));
    }
    let mut sum = 0_i64;
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, behind) = rest.split_at(digits);
        let letters = behind.len() - behind.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
        let (unit, behind) = behind.split_at(letters);
        let unit = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, ms)| *ms);
        let part = number.parse::<i64>().ok().zip(unit).and_then(|(number, unit)| number.checked_mul(unit));
        sum = part
            .and_then(|part| sum.checked_add(part))
            .ok_or_else(|| wrong("has no duration of whole numbers with ms, s, m, h or d"))?;
        rest = behind;
    }
    match sum {
        ..SHORTEST => Err(wrong("is due too often")),
        SHORTEST..=LONGEST => Ok(sum),
        _ => Err(wrong("is due too seldom")),
    }
}

/// The first of `anchor`, `anchor + interval`, … that is after `after`; it may be `anchor` itself.
pub(super) fn next(anchor: i64, interval: i64, after: i64) -> Option<i64> {
    if after < anchor {
        return Some(anchor);
    }
    let passed = (after - anchor) / interval;
    (passed + 1).checked_mul(interval)?.checked_add(anchor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        for (text, ms) in [("90s", 90_000), ("1h30m", 5_400_000), ("1500ms", 1_500), ("7d", 604_800_000)] {
            assert_eq!(interval("", text), Ok(ms), "{text}");
        }
        for text in
            ["", "90", "s", "1.5h", "-1h", "1x", "999ms", "0s", "4000d", "99999999999999999d", "1h 30m", "é"]
        {
            assert!(matches!(interval("", text), Err(RuleError::Every { .. })), "{text}");
        }
    }

    #[test]
    fn it_counts_from_its_anchor() {
        assert_eq!(next(100, 10, 0), Some(100));
        assert_eq!(next(100, 10, 100), Some(110));
        assert_eq!(next(100, 10, 109), Some(110));
        assert_eq!(next(100, 10, 110), Some(120));
        assert_eq!(next(100, i64::MAX, 200), None);
    }
}
