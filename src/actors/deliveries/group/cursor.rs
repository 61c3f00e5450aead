//! Up to where a group has come, as it stands in the store.

use super::Group;

/// The saved cursor. Late or lost, it costs only a longer read at the start.
#[derive(Debug)]
pub(super) struct Cursor {
    saved: u64,
    /// Bindings that are being made. Meanwhile it isn't saved: it could pass what they still want.
    making: usize,
}

impl Cursor {
    pub(super) fn at(saved: u64) -> Self {
        Self { saved, making: 0 }
    }
}

impl Group {
    /// Up to where everything has an outcome, as it was saved last.
    #[must_use]
    pub fn saved(&self) -> u64 {
        self.cursor.saved
    }

    /// Bindings that are being made.
    #[must_use]
    pub fn making(&self) -> usize {
        self.cursor.making
    }

    /// A binding is being made.
    pub fn make_binding(&mut self) {
        self.cursor.making += 1;
    }

    /// It was made, from this number on, or couldn't be. The store has lowered its cursor to there.
    pub fn made_binding(&mut self, start_seq: Option<u64>) {
        self.cursor.making -= 1;
        if let Some(start) = start_seq {
            self.cursor.saved = self.cursor.saved.min(start.saturating_sub(1));
        }
    }

    /// What is to be saved, if the cursor has moved.
    pub fn unsaved(&mut self) -> Option<u64> {
        if self.cursor.making > 0 {
            return None;
        }
        let floor = self.floor().filter(|floor| *floor > self.cursor.saved)?;
        self.cursor.saved = floor;
        Some(floor)
    }
}
