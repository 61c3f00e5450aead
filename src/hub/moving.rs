//! Moving all that a database holds to another one, of whatever engine, through a file: lines of JSON that are written and
//! read as they come, so that memory doesn't follow the size of either.
//!
//! An interrupted export goes on behind the last row that its file has; an interrupted import goes on behind the last
//! transaction that its target has. Both count at their end, and a difference is an error.

mod error;
mod export;
mod import;
mod lines;

use std::collections::BTreeMap;

pub use error::MoveError;
pub use export::{ExportTo, export};
pub use import::import;

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Rows that were moved.
    pub rows: u64,
    /// All of them.
    pub all: u64,
    /// So many of those that were moved stood there before, from a run that was interrupted.
    pub before: u64,
}

/// What was moved, as it was counted at both ends.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Moved {
    /// Rows of each table, in the order of the file.
    #[serde(serialize_with = "as_map")]
    pub tables: Vec<(String, u64)>,
    /// Events by state, and what else is counted by it.
    pub states: BTreeMap<String, u64>,
    /// All rows.
    pub rows: u64,
    /// Tables that the target has no use for.
    pub left_out: Vec<String>,
    /// The hubs whose work it is.
    pub hubs: Vec<String>,
}

fn as_map<S: serde::Serializer>(tables: &[(String, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(tables.iter().map(|(name, rows)| (name, rows)))
}
