//! What of a group waits for a time before its next attempt. All of it stands in the database; memory has those whose
//! time has come, as many for each binding as its share holds, and knows when to look for more. What there was no room for
//! is left to the database, and reading goes on past it: those who take nothing hold up nobody else.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::Bound,
    sync::Arc,
};

use super::binding::{Binding, Waiting};
use crate::actors::dispatched::Dispatched;

/// The most events of a page. Small in tests, so that there are several.
pub const PAGE_EVENTS: usize = if cfg!(test) { 4 } else { 1_024 };
/// In a group that keeps the order of keys, a page is read when no more than so many wait.
const LOW_WATER: usize = PAGE_EVENTS / 4;
/// Nor than so many bytes.
const LOW_BYTES: usize = 4 * 1024 * 1024;
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
    /// What stands in the database up to here was looked at: it is in memory, in somebody's hands, [`Self::unplaced`], or left
    /// for want of room.
    after: Key,
    /// When there is something beyond, as far as is known.
    look_at: Option<i64>,
    /// The first that was looked at while no consumer wanted it.
    unplaced: Option<Key>,
    /// Bindings for which there was no room, and the first for each that was left: it has room for that first.
    behind: BTreeMap<i64, Key>,
    /// Of them, the one that a page was read for last; none: what is new was looked at last.
    turn: Option<i64>,
    /// Nothing is read before: the database couldn't be asked.
    pause: i64,
    reading: Option<Reading>,
    tickets: u64,
}

/// A page is being read; what happens meanwhile.
#[derive(Debug)]
struct Reading {
    ticket: u64,
    /// As in [`RetriesWanted`].
    after: Key,
    /// As in [`RetriesWanted`].
    until: i64,
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
            behind: BTreeMap::new(),
            turn: None,
            pause: i64::MIN,
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

