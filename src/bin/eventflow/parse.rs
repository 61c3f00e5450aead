//! Words of the command line that several commands read in the same way: addresses, spans and moments.

mod group;
mod place;

use std::time::{Duration, SystemTime};

use chrono::{DateTime, NaiveDate, NaiveTime};
use eventflow::{spoke::Timestamp, wire::HubAddress};

pub(crate) use self::{
    group::group,
    place::{since, start},
};

/// `HOST:PORT`, where an IPv6 address stands in brackets.
pub(crate) fn hub_address(text: &str) -> Result<HubAddress, String> {
    let wrong = || "must be HOST:PORT, such as 127.0.0.1:50001 or [::1]:50001".to_owned();
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let host = match host.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']').ok_or_else(wrong)?,
        None if host.contains(':') => return Err(wrong()),
        None => host,
    };
    let port = port.parse().ok().filter(|port| *port != 0).ok_or_else(wrong)?;
    if host.is_empty() { Err(wrong()) } else { Ok(HubAddress { id: None, host: host.to_owned(), port }) }
}

/// `500ms`, `30s`, `5m`, `24h`, `7d`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    match span(text) {
        // Deadlines beyond a year can overflow clocks, and mean nothing.
        Some(millis @ 1..=31_536_000_000) => Ok(Duration::from_millis(millis)),
        _ => Err("must be a number and a unit (ms, s, m, h or d), such as 30s, at most a year".to_owned()),
    }
}

/// A span from now on, for a date to come: `0s` and centuries are allowed.
pub(crate) fn delay(text: &str) -> Result<Duration, String> {
    span(text).map(Duration::from_millis).ok_or_else(|| match text.strip_prefix('-').and_then(span) {
        Some(_) => "must lie ahead: a span from now, such as 30s or 7d, without a sign".to_owned(),
        None => "must be a number and a unit (ms, s, m, h or d), such as 30s or 7d".to_owned(),
    })
}

fn span(text: &str) -> Option<u64> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[number.len()..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// How many, at least one.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("must be a whole number from 1".to_owned()),
        Ok(count) => Ok(count),
    }
}

/// A moment: a time as [`date`] takes it, or a span before now.
pub(crate) fn moment(text: &str) -> Result<Timestamp, String> {
    moment_at(text, SystemTime::now())
}

fn moment_at(text: &str, now: SystemTime) -> Result<Timestamp, String> {
    let before = |millis| now.checked_sub(Duration::from_millis(millis)).map(Timestamp::from);
    absolute(text).or_else(|| span(text).and_then(before)).ok_or_else(|| {
        "must be a time such as 2030-01-31T12:00:00Z, a day such as 2030-01-31 (from midnight UTC), milliseconds \
         since 1970, or a span before now such as 1h"
            .to_owned()
    })
}

/// A moment that lies ahead: a time as [`date`] takes it, or a span from now.
pub(crate) fn ahead(text: &str) -> Result<Timestamp, String> {
    ahead_at(text, SystemTime::now())
}

fn ahead_at(text: &str, now: SystemTime) -> Result<Timestamp, String> {
    let after = |millis| now.checked_add(Duration::from_millis(millis)).map(Timestamp::from);
    absolute(text).or_else(|| span(text).and_then(after)).ok_or_else(|| {
        "must be a time such as 2030-01-31T12:00:00Z, a day such as 2030-01-31 (from midnight UTC), milliseconds \
         since 1970, or a span from now such as 1h"
            .to_owned()
    })
}

/// A lease that hubs take.
pub(crate) fn lease(text: &str) -> Result<Duration, String> {
    duration(text)
        .ok()
        .filter(|lease| (Duration::from_secs(1)..=Duration::from_secs(3_600)).contains(lease))
        .ok_or_else(|| "must be a number and a unit, such as 60s, from 1s to 1h".to_owned())
}

/// A wait before a retry that hubs take.
pub(crate) fn back_off(text: &str) -> Result<Duration, String> {
    duration(text)
        .ok()
        .filter(|wait| *wait <= Duration::from_secs(86_400))
        .ok_or_else(|| "must be a number and a unit, such as 5s, at most a day".to_owned())
}

