//! What of a group waits for a time before its next attempt. All of it stands in the database; memory has those whose
//! time has come, as many as a window holds, and knows when to look for more.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use super::binding::Waiting;
use crate::actors::dispatched::Dispatched;

/// The most events that wait in memory for a consumer. Small in tests, so that it is full.
pub const WINDOW_EVENTS: usize = if cfg!(test) { 4 } else { 1_024 };
/// The same in bytes; a page may go beyond.
const WINDOW_BYTES: usize = 8 * 1024 * 1024;
/// A page is read when no more than so many wait.
const LOW_WATER: usize = WINDOW_EVENTS / 4;
/// A page that couldn't be read is asked for again after so many milliseconds.
const AGAIN: i64 = 1_000;

/// A place among the events that wait: when its time comes, and its sequence number.
pub type Key = (i64, u64);

/// Events that wait for a retry in the database, and those of them that memory has.
#[derive(Debug)]
pub struct Retries {
    /// Those in memory whose time has come, and in how many bindings' queues each stands.
    here: HashMap<u64, (Waiting, usize)>,
    bytes: usize,
    /// What stands in the database up to here was looked at: it is in memory, in somebody's hands, or [`Self::unplaced`].
    after: Key,
    /// When there is something beyond, as far as is known.
    look_at: Option<i64>,
    /// The first that was looked at while no consumer wanted it.
    unplaced: Option<Key>,
    reading: Option<Reading>,
    tickets: u64,
}

/// A page is being read; what happens meanwhile.
#[derive(Debug)]
struct Reading {
    ticket: u64,
    /// Is to be looked at again, wherever the page ends.
    rewound: Option<Key>,
    /// What the page may show though it isn't so any more.
    ended: HashSet<u64>,
}

/// A page of what is due, to be read from the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetriesWanted {
    /// Give it back with the page.
    pub ticket: u64,
    /// Those behind this place.
    pub after: Key,
    /// Those whose time is then or before, in milliseconds since 1970.
    pub until: i64,
    /// At most so many.
    pub limit: usize,
}

/// A page that was read.
#[derive(Debug)]
pub struct RetriesPage {
    /// As in [`RetriesWanted`].
    pub ticket: u64,
    /// What is due, in the order of the places.
    pub rows: Vec<Waiting>,
    /// When the first behind them is due.
    pub next: Option<i64>,
}

impl Default for Retries {
    /// Nothing is known yet.
    fn default() -> Self {
        Self {
            here: HashMap::new(),
            bytes: 0,
            after: (i64::MIN, 0),
            look_at: Some(i64::MIN),
            unplaced: None,
            reading: None,
            tickets: 0,
        }
    }
}

