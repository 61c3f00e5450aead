//! A value on its way: out of one engine, through a line of JSON, into another one.

use base64ct::{Base64, Encoding};
use sea_orm::{DbErr, QueryResult, Value};
use serde::{Serialize, Serializer};

use super::{
    super::{
        MAX_DUE,
        engine::{Engine, number},
        time,
    },
    table::{Column, Kind},
};

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    Null,
    Text(String),
    Whole(i64),
    Flag(bool),
    Bytes(Vec<u8>),
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Whole(number) => serializer.serialize_i64(*number),
            Self::Flag(flag) => serializer.serialize_bool(*flag),
            Self::Bytes(bytes) => serializer.serialize_str(&Base64::encode_string(bytes)),
        }
    }
}

/// What a moment that is none is read as, so that it isn't taken for one that isn't there.
const NO_MOMENT: i64 = i64::MIN + 1;

impl Column {
    /// How it is read, of the table `t`.
    pub(super) fn read_as(&self, engine: Engine) -> String {
        let name = format!("t.{}", self.quoted(engine));
        match self.kind {
            Kind::Text | Kind::Address | Kind::Bytes => name,
            Kind::Json => format!("@text({name})"),
            Kind::Whole => format!("@whole({name})"),
            Kind::Flag => format!("CASE WHEN {name} THEN 1 ELSE 0 END"),
            Kind::Moment => {
                format!("CASE WHEN {name} IS NULL THEN NULL ELSE coalesce(@ms({name}), {NO_MOMENT}) END")
            }
        }
    }

    /// How it is written.
    pub(super) fn written_as(&self, engine: Engine) -> &'static str {
        match self.kind {
            Kind::Json => "@json(?)",
            Kind::Address if engine == Engine::MySql => "left(?, 16)",
            _ => "?",
        }
    }

    /// Takes it out of a row.
    pub(super) fn take(&self, row: &QueryResult, index: usize) -> Result<Cell, DbErr> {
        Ok(match self.kind {
            Kind::Text | Kind::Json | Kind::Address => {
                row.try_get_by_index::<Option<String>>(index)?.map_or(Cell::Null, Cell::Text)
            }
            Kind::Whole => row.try_get_by_index::<Option<i64>>(index)?.map_or(Cell::Null, Cell::Whole),
            Kind::Flag => Cell::Flag(number(row, index)? != 0),
            Kind::Bytes => row.try_get_by_index::<Option<Vec<u8>>>(index)?.map_or(Cell::Null, Cell::Bytes),
            Kind::Moment => match row.try_get_by_index::<Option<i64>>(index)? {
                Some(NO_MOMENT) => {
                    return Err(DbErr::Type(format!("what stands in its column {} is no moment", self.name)));
                }
                moment => moment.map_or(Cell::Null, Cell::Whole),
            },
        })
    }

    /// Takes it out of a line; the error says what is expected.
    pub(super) fn parse(&self, value: serde_json::Value) -> Result<Cell, &'static str> {
        use serde_json::Value as Json;
        match (self.kind, value) {
            (_, Json::Null) => Ok(Cell::Null),
            (Kind::Text | Kind::Json | Kind::Address, Json::String(text)) => Ok(Cell::Text(text)),
            (Kind::Text | Kind::Json | Kind::Address, _) => Err("a text"),
            (Kind::Whole, value) => value.as_i64().map(Cell::Whole).ok_or("a whole number"),
            (Kind::Flag, value) => value.as_bool().map(Cell::Flag).ok_or("true or false"),
            (Kind::Bytes, Json::String(text)) => {
                Base64::decode_vec(&text).map(Cell::Bytes).map_err(|_| "bytes in Base64")
            }
            (Kind::Bytes, _) => Err("bytes in Base64"),
            (Kind::Moment, value) => match value.as_i64() {
                Some(ms) if (-MAX_DUE..=MAX_DUE).contains(&ms) => Ok(Cell::Whole(ms)),
                _ => Err("a moment in milliseconds since 1970"),
            },
        }
    }

    /// The value for a statement. A null has the type of its column.
    pub(super) fn value(&self, cell: Cell) -> Value {
        match (self.kind, cell) {
            (Kind::Moment, Cell::Whole(ms)) => time::value(ms),
            (Kind::Moment, _) => Value::ChronoDateTime(None),
            (_, Cell::Text(text)) => text.into(),
            (_, Cell::Whole(number)) => number.into(),
            (_, Cell::Flag(flag)) => flag.into(),
            (_, Cell::Bytes(bytes)) => bytes.into(),
            (Kind::Whole, Cell::Null) => Value::BigInt(None),
            (Kind::Flag, Cell::Null) => Value::Bool(None),
            (Kind::Bytes, Cell::Null) => Value::Bytes(None),
            (_, Cell::Null) => Value::String(None),
        }
    }
}

impl Cell {
    /// Roughly what it takes up.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Null | Self::Whole(_) | Self::Flag(_) => 8,
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }
}
