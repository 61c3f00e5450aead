//! Which events hold back others by what the database says: those that wait for a time, and the dead ones that block.

use std::collections::HashSet;

use super::Order;
use crate::{event::Pid, store::HeldKey};

/// Rows of a page. Small in tests, so that there are several.
const PAGE: usize = if cfg!(test) { 2 } else { 1_000 };

/// How far they are known.
#[derive(Debug, Default)]
pub(super) struct Loading {
    done: bool,
    /// There are more than memory takes: until there are fewer, only those that were read have their turn.
    paused: bool,
    after: Option<HeldKey>,
    reading: Option<u64>,
    /// The page that is being read is of no use: they are read from the start.
    again: bool,
    /// Ended since: a page may still show them.
    ended: HashSet<u64>,
}

/// A page to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldWanted {
    /// Give it back with the page.
    pub ticket: u64,
    /// Those after this.
    pub after: Option<HeldKey>,
    /// Dead events too.
    pub with_dead: bool,
    /// At most so many.
    pub limit: usize,
}

/// A page that was read: the events that hold back others of their processes, and where the next page begins; none:
/// that was the last.
pub type HeldPage = (Vec<(Pid, u64)>, Option<HeldKey>);

impl Loading {
    pub(super) fn ended(&mut self, seq: u64) {
        if !self.done {
            self.ended.insert(seq);
        }
    }
}

impl Order {
    /// Whether it is known who has the first turn.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.loading.done
    }

    /// Whether anybody may have a turn at all.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.loading.done || self.loading.paused
    }

    /// The database has others than before: nobody has a turn until they are read again.
    pub fn load_again(&mut self) {
        let reading = self.loading.reading;
        let paused = self.is_full();
        self.loading = Loading { reading, again: reading.is_some(), paused, ..Loading::default() };
    }

    /// Whether a page should be read now. Asked again only after [`Self::loaded`] or [`Self::load_failed`].
    pub fn want_load(&mut self) -> Option<HeldWanted> {
        if self.loading.done || self.loading.reading.is_some() {
            return None;
        }
        if self.is_full() {
            self.pause();
            return None;
        }
        self.tickets += 1;
        self.loading.reading = Some(self.tickets);
        let (after, with_dead) = (self.loading.after.clone(), self.with_dead);
        Some(HeldWanted { ticket: self.tickets, after, with_dead, limit: PAGE })
    }

    /// Takes a page. True: some may have their turns now that had to wait.
    pub fn loaded(&mut self, ticket: u64, (rows, next): HeldPage) -> bool {
        if self.loading.reading != Some(ticket) {
            return false;
        }
        self.loading.reading = None;
        if std::mem::take(&mut self.loading.again) {
            return false;
        }
        for (pid, seq) in rows {
            if !self.loading.ended.contains(&seq) && !self.whose.contains_key(&seq) {
                self.keep_back(&pid, seq);
            }
        }
        match next {
            Some(next) => {
                self.loading.after = Some(next);
                if !self.is_full() {
                    return false;
                }
                self.pause();
            }
            None => {
                self.loading = Loading { done: true, ..Loading::default() };
                self.touched.extend(self.lanes.keys().cloned());
            }
        }
        true
    }

    /// There are too many: those that are known have their turns meanwhile.
    fn pause(&mut self) {
        if !std::mem::replace(&mut self.loading.paused, true) {
            self.touched.extend(self.lanes.keys().cloned());
        }
    }

    /// It couldn't be read; [`Self::want_load`] will ask again.
    pub fn load_failed(&mut self, ticket: u64) {
        self.loading.reading.take_if(|reading| *reading == ticket);
        self.loading.again = false;
    }
}
