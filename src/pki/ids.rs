//! The ids of hubs and spokes: `<CHARACTERISTIC>-<NAME>-<time>.<CONFIGURED-NAME>`.

use std::time::SystemTime;

use rustls::pki_types::DnsName;

use super::{PkiError, x509};

/// The most characters that a configured name may have, so that every id fits the 64 of the database.
pub const MAX_NAME: usize = 39;

/// The UID of the root.
pub const ROOT_ID: &str = "EVENTFLOW-ROOT-CA";

const CHARACTERISTICS: [&str; 32] = [
    "AMBER", "BOLD", "BRIGHT", "BRISK", "CALM", "CLEVER", "COPPER", "CRISP", "DEFT", "EAGER", "FLEET",
    "GENTLE", "GLAD", "GOLDEN", "HARDY", "JOLLY", "KEEN", "LIVELY", "LUCID", "MELLOW", "NIMBLE", "PLAIN",
    "PROUD", "QUIET", "RAPID", "SILVER", "STEADY", "STOUT", "SUNNY", "TIDY", "WARM", "WITTY",
];

const NAMES: [&str; 32] = [
    "ALDER", "ASPEN", "BADGER", "BEAVER", "BIRCH", "CEDAR", "CURLEW", "DIPPER", "FALCON", "FINCH", "GANNET",
    "HAZEL", "HERON", "IBEX", "JUNIPER", "KESTREL", "LARCH", "LINDEN", "LYNX", "MAPLE", "MARTEN", "OSPREY",
    "OTTER", "PETREL", "PLOVER", "ROWAN", "SORREL", "STOAT", "TERN", "THISTLE", "WILLOW", "WREN",
];

/// A new id under a configured name, upper case, at most 64 characters if the name passes [`check_name`].
/// Two of one millisecond differ by their words, all but surely.
#[must_use]
pub fn new_id(name: &str) -> String {
    let pick = |words: &[&'static str]| fastrand::choice(words.iter()).copied().unwrap_or("PLAIN");
    format!("{}-{}-{}.{}", pick(&CHARACTERISTICS), pick(&NAMES), time_part(), name.to_ascii_uppercase())
}

/// Milliseconds since 1970 in base 36, upper case.
pub(super) fn time_part() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    base36(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

fn base36(mut value: u64) -> String {
    const DIGITS: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let mut text = Vec::new();
    loop {
        // The remainder is below 36.
        text.push(char::from(DIGITS[(value % 36) as usize]));
        value /= 36;
        if value == 0 {
            return text.iter().rev().collect();
        }
    }
}

/// Checks a configured name: letters, digits, dots and hyphens, at most [`MAX_NAME`], usable in a DNS name. The root's
/// isn't free, nor is one under it.
///
/// # Errors
/// [`PkiError::Name`] says what is wrong.
pub fn check_name(name: &str) -> Result<(), PkiError> {
    let reason = if name.is_empty() {
        "is empty: give letters, digits, dots and hyphens"
    } else if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-') {
        "has other characters than letters, digits, dots and hyphens: take them out"
    } else if name.len() > MAX_NAME {
        "is longer than 39 characters, and no id under it would fit 64: shorten it"
    } else if name.ends_with('.') || DnsName::try_from(format!("any.{name}")).is_err() {
        "is no DNS name: no dot at an end or beside a dot, no hyphen at the start or end of a part"
    } else if name.eq_ignore_ascii_case(ROOT_ID) || x509::lies_under(name, ROOT_ID) {
        "is that of the root, or under it, and what it issues must stand under an intermediate: choose another"
    } else {
        return Ok(());
    };
    Err(PkiError::Name { name: name.chars().take(80).collect(), reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_their_form_and_fit() {
        let name = "N".repeat(MAX_NAME);
        for _ in 0..200 {
            let id = new_id(&name);
            assert!(id.len() <= 64, "{id}");
            let (head, tail) = id.split_once('.').unwrap();
            assert_eq!(tail, name);
            let parts: Vec<_> = head.split('-').collect();
            assert_eq!(parts.len(), 3, "{id}");
            assert!(
                parts.iter().all(|part| part.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit()))
            );
            assert!(u64::from_str_radix(parts[2], 36).unwrap() > 1_700_000_000_000);
        }
        assert!(new_id("eventflow-hub").ends_with(".EVENTFLOW-HUB"));
    }

    #[test]
    fn the_longest_words_leave_room_for_the_longest_name() {
        let longest = |words: &[&str]| words.iter().map(|word| word.len()).max().unwrap();
        // Two hyphens, a dot, and the nine digits that milliseconds need from the year 2059 on.
        assert!(longest(&CHARACTERISTICS) + longest(&NAMES) + 3 + 9 + MAX_NAME <= 64);
    }

    #[test]
    fn base36_is_that_of_other_programs() {
        assert_eq!(base36(0), "0");
        assert_eq!(base36(35), "Z");
        assert_eq!(base36(1_700_000_000_000), "LOYW3V28");
    }

    #[test]
    fn names_are_checked() {
        for good in ["EVENTFLOW-HUB", "a", "shop.example", "X1"] {
            check_name(good).unwrap();
        }
        for good in ["EVENTFLOW-ROOT-CAS", "MY-EVENTFLOW-ROOT-CA"] {
            check_name(good).unwrap();
        }
        for bad in [
            ROOT_ID,
            "eventflow-root-ca",
            "Shop.Eventflow-Root-CA",
            "",
            "a b",
            "a_b",
            "ä",
            "a..b",
            ".a",
            "a.",
            "-a",
            "a-",
            &"a".repeat(40),
        ] {
            let error = check_name(bad).unwrap_err();
            assert_eq!(error.code(), "E_EVENTFLOW_HUB_INVALID_CONFIG_NAME", "{bad}");
        }
    }
}
