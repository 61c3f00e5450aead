//! npm spokes in the naive world: they claim in the database alone, when they want.

use std::sync::Arc;

use super::{Row, World, pick, seq_of};
use crate::actors::{
    deliveries::effects::{Effects, Reserve},
    dispatched::Dispatched,
};

impl Row {
    pub(super) fn new(event: Arc<Dispatched>, told: bool) -> Self {
        Self {
            event,
            open: true,
            dead: false,
            round: 1,
            attempts: 0,
            due: None,
            told,
            told_before: false,
            npm: false,
            ours: false,
            deleted: false,
        }
    }

    /// Whether it is for consumers of ours.
    pub(super) fn is_open(&self) -> bool {
        self.open && !self.npm
    }

    /// The same, and it doesn't wait for a retry.
    pub(super) fn is_new(&self) -> bool {
        self.is_open() && self.due.is_none()
    }
}

impl World {
    /// Whether an npm spoke has the event of this number.
    pub fn is_npms(&self, seq: u64) -> bool {
        self.rows[&seq].npm
    }

    /// Whether npm spokes know of the event of this number.
    pub fn is_told(&self, seq: u64) -> bool {
        self.rows[&seq].told
    }

    pub(super) fn npm_claims(&mut self, which: usize) {
        let free = |row: &Row| row.told && row.open && !row.npm && !row.ours;
        let told: Vec<u64> = self.rows.iter().filter(|(_, row)| free(row)).map(|(seq, _)| *seq).collect();
        if let Some(row) = pick(&told, which).and_then(|seq| self.rows.get_mut(seq)) {
            row.npm = true;
        }
    }

    pub(super) fn tell_late(&mut self, which: usize, effects: &mut Effects) {
        let head = self.group.head();
        let events: Vec<_> = self
            .rows
            .range(..=head)
            .filter(|(_, row)| !row.deleted)
            .map(|(_, row)| row.event.clone())
            .collect();
        if let Some(event) = pick(&events, which) {
            self.group.tell_late(event.clone(), self.npm_link.clone(), self.now, effects);
        }
    }

    pub(super) fn reserve(&mut self, reserves: Vec<Reserve>) {
        for Reserve { token, event_id, .. } in reserves {
            self.reserves.push((token, seq_of(&event_id)));
        }
    }

    /// The database makes the claims that it is asked for, or says nothing.
    pub(super) fn commit_claims(&mut self, takes: bool) {
        for (token, seq) in std::mem::take(&mut self.reserves) {
            let row = self.rows.get_mut(&seq).unwrap();
            let won = row.open && !row.npm;
            row.ours |= won && takes;
            self.reserved.push_back((token, takes.then_some(won)));
        }
    }
}
