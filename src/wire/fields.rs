//! Reading records: the units of one, by number and form.

use bytestring::ByteString;
use serde::{Deserialize, de::DeserializeOwned};

use super::{
    ControlCharacter, Record, UNIT_SEPARATOR,
    encode::{cut, is_control},
};
use crate::event::{Fault, code};

/// The units of the longest message, `claim`.
const LONGEST: usize = 12;
/// What is kept of the JSON parser's words, in bytes.
const MOST_WORDS: usize = 200;

/// A record that is no message of the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordFault {
    /// Nothing between two ends.
    #[error("the record is empty: send a verb and its units")]
    Empty,
    /// A verb that this end doesn't know.
    #[error("the verb {verb:?} is not part of this protocol: see docs/protocol.md for those that are")]
    UnknownVerb {
        /// The verb, cut to 80 bytes.
        verb: String,
    },
    /// Another version than ours.
    #[error("version {version:?} of the protocol is not spoken here: say 1")]
    UnknownVersion {
        /// The version, cut to 80 bytes.
        version: String,
    },
    /// Too few or too many units for the verb.
    #[error(
        "`{verb}` has {found} units after it instead of {}: send {}",
        if form.is_empty() { 0 } else { form.split(',').count() },
        if form.is_empty() { "none" } else { form }
    )]
    Units {
        /// The verb.
        verb: &'static str,
        /// The names of the units that it takes.
        form: &'static str,
        /// How many there were.
        found: usize,
    },
    /// A unit of the wrong form.
    #[error("the unit `{unit}` is {value:?} and {reason}")]
    Unit {
        /// Its name.
        unit: &'static str,
        /// Its value, cut to 80 bytes.
        value: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A unit that should be a JSON object or array and isn't, or lacks a member.
    #[error("the unit `{unit}` is not the JSON that it should be: {reason}")]
    Json {
        /// Its name.
        unit: &'static str,
        /// The parser's words.
        reason: String,
    },
    /// A control character inside a unit.
    #[error(transparent)]
    ControlCharacter(#[from] ControlCharacter),
}

impl RecordFault {
    /// The stable error code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownVerb { .. } => code::UNKNOWN_VERB,
            Self::UnknownVersion { .. } => code::UNKNOWN_VERSION,
            Self::ControlCharacter(error) => error.code(),
            Self::Empty | Self::Units { .. } | Self::Unit { .. } | Self::Json { .. } => code::INVALID_RECORD,
        }
    }

    pub(super) fn unit(unit: &'static str, value: &str, reason: &'static str) -> Self {
        Self::Unit { unit, value: short(value), reason }
    }
}

impl From<RecordFault> for Fault {
    fn from(error: RecordFault) -> Self {
        Fault::refused(error.code(), error.to_string())
    }
}

/// For logs and error texts.
pub(super) fn short(value: &str) -> String {
    cut(value, 80).to_owned()
}

/// The units of a record, found in one pass.
pub(super) struct Fields<'a> {
    record: &'a Record,
    /// One more than any message has, so that a longer record matches no form.
    units: [&'a str; LONGEST + 1],
    count: usize,
}

impl<'a> Fields<'a> {
    pub(super) fn of(record: &'a Record) -> Self {
        let text = record.as_str();
        let mut units = [""; LONGEST + 1];
        let (mut count, mut begin) = (0, 0);
        for end in memchr::memchr_iter(UNIT_SEPARATOR, text.as_bytes()).chain([text.len()]) {
            if let Some(unit) = units.get_mut(count) {
                *unit = &text[begin..end];
            }
            (count, begin) = (count + 1, end + 1);
        }
        Self { record, units, count }
    }

    /// The verb and the units after it.
    pub(super) fn checked(&self) -> Result<(&'a str, &[&'a str]), RecordFault> {
        let text = self.record.as_str();
        if text.is_empty() {
            return Err(RecordFault::Empty);
        }
        let odd = |byte| is_control(byte) && byte != UNIT_SEPARATOR;
        // No early end: the compiler looks at many bytes at once.
        if text.bytes().fold(false, |any, byte| any | odd(byte)) {
            return Err(self.control_character().into());
        }
        Ok((self.units[0], &self.units[1..self.count.min(LONGEST + 1)]))
    }

    fn control_character(&self) -> ControlCharacter {
        self.record
            .units()
            .enumerate()
            .find_map(|(unit, text)| {
                text.bytes().find(|byte| is_control(*byte)).map(|byte| ControlCharacter { unit, byte })
            })
            .unwrap_or(ControlCharacter { unit: 0, byte: 0 })
    }

    /// The number of the request, if the record has one: else 0.
    pub(super) fn req(&self) -> u64 {
        match self.units[0] {
            "hello" | "ping" | "pong" => 0,
            _ => number("req", self.units[1]).unwrap_or(0),
        }
    }

    pub(super) fn shared(&self, unit: &str) -> ByteString {
        self.record.shared(unit)
    }

    /// Why no form fits: a known verb with other units, or an unknown one.
    pub(super) fn misfit(&self, forms: &[(&'static str, &'static str)]) -> RecordFault {
        let verb = self.units[0];
        match forms.iter().find(|(known, _)| *known == verb) {
            Some((verb, form)) => RecordFault::Units { verb, form, found: self.count - 1 },
            None => RecordFault::UnknownVerb { verb: short(verb) },
        }
    }
}

/// Decimal digits, without sign and leading zeros.
pub(super) fn number<T: TryFrom<u64>>(unit: &'static str, text: &str) -> Result<T, RecordFault> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    plain
        .then(|| text.parse::<u64>().ok())
        .flatten()
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| RecordFault::unit(unit, text, "no whole number of its range: send decimal digits"))
}

/// A number that isn't 0.
pub(super) fn positive<T: TryFrom<u64> + Default + PartialEq>(
    unit: &'static str,
    text: &str,
) -> Result<T, RecordFault> {
    match number::<T>(unit, text)? {
        zero if zero == T::default() => Err(RecordFault::unit(unit, text, "not allowed: count from 1")),
        number => Ok(number),
    }
}

/// A number that may have a sign.
pub(super) fn time(unit: &'static str, text: &str) -> Result<i64, RecordFault> {
    let wrong = || RecordFault::unit(unit, text, "no time in milliseconds since 1970");
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = number::<u64>(unit, digits).is_ok() && text != "-0";
    plain.then(|| text.parse().ok()).flatten().ok_or_else(wrong)
}

/// A JSON object.
pub(super) fn json<T: DeserializeOwned>(unit: &'static str, text: &str) -> Result<T, RecordFault> {
    // The parser would take an array for a list of the members.
    if !text.trim_start().starts_with('{') {
        return Err(RecordFault::Json { unit, reason: "it doesn't begin with a brace".to_owned() });
    }
    parsed(unit, text)
}

/// A JSON array.
pub(super) fn json_list<'a, T: Deserialize<'a>>(
    unit: &'static str,
    text: &'a str,
) -> Result<Vec<T>, RecordFault> {
    parsed(unit, text)
}

fn parsed<'a, T: Deserialize<'a>>(unit: &'static str, text: &'a str) -> Result<T, RecordFault> {
    // The parser's words may repeat the text, which may be as long as a record.
    serde_json::from_str(text)
        .map_err(|error| RecordFault::Json { unit, reason: cut(&error.to_string(), MOST_WORDS).to_owned() })
}
