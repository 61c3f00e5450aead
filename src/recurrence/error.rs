//! Why a rule isn't taken.

use crate::event::{Fault, code};

/// What is wrong with a rule, its zone or its bounds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// Neither five nor six fields, nor a word that we know.
    #[error(
        "the rule {rule:?} has {count} fields: give five (minute, hour, day of month, month, day of week), six (with the \
         second before them), `@every` with a duration, `@hourly`, `@daily`, `@weekly`, `@monthly` or `@yearly`"
    )]
    Fields {
        /// The rule, cut.
        rule: String,
        /// How many it has.
        count: usize,
    },
    /// A field breaks its rules.
    #[error("in the rule {rule:?} the {field} {text:?} at character {position} {reason}")]
    Field {
        /// The rule, cut.
        rule: String,
        /// Which field: `minute`, …
        field: &'static str,
        /// Where it begins, the first character being 1.
        position: usize,
        /// The part at fault.
        text: String,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// A word with `@` that we don't know.
    #[error(
        "the rule {rule:?} is no word that is known: use `@every` with a duration, `@hourly`, `@daily`, `@weekly`, \
         `@monthly`, `@yearly`, or the fields of cron"
    )]
    Word {
        /// The rule, cut.
        rule: String,
    },
    /// `@every` without a duration in its bounds.
    #[error(
        "the rule {rule:?} {reason}: give `@every` one duration from 1s to 3650d, such as `@every 90s` or `@every 1h30m`"
    )]
    Every {
        /// The rule, cut.
        rule: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// No day of the calendar matches, or none between the bounds.
    #[error("the rule {rule:?} is never due{bounds}: look at its day and month, and at its start and end")]
    Never {
        /// The rule, cut.
        rule: String,
        /// Between which bounds, if there are any.
        bounds: &'static str,
    },
    /// It would begin when databases know no dates any more.
    #[error(
        "the schedule starts {start} ms after 1970, which is after the year 9999: give a start before, in milliseconds since \
         1970 (UTC)"
    )]
    Start {
        /// What was asked for, in milliseconds since 1970.
        start: i64,
    },
    /// It is over before it begins.
    #[error("the schedule ends before it starts: give an end that is later, or none")]
    Bounds,
    /// Longer than a rule may be.
    #[error(
        "the rule has {length} characters, at most {} are taken: split it into several schedules",
        super::LONGEST_RULE
    )]
    TooLong {
        /// Its characters.
        length: usize,
    },
    /// No such time zone.
    #[error("no time zone has the name {zone:?}: {}", nearest.as_ref().map_or_else(
        || "use a name of the IANA database, such as Europe/Berlin".to_owned(),
        |nearest| format!("did you mean {nearest}?")
    ))]
    Zone {
        /// The name, cut.
        zone: String,
        /// The nearest that there is.
        nearest: Option<String>,
    },
    /// The window in which missed runs are made up for is out of bounds.
    #[error("the window of {window_ms} ms is out of bounds: missed runs can be made up for 1s to 366d")]
    Window {
        /// What was asked for, in milliseconds.
        window_ms: u64,
    },
}

impl RuleError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Zone { .. } => code::INVALID_ZONE,
            Self::Start { .. } | Self::Bounds => code::SCHEDULE_INVALID_DATE,
            _ => code::INVALID_RULE,
        }
    }
}

impl From<RuleError> for Fault {
    fn from(error: RuleError) -> Self {
        Fault::refused(error.code(), error.to_string())
    }
}

/// What is repeated of a text of somebody else.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}
