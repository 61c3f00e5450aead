//! Events of processes for which memory had no room, read once it is their turn.

use std::collections::HashSet;

use super::{Key, LANE_HELD, Order, lane::First};
use crate::actors::deliveries::binding::Waiting;

/// Pages that are read at once.
const MOST_READS: usize = 4;

/// A page is being read.
#[derive(Debug)]
pub(super) struct Read {
    ticket: u64,
    key: Key,
    upto: u64,
    /// Ended, or in back-off, since: the page may show them as open.
    pub(super) ended: HashSet<u64>,
}

/// A page of the open events of one process, to be read from the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneWanted {
    /// Give it back with the page.
    pub ticket: u64,
    /// The process.
    pub pid: String,
    /// Above this number.
    pub after: u64,
    /// Up to this one.
    pub upto: u64,
    /// At most so many.
    pub limit: usize,
}

/// A page that was read.
#[derive(Debug)]
pub struct LanePage {
    /// As in [`LaneWanted`].
    pub ticket: u64,
    /// Its open events, by number.
    pub rows: Vec<Waiting>,
    /// Everything up to here was looked at.
    pub scanned: u64,
}

impl Order {
    /// The pages that are to be read now.
    pub fn want_pages(&mut self) -> Vec<LaneWanted> {
        let mut wanted = Vec::new();
        let limit = if self.is_crowded() { 1 } else { LANE_HELD };
        while self.reads.len() < MOST_READS
            && let Some((_, key)) = self.wants.pop_first()
        {
            let Some(lane) = self.lanes.get_mut(&key) else { continue };
            let (Some(First::Skipped(first)), Some((_, upto))) = (lane.first(), lane.skipped) else {
                continue;
            };
            if lane.reading || lane.out.is_some() || !lane.hands.is_empty() {
                continue;
            }
            lane.reading = true;
            self.tickets += 1;
            let (ticket, pid) = (self.tickets, key.to_string());
            self.reads.push(Read { ticket, key, upto, ended: HashSet::new() });
            wanted.push(LaneWanted { ticket, pid, after: first.saturating_sub(1), upto, limit });
        }
        wanted
    }

    /// Whether any is wanted.
    #[must_use]
    pub fn wants_pages(&self) -> bool {
        !self.wants.is_empty()
    }

    /// Takes a page; `wanted` says which of its events a consumer is there for. Returns the others.
    pub fn page(&mut self, page: LanePage, wanted: impl Fn(&Waiting) -> bool) -> Vec<Waiting> {
        let LanePage { ticket, rows, scanned } = page;
        let mut unwanted = Vec::new();
        let Some(at) = self.reads.iter().position(|read| read.ticket == ticket) else { return unwanted };
        let Read { key, upto, ended, .. } = self.reads.swap_remove(at);
        let Some(lane) = self.lanes.get_mut(&key) else { return unwanted };
        lane.reading = false;
        let scanned = scanned.min(upto);
        lane.skipped = lane.skipped.and_then(|(_, last)| (scanned < last).then_some((scanned + 1, last)));
        self.touched.insert(key);
        for waiting in rows {
            let seq = waiting.event.seq;
            if seq > scanned || ended.contains(&seq) || self.whose.contains_key(&seq) {
                continue;
            }
            if wanted(&waiting) {
                self.hold(waiting);
            } else {
                unwanted.push(waiting);
            }
        }
        unwanted
    }

    /// It couldn't be read; it is asked for again.
    pub fn page_failed(&mut self, ticket: u64) {
        if let Some(at) = self.reads.iter().position(|read| read.ticket == ticket) {
            let Read { key, .. } = self.reads.swap_remove(at);
            if let Some(lane) = self.lanes.get_mut(&key) {
                lane.reading = false;
                self.touched.insert(key);
            }
        }
    }
}
