//! JSON as values that compare exactly: numbers keep their text, which no machine number could hold.

use std::{collections::BTreeMap, fmt, iter, str};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::decimal::Decimal;

/// A JSON value. Of a key that an object has more than once the last counts.
#[derive(Debug, PartialEq)]
pub(super) enum Value<'a> {
    Null,
    Bool(bool),
    Number(Decimal<'a>),
    Text(String),
    Array(Vec<Value<'a>>),
    Object(BTreeMap<String, Value<'a>>),
}

impl<'a> Value<'a> {
    /// Reads a text; none if it isn't JSON, or nests deeper than the parser goes.
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let mut parser = serde_json::Deserializer::from_str(text);
        let value = Reader { numbers: &mut numbers(text) }.deserialize(&mut parser).ok()?;
        parser.end().is_ok().then_some(value)
    }
}

/// The numbers of a JSON text as they stand there, in order.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text.as_bytes();
    iter::from_fn(move || {
        loop {
            let at = rest.iter().position(|byte| matches!(byte, b'"' | b'-' | b'0'..=b'9'))?;
            let quoted = rest[at] == b'"';
            rest = &rest[at..];
            let len = if quoted { string_len(rest) } else { number_len(rest) };
            let (token, after) = rest.split_at(len);
            rest = after;
            if !quoted {
                return str::from_utf8(token).ok();
            }
        }
    })
}

/// How long the string is that `rest` begins with, quotes included.
fn string_len(rest: &[u8]) -> usize {
    let mut escaped = false;
    let end = rest.iter().skip(1).position(|&byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.map_or(rest.len(), |end| end + 2)
}

fn number_len(rest: &[u8]) -> usize {
    let ends = |byte: &u8| !matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    rest.iter().position(ends).unwrap_or(rest.len())
}

/// Builds a value as the parser walks the text. The parser visits numbers in the order of the text, but as machine
/// numbers: their texts are taken from beside it.
struct Reader<'n, N> {
    numbers: &'n mut N,
}

impl<'a, N: Iterator<Item = &'a str>> Reader<'_, N> {
    fn inner(&mut self) -> Reader<'_, N> {
        Reader { numbers: self.numbers }
    }

    fn number<E: Error>(self) -> Result<Value<'a>, E> {
        let text = self.numbers.next().ok_or_else(|| E::custom("a number without a text"))?;
        Ok(Value::Number(Decimal::of(text)))
    }
}

impl<'de, 'a, N: Iterator<Item = &'a str>> DeserializeSeed<'de> for Reader<'_, N> {
    type Value = Value<'a>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value<'a>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, 'a, N: Iterator<Item = &'a str>> Visitor<'de> for Reader<'_, N> {
    type Value = Value<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<Value<'a>, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value<'a>, E> {
        Ok(Value::Bool(value))
    }
    fn visit_i64<E: Error>(self, _: i64) -> Result<Value<'a>, E> {
        self.number()
    }
    fn visit_u64<E: Error>(self, _: u64) -> Result<Value<'a>, E> {
        self.number()
    }
    fn visit_f64<E: Error>(self, _: f64) -> Result<Value<'a>, E> {
        self.number()
    }
    fn visit_str<E>(self, text: &str) -> Result<Value<'a>, E> {
        Ok(Value::Text(text.to_owned()))
    }
    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<Value<'a>, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = seq.next_element_seed(self.inner())? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }
    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Value<'a>, A::Error> {
        let mut values = BTreeMap::new();
        while let Some(key) = map.next_key()? {
            values.insert(key, map.next_value_seed(self.inner())?);
        }
        Ok(Value::Object(values))
    }
}