    /// Those that wait in memory.
    pub fn events(&self) -> impl Iterator<Item = &Arc<Dispatched>> {
        self.here.values().map(|(waiting, _)| &waiting.event)
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

    /// A binding has consumers that had none: what it wants of those in memory stands in its queue too from now on.
    pub fn also_for(&mut self, binding: &mut Binding) {
        for (waiting, bindings) in self.here.values_mut() {
            if binding.matches(&waiting.event) {
                binding.put_again(&waiting.event);
                *bindings += 1;
            }
        }
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

    /// There is no room for this one in the shares of these bindings: it is looked at again once one of them has room.
    pub fn leave_behind(&mut self, waiting: &Waiting, bindings: impl IntoIterator<Item = i64>) {
        let key = key_of(waiting);
        for id in bindings {
            let first = self.behind.entry(id).or_insert(key);
            *first = key.min(*first);
        }
    }

    /// This binding has consumers that had none: among what was left there may be something for them.
    pub fn joined(&mut self, id: i64) {
        self.somebody_came();
        if let Some(first) = self.behind.values().min().copied() {
            self.behind.insert(id, first);
        }
    }

    /// This binding has no consumers any more: what was left for it waits for somebody to come.
    pub fn left(&mut self, id: i64) {
        if let Some(key) = self.behind.remove(&id) {
            self.unplaced = Some(self.unplaced.map_or(key, |first| first.min(key)));
        }
    }

    /// What nobody was there for is looked at again.
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
        self.behind.clear();
        self.rewind((i64::MIN, 0));
    }

    /// The group goes on elsewhere: nothing that memory has counts, and what the database has is looked at anew.
    pub fn forget(&mut self) {
        let tickets = self.tickets;
        *self = Self { tickets, ..Self::default() };
    }

    /// Whether a page should be read now. Asked again only after [`Self::page`] or [`Self::page_failed`].
    ///
    /// What was left for a binding that has room again, and what is beyond all that was looked at, take turns: a binding
    /// whose consumers are quick has no end of the former.
    pub fn want_page(&mut self, now: i64, bindings: &HashMap<i64, Binding>) -> Option<RetriesWanted> {
        if self.reading.is_some() || self.pause > now {
            return None;
        }
        let beyond = self.look_at.is_some_and(|at| at <= now) && self.has_room(bindings);
        let from = self.turn.map_or(Bound::Unbounded, Bound::Excluded);
        let mut of = self.with_room(from, bindings).find(|(_, first)| first.0 <= now);
        if of.is_none() && !beyond {
            of = self.with_room(Bound::Unbounded, bindings).find(|(_, first)| first.0 <= now);
        }
        let after = match of {
            Some((_, first)) => self.after.min(before(first)),
            None if beyond => {
                self.look_at = None;
                self.after
            }
            None => return None,
        };
        self.turn = of.map(|(id, _)| id);
        self.tickets += 1;
        let (ticket, until) = (self.tickets, now);
        self.reading = Some(Reading { ticket, after, until, rewound: None, ended: HashSet::new() });
        Some(RetriesWanted { ticket, after, until, limit: PAGE_EVENTS })
    }

    /// When there may be a page to be read, in milliseconds since 1970. None: not before something else happens.
    #[must_use]
    pub fn next(&self, bindings: &HashMap<i64, Binding>) -> Option<i64> {
        if self.reading.is_some() {
            return None;
        }
        let beyond = self.look_at.filter(|_| self.has_room(bindings));
        let behind = self.with_room(Bound::Unbounded, bindings).map(|(_, first)| first.0);
        behind.chain(beyond).min().map(|at| at.max(self.pause))
    }

    /// Whether so few wait in memory that a group which keeps the order of keys reads on.
    #[must_use]
    pub fn is_low(&self) -> bool {
        self.here.len() <= LOW_WATER && self.bytes <= LOW_BYTES
    }

    /// Whether consumers are there for which nothing had to be left.
    fn has_room(&self, bindings: &HashMap<i64, Binding>) -> bool {
        self.behind.is_empty()
            || bindings.iter().any(|(id, binding)| binding.has_consumers() && !self.behind.contains_key(id))
    }

    /// Bindings for which something was left, and that have room now.
    fn with_room(
        &self,
        from: Bound<i64>,
        bindings: &HashMap<i64, Binding>,
    ) -> impl Iterator<Item = (i64, Key)> {
        let behind = self.behind.range((from, Bound::Unbounded)).map(|(id, first)| (*id, *first));
        behind.filter(|(id, _)| bindings.get(id).is_some_and(Binding::is_low_again))
    }

    /// Takes a page. Returns what it may rightly show; each of them is to be handed out, [kept](Self::keep) or
    /// left ([for who comes](Self::leave), or [for want of room](Self::leave_behind)), unless somebody has it.
    pub fn page(&mut self, page: RetriesPage) -> Vec<Waiting> {
        let RetriesPage { ticket, mut rows, next } = page;
        let Some(reading) = self.reading.take_if(|reading| reading.ticket == ticket) else {
            return Vec::new();
        };
        let last = rows.last().map(key_of);
        // What was left and is among these is left anew, if there is no room for it yet.
        let rest = match next {
            None => (i64::MAX, u64::MAX),
            Some(next) if next > reading.until => (next, 0),
            Some(_) => last.map_or(reading.after, |(due, seq)| (due, seq.saturating_add(1))),
        };
        let end = self.after.max(last.unwrap_or(self.after));
        self.behind.retain(|_, first| {
            if *first > reading.after {
                *first = rest.max(*first);
            }
            *first <= end
        });
        if let Some(next) = next.filter(|_| rest >= self.after) {
            self.look_at(next);
        }
        self.after = end;
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
            self.pause = now + AGAIN;
            self.look_at(self.pause);
        }
    }

    /// From this place on everything is looked at again.
    fn rewind(&mut self, first: Key) {
        if let Some(reading) = &mut self.reading {
            reading.rewound = Some(reading.rewound.map_or(first, |old| old.min(first)));
        }
        self.after = self.after.min(before(first));
        self.look_at(first.0);
    }

    fn look_at(&mut self, at: i64) {
        self.look_at = Some(self.look_at.map_or(at, |old| old.min(at)));
    }
}

/// Behind this place, `key` is the first.
fn before(key: Key) -> Key {
    (key.0, key.1.saturating_sub(1))
}

fn key_of(waiting: &Waiting) -> Key {
    (waiting.due.unwrap_or(i64::MIN), waiting.event.seq)
}
