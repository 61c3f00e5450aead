//! Time zones: from wall times to instants and back.

use jiff::{
    Timestamp, ToSpan,
    civil::DateTime,
    tz::{self, AmbiguousOffset, TimeZone},
};

use super::error::{RuleError, shown};

/// A zone of the IANA database, as it is built into this program.
#[derive(Debug, Clone)]
pub struct Zone(TimeZone);

impl Zone {
    /// The zone of this name; upper and lower case are the same.
    ///
    /// # Errors
    /// [`RuleError::Zone`] with the nearest name.
    pub fn parse(name: &str) -> Result<Self, RuleError> {
        let database = tz::db();
        match database.get(name) {
            Ok(zone) => Ok(Self(zone)),
            Err(_) => Err(RuleError::Zone { zone: shown(name), nearest: nearest(name) }),
        }
    }

    /// Its name as the database spells it.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    /// What clocks there show at this moment, with their offset, as RFC 3339 says it: `2026-10-25T02:30:00+02:00`.
    #[must_use]
    pub fn shown(&self, ms: i64) -> String {
        match Timestamp::from_millisecond(ms) {
            Ok(at) => at.to_zoned_datetime(self.0.clone()).strftime("%Y-%m-%dT%H:%M:%S%.f%:z").to_string(),
            Err(_) => format!("{ms} ms"),
        }
    }

    /// What clocks there show at this moment.
    pub(super) fn wall(&self, ms: i64) -> Option<DateTime> {
        Timestamp::from_millisecond(ms).ok().map(|at| self.0.to_datetime(at))
    }

    /// When clocks there show this for the first time; if they jump over it, when they do so. In milliseconds.
    pub(super) fn instant(&self, wall: DateTime) -> Option<i64> {
        let offset = match self.0.to_ambiguous_timestamp(wall).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset,
            AmbiguousOffset::Fold { before, .. } => before,
            AmbiguousOffset::Gap { before, .. } => {
                // By the old offset it comes after the jump, or with it.
                let after = before.to_timestamp(wall).ok()?.checked_add(1.nanosecond()).ok()?;
                return self.0.preceding(after).next().map(|jump| jump.timestamp().as_millisecond());
            }
        };
        offset.to_timestamp(wall).ok().map(Timestamp::as_millisecond)
    }
}

/// The known name that looks most like this one, if any does.
fn nearest(name: &str) -> Option<String> {
    let wanted = name.to_ascii_lowercase();
    let place = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
    let likeness = |known: &str| {
        let known = known.to_ascii_lowercase();
        // `Berlin` alone is like `Europe/Berlin`.
        strsim::jaro_winkler(&known, &wanted)
            .max(strsim::jaro_winkler(&place(&known), &place(&wanted)) - 0.01)
    };
    let all = tz::db().available().map(|known| (likeness(known.as_str()), known.to_string()));
    let best = all.max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(&a.1)));
    best.filter(|(likeness, _)| *likeness > 0.8).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_zone_is_told_the_nearest() {
        for (wrong, right) in [
            ("Europe/Berln", "Europe/Berlin"),
            ("berlin", "Europe/Berlin"),
            ("America/NewYork", "America/New_York"),
        ] {
            let error = Zone::parse(wrong).unwrap_err();
            assert!(error.to_string().ends_with(&format!("did you mean {right}?")), "{error}");
        }
        let error = Zone::parse("qqqqqq").unwrap_err();
        assert!(error.to_string().contains("such as Europe/Berlin"), "{error}");
        assert_eq!(Zone::parse("europe/berlin").unwrap().name(), "Europe/Berlin");
        assert_eq!(Zone::parse("UTC").unwrap().name(), "UTC");
    }

    #[test]
    fn a_moment_is_shown_with_its_offset() {
        let berlin = Zone::parse("Europe/Berlin").unwrap();
        assert_eq!(berlin.shown(1_792_888_200_000), "2026-10-25T02:30:00+02:00");
        assert_eq!(berlin.shown(1_792_888_200_500), "2026-10-25T02:30:00.5+02:00");
        assert_eq!(berlin.shown(i64::MAX), format!("{} ms", i64::MAX));
    }
}
