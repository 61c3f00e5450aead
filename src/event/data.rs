//! The payload of an event: JSON text that every supported database can keep.

mod decimal;
mod value;

use std::fmt;

use bytestring::ByteString;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use self::value::Value;
use super::{Fault, code};

/// How deep arrays and objects may nest. MariaDB fails at 32.
pub const MAX_DEPTH: usize = 31;

/// Data that can't be an event's payload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidData {
    /// Not JSON at all, or with a lone surrogate or a number beyond all range.
    #[error("the data is not valid JSON: {reason}: send one JSON value")]
    Syntax {
        /// The parser's words, with line and column.
        reason: String,
    },
    /// More than [`MAX_DEPTH`] levels.
    #[error("the data nests deeper than {MAX_DEPTH} levels: flatten it")]
    TooDeep,
    /// A raw control character, such as the line breaks of indented JSON.
    #[error("the data has a raw control character at byte {at}: send compact JSON")]
    Control {
        /// Offset in bytes.
        at: usize,
    },
}

impl From<InvalidData> for Fault {
    fn from(error: InvalidData) -> Self {
        let code = match error {
            InvalidData::TooDeep => code::DATA_TOO_DEEP,
            InvalidData::Syntax { .. } | InvalidData::Control { .. } => code::INVALID_DATA,
        };
        Fault::refused(code, error.to_string())
    }
}

/// An event's payload: valid JSON without raw control characters, at most [`MAX_DEPTH`] levels deep.
#[derive(Clone, PartialEq, Eq)]
pub struct Data(ByteString);

impl Data {
    /// Checks JSON text and takes it as it is.
    ///
    /// # Errors
    /// [`InvalidData`] if it isn't JSON, nests too deep or isn't compact.
    pub fn parse(text: impl Into<ByteString>) -> Result<Self, InvalidData> {
        let text = text.into();
        if let Some(at) = text.bytes().position(|byte| byte < 0x20) {
            return Err(InvalidData::Control { at });
        }
        check(&text)?;
        Ok(Self(text))
    }

    /// Makes data of any serializable value.
    ///
    /// # Errors
    /// [`InvalidData`] if the value can't be JSON or nests too deep.
    pub fn from_value<T: serde::Serialize + ?Sized>(value: &T) -> Result<Self, InvalidData> {
        let text = serde_json::to_string(value)
            .map_err(|error| InvalidData::Syntax { reason: error.to_string() })?;
        Self::parse(text)
    }

    /// Takes what a database already holds.
    pub fn from_stored(text: impl Into<ByteString>) -> Self {
        Self(text.into())
    }

    /// The JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The shared JSON text.
    #[must_use]
    pub fn as_bytestring(&self) -> &ByteString {
        &self.0
    }

    /// Its length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Never true for checked data: the shortest JSON has one byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads the JSON into a type.
    ///
    /// # Errors
    /// If the JSON has another shape.
    pub fn read<'a, T: serde::Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }

    /// Whether both are the same JSON value: key order doesn't matter, numbers compare by value, exactly, and of a key
    /// that an object has more than once the last counts.
    #[must_use]
    pub fn same_value(&self, other: &Data) -> bool {
        if self.0 == other.0 {
            return true;
        }
        match (Value::read(&self.0), Value::read(&other.0)) {
            (Some(a), Some(b)) => a == b,
            _ => false,
        }
    }
}

impl serde::Serialize for Data {
    /// As the JSON that it is, not as a string.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::from_str::<&serde_json::value::RawValue>(&self.0)
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}

impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One pass over the text, nothing kept.
fn check(text: &str) -> Result<(), InvalidData> {
    let mut deep = false;
    let mut parser = serde_json::Deserializer::from_str(text);
    let checked = Probe { depth: 0, deep: &mut deep }.deserialize(&mut parser).and_then(|()| parser.end());
    match checked {
        Ok(()) => Ok(()),
        Err(_) if deep => Err(InvalidData::TooDeep),
        Err(error) => Err(InvalidData::Syntax { reason: error.to_string() }),
    }
}

struct Probe<'a> {
    depth: usize,
    deep: &'a mut bool,
}

impl Probe<'_> {
    fn inner<E: serde::de::Error>(&mut self) -> Result<Probe<'_>, E> {
        if self.depth == MAX_DEPTH {
            *self.deep = true;
            return Err(E::custom("too deep"));
        }
        Ok(Probe { depth: self.depth + 1, deep: self.deep })
    }
}

impl<'de> DeserializeSeed<'de> for Probe<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Probe<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(self.inner()?)?.is_some() {}
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while map.next_key_seed(self.inner()?)?.is_some() {
            map.next_value_seed(self.inner()?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
