//! Ids as the npm stack makes them.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970 in base 36.
fn stamp() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    base36(u64::try_from(since.as_millis()).unwrap())
}

fn base36(mut number: u64) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut digits = Vec::new();
    loop {
        digits.push(DIGITS[usize::try_from(number % 36).unwrap()]);
        number /= 36;
        if number == 0 {
            break;
        }
    }
    digits.iter().rev().map(|digit| char::from(*digit)).collect()
}

/// An event's id: base36 milliseconds, `-`, random base36.
pub fn event() -> String {
    format!("{}-{}", stamp(), base36(fastrand::u64(36_u64.pow(9)..36_u64.pow(10))))
}

/// A party's id: `<CHARACTERISTIC>-<NAME>-<base36 milliseconds>.<CONFIGURED-NAME>`, upper case.
pub fn party(name: &str) -> String {
    const CHARACTERISTICS: [&str; 6] = ["VIVID", "CRYPTIC", "INTENSE", "SILENT", "BRAVE", "ANCIENT"];
    let word: String = (0..10).map(|_| fastrand::uppercase()).collect();
    let characteristic = fastrand::choice(CHARACTERISTICS).unwrap();
    format!("{characteristic}-{word}-{}.{name}", stamp()).to_uppercase()
}

#[test]
fn ids_look_like_those_of_the_npm_stack() {
    assert_eq!(base36(0), "0");
    assert_eq!(base36(1_796_027_569_940), "mx30fy8k", "of an event that was stored at 08:32:49.942");
    assert!(event().is_ascii() && event().len() <= 64);
    let id = party("EVENTFLOW-SPOKE");
    assert!(id.ends_with(".EVENTFLOW-SPOKE") && id.len() <= 64, "{id}");
}
