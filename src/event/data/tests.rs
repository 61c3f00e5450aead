use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

fn same(a: &str, b: &str) -> bool {
    let data = |text: &str| Data::parse(text.to_owned()).unwrap();
    let (a, b) = (data(a), data(b));
    assert_eq!(a.same_value(&b), b.same_value(&a), "{a} and {b}");
    a.same_value(&b)
}

#[test]
fn depth_ends_at_31() {
    assert!(Data::parse(nested(31)).is_ok());
    assert_eq!(Data::parse(nested(32)), Err(InvalidData::TooDeep));
    assert_eq!(Data::parse("[".repeat(100_000)), Err(InvalidData::TooDeep));
}

#[test]
fn what_is_not_json_is_refused() {
    for text in ["", "{", "nul", "1 2", "\"\\ud800\"", "1e999", "[1,]", "{\"a\":1,}", "'a'"] {
        assert!(matches!(Data::parse(text), Err(InvalidData::Syntax { .. })), "{text}");
    }
    assert_eq!(Data::parse("{\n}"), Err(InvalidData::Control { at: 1 }));
}

#[test]
fn values_compare_without_key_order_and_by_number() {
    assert!(same(r#"{"a":1,"b":[2.0]}"#, r#"{"b":[2],"a":1.0}"#));
    assert!(!same(r#"{"a":1}"#, r#"{"a":1,"b":2}"#));
    assert!(!same("[1,2]", "[2,1]"));
    assert!(!same("1", "\"1\""));
    assert!(!same("9007199254740993", "9007199254740992"));
    assert!(same("[null,true,\"\\u0061\"]", "[null, true, \"a\"]"));
    assert!(!same("[true]", "[false]"));
    // Digits and quotes in strings are no numbers and no ends.
    assert!(same(r#"{"7\"8":"-9\\","a":1}"#, r#"{"a":1.0,"7\"8":"-9\\"}"#));
    assert!(!same(r#"{"7\"8":"-9\\","a":1}"#, r#"{"a":2,"7\"8":"-9\\"}"#));
}

#[test]
fn numbers_compare_exactly() {
    for (a, b) in [
        ("1.0", "1"),
        ("1e2", "100"),
        ("1E+2", "1.00e2"),
        ("-0", "0"),
        ("-0.0e7", "0"),
        ("0.001", "1e-3"),
        ("120.50", "1205e-1"),
        ("1e-400", "0.1e-399"),
        ("0e999999999999999999999", "0"),
        ("1e-999999999999999999999", "1.0e-0999999999999999999999"),
    ] {
        assert!(same(a, b), "{a} and {b}");
    }
    for (a, b) in [
        ("123456789012345678901", "123456789012345678902"),
        ("0.12345678901234567891", "0.12345678901234567899"),
        ("18446744073709551616", "18446744073709551617"),
        ("1e-400", "0"),
        ("1e-999999999", "2e-999999999"),
        ("1e-999999999999999999999", "1e-999999999999999999998"),
        ("1", "-1"),
        ("10", "1"),
    ] {
        assert!(!same(a, b), "{a} and {b}");
    }
}

#[test]
fn the_last_of_equal_keys_counts() {
    assert!(same(r#"{"a":1,"a":2}"#, r#"{"a":2}"#));
    assert!(!same(r#"{"a":1,"a":2}"#, r#"{"a":1}"#));
}

#[test]
fn an_absurd_exponent_costs_no_more_than_its_text() {
    let numbers = |exponent: &str| format!("[{}1]", format!("1e-{exponent},").repeat(10_000));
    let began = Instant::now();
    assert!(!same(&numbers("999999999999"), &numbers("999999999998")));
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

/// A number as the naive write it out: its sign, and its digits from 10^60 down to 10^-60.
fn written_out(text: &str) -> (bool, Vec<u8>) {
    let (negative, text) = (text.starts_with('-'), text.trim_start_matches('-'));
    let lower = text.to_ascii_lowercase();
    let (mantissa, exponent) = lower.split_once('e').unwrap_or((&lower, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let first = 60 + whole.len() as i64 + exponent.parse::<i64>().unwrap();
    let mut digits = vec![0; 160];
    for (at, byte) in (0_i64..).zip(whole.bytes().chain(fraction.bytes())) {
        if byte != b'0' {
            digits[usize::try_from(120 - first + at).unwrap()] = byte - b'0';
        }
    }
    (negative && digits.iter().any(|digit| *digit > 0), digits)
}

proptest! {
    #[test]
    fn numbers_are_the_same_as_written_out(
        a in "-?(0|[1-9][0-9]{0,22})(\\.[0-9]{1,22})?([eE][+-]?[0-9])?",
        b in "-?(0|[1-2][0-1]{0,3})(\\.[0-1]{1,3})?([eE][+-]?[0-3])?",
        c in "-?(0|[1-2]0{0,3})(\\.0{1,3})?([eE][+-]?[0-3])?",
        zeros in 0_usize..4,
    ) {
        // The same number, written another way.
        let shifted = match (a.contains(['e', 'E']), a.contains('.')) {
            (true, _) => a.clone(),
            (false, true) => format!("{a}{}", "0".repeat(zeros)),
            (false, false) => format!("{a}.0{}e0", "0".repeat(zeros)),
        };
        prop_assert!(same(&a, &shifted), "{} and {}", a, shifted);
        for (one, other) in [(&a, &b), (&b, &c), (&a, &c), (&a, &shifted)] {
            let model = written_out(one) == written_out(other);
            prop_assert_eq!(same(one, other), model, "{} and {}", one, other);
        }
    }
}
