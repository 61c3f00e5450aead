//! What of a binding is due for a retry and waits in memory for its consumers: a share that is its own, so that consumers
//! who take nothing hold up those of no other binding.

use std::collections::{BTreeMap, BTreeSet};

use super::Binding;
use crate::actors::dispatched::Dispatched;

/// With no more than so many, more are read. Small in tests, so that it is full.
const LOW_WATER: usize = if cfg!(test) { 1 } else { 256 };
/// The most that a binding keeps: beside a page, what was there when that was asked for.
const SHARE_EVENTS: usize = super::super::retries::PAGE_EVENTS + LOW_WATER;
/// The same in bytes; one event may go beyond.
const SHARE_BYTES: usize = 8 * 1024 * 1024;

/// Sequence numbers, and what each counts for in bytes.
#[derive(Debug, Default)]
pub(super) struct Again {
    seqs: BTreeMap<u64, usize>,
    bytes: usize,
}

impl Again {
    fn put(&mut self, seq: u64, weight: usize) {
        self.bytes += weight;
        if let Some(old) = self.seqs.insert(seq, weight) {
            self.bytes -= old;
        }
    }

    fn pop(&mut self) -> Option<u64> {
        let (seq, weight) = self.seqs.pop_first()?;
        self.bytes -= weight;
        Some(seq)
    }

    pub(super) fn remove(&mut self, seq: u64) {
        if let Some(weight) = self.seqs.remove(&seq) {
            self.bytes -= weight;
        }
    }

    /// All of them; none is left.
    pub(super) fn take_all(&mut self) -> BTreeSet<u64> {
        std::mem::take(self).seqs.into_keys().collect()
    }
}

impl Binding {
    /// One is due for a retry, for the next consumer with credit.
    pub fn put_again(&mut self, event: &Dispatched) {
        self.again.put(event.seq, event.weight());
    }

    /// The oldest of those that are due for a retry: they come before the others.
    pub fn take_again(&mut self) -> Option<u64> {
        self.again.pop()
    }

    /// Whether one more may be kept for a retry.
    #[must_use]
    pub fn has_room_again(&self) -> bool {
        self.again.seqs.len() < SHARE_EVENTS && self.again.bytes < SHARE_BYTES
    }

    /// Whether those for which there was no room are to be read.
    #[must_use]
    pub fn is_low_again(&self) -> bool {
        self.again.seqs.len() <= LOW_WATER && self.again.bytes <= SHARE_BYTES / 2
    }
}
