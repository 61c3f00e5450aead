//! The state of a log: the data of its events, folded into one object, oldest first.

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{Data, Event};

/// The state that the events of a log compose, one after the other.
///
/// - Two objects merge, member by member, at every depth.
/// - Two arrays become their concatenation, of whose equal primitives only the first stays; objects and arrays in them
///   all stay.
/// - Anything else is replaced by the later value, by `null` too.
/// - A typed value, an object of just `$type` (a text) and `$value`, is one value: it is replaced as a whole, never
///   merged into.
///
/// The state is always an object: data that is none, and a typed value is none, leaves it as it was. A log without
/// object data composes to `{}`.
///
/// ```
/// use eventflow::event::{Data, State};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut state = State::default();
/// state.apply(&Data::parse(r#"{"total":12,"tags":["new"]}"#)?)?;
/// state.apply(&Data::parse(r#"{"paid":true,"tags":["new","web"]}"#)?)?;
/// let expected = serde_json::json!({ "total": 12, "paid": true, "tags": ["new", "web"] });
/// assert_eq!(state.into_value(), expected);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State(Map<String, Value>);

impl State {
    /// Takes the data of the next event.
    ///
    /// # Errors
    /// If it isn't JSON that can be read, as data that something else has written into a database may be.
    pub fn apply(&mut self, data: &Data) -> Result<(), serde_json::Error> {
        self.merge(data.read()?);
        Ok(())
    }

    /// Takes the next value.
    pub fn merge(&mut self, later: Value) {
        match later {
            Value::Object(later) if !is_typed(&later) => merge_objects(&mut self.0, later),
            _ => {}
        }
    }

    /// What it is by now.
    #[must_use]
    pub fn as_object(&self) -> &Map<String, Value> {
        &self.0
    }

    /// The state as a JSON object.
    #[must_use]
    pub fn into_value(self) -> Value {
        Value::Object(self.0)
    }
}

/// The state that these events compose, oldest first: see [`State`].
///
/// # Errors
/// If the data of one of them isn't JSON that can be read.
pub fn compose<'a>(events: impl IntoIterator<Item = &'a Event>) -> Result<Value, serde_json::Error> {
    let mut state = State::default();
    for event in events {
        state.apply(&event.data)?;
    }
    Ok(state.into_value())
}

fn merge_objects(state: &mut Map<String, Value>, later: Map<String, Value>) {
    for (key, later) in later {
        match state.get_mut(&key) {
            Some(before) => merge(before, later),
            None => drop(state.insert(key, later)),
        }
    }
}

/// Data nests no deeper than its parser allows, so this does neither.
fn merge(state: &mut Value, later: Value) {
    match (state, later) {
        (Value::Object(before), Value::Object(later)) if !is_typed(before) && !is_typed(&later) => {
            merge_objects(before, later);
        }
        (Value::Array(before), Value::Array(later)) => concatenate(before, later),
        (state, later) => *state = later,
    }
}

fn is_typed(object: &Map<String, Value>) -> bool {
    object.len() == 2 && object.get("$type").is_some_and(Value::is_string) && object.contains_key("$value")
}

fn concatenate(before: &mut Vec<Value>, later: Vec<Value>) {
    let mut seen = HashSet::new();
    let is_first = |value| Primitive::of(value).is_none_or(|primitive| seen.insert(primitive));
    let firsts: Vec<bool> = before.iter().chain(&later).map(is_first).collect();
    let (firsts, firsts_later) = firsts.split_at(before.len());
    let mut firsts = firsts.iter();
    before.retain(|_| firsts.next() == Some(&true));
    before.extend(later.into_iter().zip(firsts_later).filter(|(_, first)| **first).map(|(value, _)| value));
}

/// What tells primitives apart; numbers by value, so that `1` and `1.0` are one.
#[derive(PartialEq, Eq, Hash)]
enum Primitive<'a> {
    Null,
    Bool(bool),
    Text(&'a str),
    Whole(i128),
    Fraction(u64),
}

impl<'a> Primitive<'a> {
    fn of(value: &'a Value) -> Option<Self> {
        Some(match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::String(text) => Self::Text(text),
            Value::Number(number) => {
                let whole = number.as_i64().map(i128::from).or(number.as_u64().map(i128::from));
                let float = number.as_f64().unwrap_or_default();
                match whole {
                    Some(whole) => Self::Whole(whole),
                    // Exact: doubles below 2^64 without a fraction are whole numbers.
                    None if float.fract() == 0.0 && float.abs() < 1.8e19 => Self::Whole(float as i128),
                    None => Self::Fraction(float.to_bits()),
                }
            }
            Value::Array(_) | Value::Object(_) => return None,
        })
    }
}
