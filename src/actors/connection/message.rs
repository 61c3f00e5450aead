//! What a [`Connection`](super::Connection) receives.

use std::io;

use crate::{
    actors::mail::mail,
    wire::{Record, RecordError},
};

/// What one read brought.
#[derive(Debug, Default)]
pub struct Inbound {
    /// Whole records, in order.
    pub records: Vec<Record>,
    /// What came after them breaks the limits.
    pub broken: Option<RecordError>,
    /// The stream ended, in order or by an error.
    pub ended: Option<Option<io::Error>>,
}
mail!(Inbound => ());