impl Retries {
    /// How many wait in memory.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.here.len()
    }

    /// Whether memory has it.
    #[must_use]
    pub fn has(&self, seq: u64) -> bool {
        self.here.contains_key(&seq)
    }

    /// Keeps one whose time has come, for so many bindings' consumers.
    pub fn keep(&mut self, waiting: Waiting, bindings: usize) {
        self.bytes += waiting.event.weight();
        if let Some((old, _)) = self.here.insert(waiting.event.seq, (waiting, bindings)) {
            self.bytes -= old.event.weight();
        }
    }

    /// Takes one out: it is handed out, or deleted.
    pub fn take(&mut self, seq: u64) -> Option<Waiting> {
        let (waiting, _) = self.here.remove(&seq)?;
        self.bytes -= waiting.event.weight();
        Some(waiting)
    }

    /// A binding has consumers that had none: these of those in memory are for them too, and stand in its queue now.
    pub fn also_for(&mut self, wants: impl Fn(&Dispatched) -> bool) -> Vec<u64> {
        let wanted = self.here.iter_mut().filter(|(_, (waiting, _))| wants(&waiting.event));
        wanted
            .map(|(seq, (_, bindings))| {
                *bindings += 1;
                *seq
            })
            .collect()
    }

    /// One of the bindings' queues is given up: what stands in no other one is left to the database, which is looked at
    /// again.
    pub fn give_up(&mut self, seqs: impl IntoIterator<Item = u64>) {
        for seq in seqs {
            let Some((_, bindings)) = self.here.get_mut(&seq) else { continue };
            *bindings -= 1;
            if *bindings == 0
                && let Some(waiting) = self.take(seq)
            {
                // Not left for who comes: somebody may have come since it was placed.
                self.rewind(key_of(&waiting));
            }
        }
    }

    /// Nobody is there for this one: it is looked at again once [`Self::somebody_came`].
    pub fn leave(&mut self, waiting: &Waiting) {
        let key = key_of(waiting);
        self.unplaced = Some(self.unplaced.map_or(key, |first| first.min(key)));
    }

    /// A binding has consumers that had none.
    pub fn somebody_came(&mut self) {
        if let Some(first) = self.unplaced.take() {
            self.rewind(first);
        }
    }

    /// The database has a row more, or another one than before.
    pub fn committed(&mut self, due: i64, seq: u64) {
        self.ended(seq);
        if (due, seq) <= self.after || self.reading.is_some() {
            self.rewind((due, seq));
        }
        self.look_at(due);
    }

    /// A page under way may show this one though it has its outcome, is deleted, or waits for another time.
    pub fn ended(&mut self, seq: u64) {
        if let Some(reading) = &mut self.reading {
            reading.ended.insert(seq);
        }
    }

    /// Others have changed what the database has: everything is looked at again.
    pub fn look_again(&mut self) {
        self.unplaced = None;
        self.rewind((i64::MIN, 0));
    }

    /// The group goes on elsewhere: nothing that memory has counts, and what the database has is looked at anew.
    pub fn forget(&mut self) {
        let tickets = self.tickets;
        *self = Self { tickets, ..Self::default() };
    }

    /// Whether a page should be read now. Asked again only after [`Self::page`] or [`Self::page_failed`].
    pub fn want_page(&mut self, now: i64) -> Option<RetriesWanted> {
        if self.next().is_none_or(|at| at > now) {
            return None;
        }
        self.look_at = None;
        self.tickets += 1;
        let (ticket, after) = (self.tickets, self.after);
        self.reading = Some(Reading { ticket, rewound: None, ended: HashSet::new() });
        Some(RetriesWanted { ticket, after, until: now, limit: WINDOW_EVENTS })
    }

    /// When there may be a page to be read, in milliseconds since 1970. None: not before something else happens.
    #[must_use]
    pub fn next(&self) -> Option<i64> {
        let has_room = self.here.len() <= LOW_WATER && self.bytes <= WINDOW_BYTES / 2;
        self.look_at.filter(|_| has_room && self.reading.is_none())
    }

    /// Takes a page. Returns what it may rightly show; each of them is to be handed out, [kept](Self::keep) or
    /// [left](Self::leave), unless somebody has it.
    pub fn page(&mut self, page: RetriesPage) -> Vec<Waiting> {
        let RetriesPage { ticket, mut rows, next } = page;
        let Some(reading) = self.reading.take_if(|reading| reading.ticket == ticket) else {
            return Vec::new();
        };
        if let Some(last) = rows.last() {
            self.after = self.after.max((last.due.unwrap_or(i64::MIN), last.event.seq));
        }
        if let Some(next) = next {
            self.look_at(next);
        }
        if let Some(first) = reading.rewound {
            self.rewind(first);
        }
        rows.retain(|waiting| !reading.ended.contains(&waiting.event.seq) && !self.has(waiting.event.seq));
        rows
    }

    /// The page couldn't be read: it is asked for again after a moment.
    pub fn page_failed(&mut self, ticket: u64, now: i64) {
        if let Some(reading) = self.reading.take_if(|reading| reading.ticket == ticket) {
            if let Some(first) = reading.rewound {
                self.rewind(first);
            }
            self.look_at = Some(now + AGAIN);
        }
    }

    /// From this place on everything is looked at again.
    fn rewind(&mut self, first: Key) {
        if let Some(reading) = &mut self.reading {
            reading.rewound = Some(reading.rewound.map_or(first, |old| old.min(first)));
        }
        self.after = self.after.min((first.0, first.1.saturating_sub(1)));
        self.look_at(first.0);
    }

    fn look_at(&mut self, at: i64) {
        self.look_at = Some(self.look_at.map_or(at, |old| old.min(at)));
    }
}

fn key_of(waiting: &Waiting) -> Key {
    (waiting.due.unwrap_or(i64::MIN), waiting.event.seq)
}