/// A date: RFC 3339 with any offset, what we print for people, a day (its midnight, UTC), or milliseconds since 1970.
pub(crate) fn date(text: &str) -> Result<Timestamp, String> {
    absolute(text).ok_or_else(|| match span(text) {
        Some(_) => format!("must be a time; `--in {text}` says so long from now"),
        None => {
            "must be a time such as 2030-01-31T12:00:00Z, a day such as 2030-01-31 (from midnight UTC), or \
                 milliseconds since 1970"
                .to_owned()
        }
    })
}

fn absolute(text: &str) -> Option<Timestamp> {
    if let Ok(millis) = text.parse::<i64>() {
        return Some(millis.into());
    }
    let time = DateTime::parse_from_rfc3339(text)
        // As `output::time` writes it.
        .or_else(|_| DateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f %:z"))
        .map(|time| time.timestamp_millis());
    // Its ten characters only: a year of any length would take in typing mistakes.
    let day = || NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().filter(|_| text.len() == 10);
    let millis = time.ok().or_else(|| Some(day()?.and_time(NaiveTime::MIN).and_utc().timestamp_millis()));
    millis.map(Timestamp::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (text, host, port) in
            [("a:1", "a", 1), ("127.0.0.1:50001", "127.0.0.1", 50001), ("[::1]:2", "::1", 2)]
        {
            assert_eq!(hub_address(text), Ok(HubAddress { id: None, host: host.to_owned(), port }));
        }
        for wrong in ["", "a", "a:", ":1", "a:0", "a:70000", "::1:2", "[::1:2", "a:b"] {
            assert!(hub_address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        for wrong in ["", "5", "0s", "s", "1.5s", "-1s", "5 s", "400d", "99999999999999999999s", "1é"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        assert_eq!(delay("0s"), Ok(Duration::ZERO));
        assert_eq!(delay("400d"), Ok(Duration::from_secs(400 * 86_400)));
        assert!(delay("5").is_err());
        assert!(delay("-5s").unwrap_err().contains("must lie ahead"));
        assert_eq!(count("7"), Ok(7));
        for wrong in ["0", "x", "-1", "1.5", ""] {
            assert_eq!(count(wrong).unwrap_err(), "must be a whole number from 1");
        }
    }

    #[test]
    fn moments_are_times_numbers_or_spans_before_now() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(7_200);
        let millis = |text: &str| moment_at(text, now).map(Timestamp::as_millis);
        assert_eq!(millis("2030-01-31T12:00:00Z"), Ok(1_896_091_200_000));
        assert_eq!(millis("2030-01-31T13:00:00.5+01:00"), Ok(1_896_091_200_500));
        assert_eq!(millis("1896091200000"), Ok(1_896_091_200_000));
        assert_eq!(millis("1h"), Ok(3_600_000));
        assert_eq!(millis("2030-01-31"), Ok(1_896_048_000_000));
        let printed = crate::output::time(1_896_091_200_007, &chrono::FixedOffset::east_opt(-5_400).unwrap());
        assert_eq!(millis(&printed), Ok(1_896_091_200_007), "{printed}");
        assert_eq!(millis("0s"), Ok(7_200_000));
        for wrong in [
            "",
            "yesterday",
            "30-01-31",
            "2030-1-31",
            "2030-01-31T12:00:00",
            "2030-02-30",
            "2030-02-30T12:00:00Z",
            "1y",
            "1.5h",
        ] {
            assert!(millis(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_lease_has_bounds() {
        assert_eq!(lease("1s"), Ok(Duration::from_secs(1)));
        assert_eq!(lease("60m"), Ok(Duration::from_secs(3_600)));
        assert!(lease("999ms").is_err() && lease("2h").is_err() && lease("x").is_err());
        assert_eq!(back_off("24h"), Ok(Duration::from_secs(86_400)));
        assert!(back_off("40d").is_err() && back_off("0s").is_err());
    }

    #[test]
    fn a_date_is_no_span() {
        assert_eq!(date("5").map(Timestamp::as_millis), Ok(5));
        assert_eq!(date("1h").unwrap_err(), "must be a time; `--in 1h` says so long from now");
        assert!(date("tomorrow").unwrap_err().contains("2030-01-31T12:00:00Z"));
    }
}
