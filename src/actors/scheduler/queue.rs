//! The pure state of the scheduler: what is due in the near future. It takes `now` and reads no clock.

use std::{
    collections::{BTreeMap, HashSet},
    hash::Hash,
};

use crate::{event::EventId, store::Due};

/// What a [`DueQueue`] may hold and hand out.
#[derive(Debug, Clone, Copy)]
pub struct QueueLimits {
    /// Schedules in memory; more than a page.
    pub most: usize,
    /// Schedules of one read.
    pub page: usize,
    /// Events that run at once.
    pub batch: usize,
    /// Bytes of data that run at once; one event always fits.
    pub bytes: usize,
}

/// Why a run failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// It may succeed later.
    Passing,
    /// One of its events is at fault.
    Lasting,
}

/// Events that can't be run, at most: they are remembered so that they don't hold up the others.
const STUCK: usize = 1_000;

/// What is due next, by its id: events, or recurring schedules, each of which comes again with its next time. All that the database holds and is due until `until` is here, save what came to it from others
/// since the last read.
#[derive(Debug)]
pub struct DueQueue<Id = EventId> {
    limits: QueueLimits,
    /// By time, then id; with the bytes of its data.
    near: BTreeMap<(i64, Id), usize>,
    running: Vec<Due<Id>>,
    until: i64,
    /// The database may hold what is due after `until` and not far off.
    more: bool,
    /// Some that were handed out since the last read began didn't run: the database knows why.
    missed: bool,
    reading: bool,
    /// Handed out since the read that is under way began: its page may hold them still.
    meanwhile: HashSet<Id>,
    stuck: HashSet<Id>,
    /// So many are run one by one, to find the one at fault.
    alone: usize,
}

/// What a queue tells about itself. Times are milliseconds since 1970.
#[derive(Debug, serde::Serialize)]
pub struct QueueState {
    /// Schedules in memory.
    near: usize,
    /// When the first of them is due.
    next_due: Option<i64>,
    /// Events that are being published.
    running: usize,
    /// Up to when all is in memory.
    read_until: Option<i64>,
    /// Whether the database has more that is due soon.
    more_in_database: bool,
    /// Whether it is being read.
    reading: bool,
    /// Events that can't be run.
    stuck: usize,
}

impl<Id: Clone + Ord + Hash> DueQueue<Id> {
    /// An empty queue, to which everything is news.
    #[must_use]
    pub fn new(limits: QueueLimits) -> Self {
        Self {
            limits,
            near: BTreeMap::new(),
            running: Vec::new(),
            until: i64::MIN,
            more: false,
            missed: false,
            reading: false,
            meanwhile: HashSet::new(),
            stuck: HashSet::new(),
            alone: 0,
        }
    }

    /// An event was scheduled. What is due later than what was read is read in its time.
    pub fn told(&mut self, due: Due<Id>) {
        if due.due <= self.until {
            self.insert(due);
        }
    }

    fn insert(&mut self, due: Due<Id>) {
        self.near.insert((due.due, due.id), due.bytes);
        if self.near.len() > self.limits.most
            && let Some(((last, _), _)) = self.near.pop_last()
        {
            // What is due at the same moment may stay: it is only read a second time.
            self.until = self.until.min(last.saturating_sub(1));
            self.more = true;
        }
    }

    /// What is to run now: nothing while a run is under way.
    pub fn take(&mut self, now: i64) -> Vec<Due<Id>> {
        if !self.running.is_empty() {
            return Vec::new();
        }
        let most = if self.alone > 0 { 1 } else { self.limits.batch };
        let mut sum = 0_usize;
        while let Some(entry) = self.near.first_entry() {
            sum = sum.saturating_add(*entry.get());
            let full = self.running.len() >= most || (!self.running.is_empty() && sum > self.limits.bytes);
            if entry.key().0 > now || full {
                break;
            }
            let ((due, id), bytes) = entry.remove_entry();
            if self.reading {
                self.meanwhile.insert(id.clone());
            }
            self.running.push(Due { due, id, bytes });
        }
        if !self.running.is_empty() {
            self.alone = self.alone.saturating_sub(1);
        }
        self.running.clone()
    }

    /// The run came to its end: so many were published. Of others somebody cancelled them or was quicker, or the
    /// database's clock isn't there yet: a read tells.
    pub fn ran(&mut self, published: usize) {
        self.missed |= published < self.running.len();
        self.running.clear();
    }

    /// The run failed as a whole. Returns the event that is given up, if it is found.
    pub fn failed(&mut self, trouble: Trouble) -> Option<Id> {
        let mut running = std::mem::take(&mut self.running);
        if trouble == Trouble::Lasting {
            if running.len() == 1 {
                let due = running.pop()?;
                if self.stuck.len() < STUCK {
                    self.stuck.insert(due.id.clone());
                }
                return Some(due.id);
            }
            self.alone = running.len();
        }
        for due in running {
            self.insert(due);
        }
        None
    }

    /// A read of what is due until this moment begins; returns how many to read.
    pub fn read_begins(&mut self, until: i64) -> usize {
        self.reading = true;
        self.missed = false;
        self.more = false;
        self.meanwhile = self.running.iter().map(|due| due.id.clone()).collect();
        // What is scheduled from here on may not be on the page.
        self.until = until;
        // Those that are given up are on the page too, and must not fill it.
        self.limits.page + self.stuck.len()
    }

    /// What was read; `more`: the page was full.
    pub fn read_ends(&mut self, page: Vec<Due<Id>>, more: bool) {
        self.reading = false;
        // There was no room meanwhile, or the page was full.
        self.more |= more;
        if let Some(last) = page.last().filter(|_| more) {
            // What isn't on the page is due at its end or later.
            self.until = self.until.min(last.due);
            self.near.retain(|(due, _), _| *due <= last.due);
        }
        for due in page {
            if !self.meanwhile.contains(&due.id) && !self.stuck.contains(&due.id) {
                self.insert(due);
            }
        }
        self.meanwhile.clear();
    }

    /// How it stands, for people.
    #[must_use]
    pub fn state(&self) -> QueueState {
        QueueState {
            near: self.near.len(),
            next_due: self.near.keys().next().map(|(due, _)| *due),
            running: self.running.len(),
            read_until: (self.until != i64::MIN).then_some(self.until),
            more_in_database: self.more,
            reading: self.reading,
            stuck: self.stuck.len(),
        }
    }

    /// The read failed: another is needed.
    pub fn read_failed(&mut self) {
        self.reading = false;
        self.missed = true;
        self.meanwhile.clear();
    }

    /// Whether a read is under way.
    #[must_use]
    pub fn is_reading(&self) -> bool {
        self.reading
    }

    /// Whether a read is due at once: the database has more and here is room, or it knows something that we don't.
    #[must_use]
    pub fn wants_page(&self) -> bool {
        !self.reading && (self.missed || (self.more && self.near.len() < self.limits.page / 2))
    }

    /// When the next one is due, unless a run is under way, whose end is waited for.
    #[must_use]
    pub fn next(&self) -> Option<i64> {
        if !self.running.is_empty() {
            return None;
        }
        self.near.keys().next().map(|(due, _)| *due)
    }
}

#[cfg(test)]
mod tests;
