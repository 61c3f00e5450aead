//! Up to where a group has come, as it stands in the store.

use super::Group;
use crate::store::KnownBindings;

/// The saved cursor. Late or lost, it costs only a longer read at the start.
#[derive(Debug)]
pub(super) struct Cursor {
    saved: u64,
}

impl Cursor {
    pub(super) fn at(saved: u64) -> Self {
        Self { saved }
    }

    /// The store has set it so.
    pub(super) fn go_to(&mut self, seq: u64) {
        self.saved = seq;
    }
}

impl Group {
    /// Up to where everything has an outcome, as it was saved last.
    #[must_use]
    pub fn saved(&self) -> u64 {
        self.cursor.saved
    }

    /// A binding was made, from this number on: the store has lowered its cursor to there.
    pub fn made_binding(&mut self, start_seq: u64) {
        self.cursor.saved = self.cursor.saved.min(start_seq.saturating_sub(1));
    }

    /// The bindings that it goes by.
    #[must_use]
    pub fn known_bindings(&self) -> KnownBindings {
        self.bindings.keys().copied().collect()
    }

    /// What is to be saved, if the cursor has moved.
    pub fn unsaved(&mut self) -> Option<u64> {
        let floor = self.floor().filter(|floor| *floor > self.cursor.saved)?;
        self.cursor.saved = floor;
        Some(floor)
    }
}
