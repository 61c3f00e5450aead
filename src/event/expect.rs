//! What a publisher expects of a log before it appends to it, and what it is told if the log has gone on.

use std::{fmt, str::FromStr};

use bytestring::ByteString;
use serde::{Deserialize, Serialize};

use super::{Domain, Event, EventId, InvalidText, NewEvent, Pid, code};

/// Stands for a log without events. An event of this id can't be expected.
const NONE: &str = "none";

/// How the log of an event's process must end for the event to be stored; else
/// `E_EVENTFLOW_LOG_CONFLICT`. As text `none`, or an event's id.
///
/// ```
/// use eventflow::event::Expect;
///
/// assert_eq!("none".parse(), Ok(Expect::None));
/// assert_eq!("01K0EXAMPLE".parse::<Expect>().unwrap().to_string(), "01K0EXAMPLE");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Expect {
    /// It has no event.
    None,
    /// This event is its last.
    After(EventId),
}

impl Expect {
    /// That the log ends as these events of it do, oldest first: what was read is all there is.
    #[must_use]
    pub fn last_of(events: &[Event]) -> Self {
        events.last().map_or(Self::None, |event| Self::After(event.id.clone()))
    }

    /// Reads `none` or an event's id.
    ///
    /// # Errors
    /// [`InvalidText`] if it is neither.
    pub fn parse(text: impl Into<ByteString>) -> Result<Self, InvalidText> {
        let text = text.into();
        if text == NONE { Ok(Self::None) } else { EventId::parse(text).map(Self::After) }
    }

    /// Whether a log that ends with this event is as expected.
    #[must_use]
    pub fn holds(&self, last: Option<&EventId>) -> bool {
        match self {
            Self::None => last.is_none(),
            Self::After(id) => last == Some(id),
        }
    }

    /// Why it can't travel as text, if it can't.
    pub(crate) fn check(&self) -> Result<(), InvalidText> {
        match self {
            Self::After(id) if **id == *NONE => Err(InvalidText {
                what: "expected event id",
                code: code::INVALID_ID,
                value: NONE.to_owned(),
                reason: "stands for a log without events: it can't be expected",
            }),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Expect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str(NONE),
            Self::After(id) => f.write_str(id),
        }
    }
}

impl FromStr for Expect {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, InvalidText> {
        Self::parse(text.to_owned())
    }
}

impl TryFrom<String> for Expect {
    type Error = InvalidText;

    fn try_from(text: String) -> Result<Self, InvalidText> {
        Self::parse(text)
    }
}

impl From<Expect> for String {
    fn from(expect: Expect) -> Self {
        expect.to_string()
    }
}

/// An event to be stored, and how the log of its process must end for that.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Append {
    /// The event.
    #[serde(flatten)]
    pub event: NewEvent,
    /// None: however it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
}

impl From<NewEvent> for Append {
    /// Whatever the log's end.
    fn from(event: NewEvent) -> Self {
        Self { event, expect: None }
    }
}

/// A log wasn't as a publisher expected it. Its text is that of the error on the wire, which can be read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogConflict {
    /// The log's domain.
    pub domain: Domain,
    /// The log's process.
    pub pid: Pid,
    /// How the log was to end.
    pub expected: Expect,
    /// The last event of the log; none: it is empty.
    pub last: Option<EventId>,
    /// How many events it has; [`LogConflict::MOST_COUNTED`] stands for so many or more.
    pub count: u64,
}

impl LogConflict {
    /// Of a longer log no more are counted: a hub that is busy with it would keep others waiting.
    pub const MOST_COUNTED: u64 = 1_000;

    /// Reads it back from an error's text; what comes after it doesn't matter.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (domain, rest) = quoted(text.strip_prefix("the log of ")?)?;
        let (pid, rest) = quoted(rest.strip_prefix(' ')?)?;
        let rest = rest.strip_prefix(" has ")?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (count, rest) = rest.split_at(digits);
        let rest = rest.strip_prefix(" event")?;
        let rest = rest.strip_prefix('s').unwrap_or(rest);
        let rest = rest.strip_prefix(" or more").unwrap_or(rest);
        let (last, rest) = match rest.strip_prefix(", the last is ") {
            Some(rest) => quoted(rest).map(|(last, rest)| (Some(last), rest))?,
            None => (None, rest),
        };
        let rest = rest.strip_prefix(", while ")?;
        let (expected, rest) = match rest.strip_prefix(NONE) {
            Some(rest) => (Expect::None, rest),
            None => quoted(rest).map(|(id, rest)| (Expect::After(EventId::from_stored(id)), rest))?,
        };
        rest.starts_with(" was expected").then_some(())?;
        Some(Self {
            domain: Domain::from_stored(domain),
            pid: Pid::from_stored(pid),
            expected,
            last: last.map(EventId::from_stored),
            count: count.parse().ok()?,
        })
    }
}

impl fmt::Display for LogConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { domain, pid, expected, last, count } = self;
        let (plural, more) =
            (if *count == 1 { "" } else { "s" }, if *count < Self::MOST_COUNTED { "" } else { " or more" });
        write!(f, "the log of {} {} has {count} event{plural}{more}", quote(domain), quote(pid))?;
        if let Some(last) = last {
            write!(f, ", the last is {}", quote(last))?;
        }
        match expected {
            Expect::None => write!(f, ", while none was expected")?,
            Expect::After(id) => write!(f, ", while {} was expected", quote(id))?,
        }
        f.write_str(": read it, decide anew, and expect its last event")
    }
}

/// A JSON string.
fn quote(text: &str) -> serde_json::Value {
    serde_json::Value::from(text)
}

/// A JSON string at the beginning, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut strings = serde_json::Deserializer::from_str(text).into_iter::<String>();
    let string = strings.next()?.ok()?;
    Some((string, text.get(strings.byte_offset()..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conflict(expected: Expect, last: Option<&str>, count: u64) -> LogConflict {
        LogConflict {
            domain: Domain::from_stored("bank \"north\""),
            pid: Pid::from_stored("a\\7 has 3 events"),
            expected,
            last: last.map(EventId::from_stored),
            count,
        }
    }

    #[test]
    fn a_conflict_is_read_back_from_its_text() {
        let after = |id: &str| Expect::After(EventId::from_stored(id.to_owned()));
        for conflict in [
            conflict(Expect::None, Some("01K0EXAMPLE"), 1),
            conflict(after("e\", while none was expected"), Some("none"), 999),
            conflict(after("e1"), None, 0),
            conflict(after("e1"), Some("e\"2\""), LogConflict::MOST_COUNTED),
        ] {
            let text = conflict.to_string();
            assert_eq!(LogConflict::parse(&text).as_ref(), Some(&conflict), "{text}");
            assert_eq!(
                LogConflict::parse(&format!("{text} (nothing of the batch was stored)")),
                Some(conflict)
            );
        }
        for odd in ["", "the log of", r#"the log of "a" "b" has many events"#, r#"the log of "a" b"#] {
            assert_eq!(LogConflict::parse(odd), None, "{odd}");
        }
    }

    #[test]
    fn none_is_no_event() {
        assert_eq!(Expect::parse("none"), Ok(Expect::None));
        assert!(Expect::parse("").is_err() && Expect::parse("e ").is_err());
        let none = Expect::After(EventId::from_stored("none"));
        assert!(none.check().is_err() && Expect::None.check().is_ok());
        assert!(Expect::None.holds(None) && !Expect::None.holds(Some(&EventId::from_stored("e"))));
    }
}
