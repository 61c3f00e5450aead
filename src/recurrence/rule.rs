//! A rule, and the times at which it is due.

use super::{
    Zone,
    cron::Cron,
    error::{RuleError, shown},
    every,
};

/// The most characters of a rule.
pub const LONGEST_RULE: usize = 256;
/// Words that stand for fields.
const WORDS: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

/// When something is due again and again.
#[derive(Debug, Clone)]
pub struct Rule(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Cron(Box<Cron>, Zone),
    /// So many milliseconds apart.
    Every(i64),
}

impl Rule {
    /// Reads a rule: five or six fields of cron, a word such as `@daily`, or `@every` with a duration; and its zone.
    ///
    /// # Errors
    /// [`RuleError`] says what is wrong, and where.
    pub fn parse(rule: &str, zone: &str) -> Result<Self, RuleError> {
        let length = rule.chars().count();
        if length > LONGEST_RULE {
            return Err(RuleError::TooLong { length });
        }
        let zone = Zone::parse(zone)?;
        let text = rule.trim();
        if let Some(duration) = text.strip_prefix("@every") {
            return every::interval(text, duration).map(|interval| Self(Kind::Every(interval)));
        }
        let fields = match WORDS.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)) {
            Some((_, fields)) => fields,
            None if text.starts_with('@') => return Err(RuleError::Word { rule: shown(text) }),
            // As it was given: positions count from its start.
            None => rule,
        };
        Cron::parse(fields).map(|cron| Self(Kind::Cron(Box::new(cron), zone)))
    }

    /// The first time after this one; of an interval, counted from `anchor`, which is its first time.
    fn next(&self, after: i64, anchor: i64) -> Option<i64> {
        match &self.0 {
            Kind::Every(interval) => every::next(anchor, *interval, after),
            Kind::Cron(cron, zone) => {
                // Wall times have whole seconds; what clocks show twice can lead back, and is passed over.
                let mut wall = zone.wall(after)?.with().subsec_nanosecond(0).build().ok()?;
                loop {
                    wall = cron.next(wall.checked_add(jiff::SignedDuration::from_secs(1)).ok()?)?;
                    match zone.instant(wall)? {
                        instant if instant > after => return Some(instant),
                        _ => {}
                    }
                }
            }
        }
    }
}

/// The times of one schedule: those of its rule within its bounds. Milliseconds since 1970.
#[derive(Debug, Clone)]
pub struct Times {
    rule: Rule,
    anchor: i64,
    start: Option<i64>,
    end: Option<i64>,
}

impl Times {
    /// Of this rule, not before `start`, not after `end`. An interval is due at its `start`, or else one interval after
    /// `made`.
    #[must_use]
    pub fn new(rule: Rule, made: i64, start: Option<i64>, end: Option<i64>) -> Self {
        let anchor = match (&rule.0, start) {
            (Kind::Every(interval), None) => made.saturating_add(*interval),
            _ => start.unwrap_or(made),
        };
        Self { rule, anchor, start, end }
    }

    /// The first time after this one.
    #[must_use]
    pub fn next(&self, after: i64) -> Option<i64> {
        let after = self.start.map_or(after, |start| after.max(start.saturating_sub(1)));
        self.rule.next(after, self.anchor).filter(|next| self.end.is_none_or(|end| *next <= end))
    }

    /// The same for a schedule that is to be made.
    ///
    /// # Errors
    /// [`RuleError::Never`] if there is none.
    pub fn first(&self, after: i64, rule: &str) -> Result<i64, RuleError> {
        self.next(after)
            .ok_or_else(|| RuleError::Never { rule: shown(rule), bounds: " between its start and its end" })
    }
}
