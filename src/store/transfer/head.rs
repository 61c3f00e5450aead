//! The first line of a file and its last one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The format of the file that this version writes and reads.
pub const TRANSFER_FORMAT: u32 = 1;

/// The first line: what the file holds, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferHead {
    /// The format of the file, [`TRANSFER_FORMAT`].
    #[serde(rename = "eventflow-export")]
    pub format: u32,
    /// Which export it is: whoever goes on with an import says so by it.
    pub id: String,
    /// The version of the program that began it.
    pub program: String,
    /// The engine that the rows come from.
    pub engine: String,
    /// The latest migration there.
    pub schema: String,
    /// When it was begun, in milliseconds since 1970.
    pub made: i64,
    /// The tables in the order of their rows.
    pub tables: Vec<TransferTable>,
    /// How many events are in which state, and what else is counted by it.
    pub states: BTreeMap<String, u64>,
    /// The hubs that have served the database: by their epochs and last numbers is seen whether one did meanwhile.
    pub hubs: Vec<TransferHub>,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferTable {
    /// Its name, with which each of its lines begins.
    pub name: String,
    /// The columns, in the order in which they follow it.
    pub columns: Vec<String>,
    /// Its rows.
    pub rows: u64,
}

/// A hub that has served the database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferHub {
    /// Its id.
    pub id: String,
    /// Its last epoch.
    pub epoch: i64,
    /// The last number that it gave.
    pub seq: i64,
}

impl TransferHead {
    /// The rows of all tables.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(|table| table.rows).sum()
    }

    /// Whether the database that both were made of was left alone in between.
    #[must_use]
    pub fn is_same_source(&self, other: &Self) -> bool {
        let own = (&self.engine, &self.schema, &self.tables, &self.states, &self.hubs);
        own == (&other.engine, &other.schema, &other.tables, &other.states, &other.hubs)
    }
}

/// The last line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferEnd {
    /// Always true: by it the line is known.
    pub end: bool,
    /// How many lines of rows stand before it.
    pub rows: u64,
    /// SHA-256 of all lines before it, their ends included, in hexadecimal digits.
    pub sha256: String,
}
