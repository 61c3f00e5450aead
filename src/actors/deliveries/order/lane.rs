//! One process in a group that keeps the order of keys.

use std::collections::{BTreeMap, BTreeSet};

use crate::actors::deliveries::binding::Waiting;

/// The events of one process that have no outcome, as far as memory knows of them.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// In somebody's hands: one, unless the order was asked for while there were more.
    pub(super) hands: BTreeSet<u64>,
    /// It is this one's turn: it waits for a consumer.
    pub(super) out: Option<u64>,
    /// They wait for their turn.
    pub(super) held: BTreeMap<u64, Waiting>,
    /// They wait for a time, or are dead and block: the database has them.
    pub(super) back: BTreeSet<u64>,
    /// Those of [`Self::back`] that weren't kept when their time came.
    pub(super) left: BTreeSet<u64>,
    /// The first and the last number of those that the database keeps, since there was no room.
    pub(super) skipped: Option<(u64, u64)>,
    /// They are being read.
    pub(super) reading: bool,
}

/// Where the first event of a lane is, of those that wait for their turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum First {
    Held(u64),
    Back(u64),
    Skipped(u64),
}

impl First {
    pub(super) fn seq(self) -> u64 {
        let (Self::Held(seq) | Self::Back(seq) | Self::Skipped(seq)) = self;
        seq
    }
}

impl Lane {
    pub(super) fn first(&self) -> Option<First> {
        let held = self.held.first_key_value().map(|(seq, _)| First::Held(*seq));
        let back = self.back.first().map(|seq| First::Back(*seq));
        let skipped = self.skipped.map(|(seq, _)| First::Skipped(seq));
        [held, back, skipped].into_iter().flatten().min_by_key(|first| first.seq())
    }

    /// Whether an event of this number would be the next, and nobody is at work for the process.
    pub(super) fn would_be_next(&self, seq: u64) -> bool {
        let others = self.first().map(First::seq).into_iter().chain(self.out);
        self.hands.is_empty() && others.min().is_none_or(|first| seq < first)
    }

    /// Whether any is due again, or waits for that.
    pub(super) fn has_failed(&self) -> bool {
        !self.back.is_empty() || self.held.values().any(|waiting| waiting.due.is_some())
    }

    /// Whether the database keeps this one.
    pub(super) fn skips(&self, seq: u64) -> bool {
        self.skipped.is_some_and(|(first, last)| (first..=last).contains(&seq))
    }

    pub(super) fn skip(&mut self, seq: u64) {
        let (first, last) = self.skipped.unwrap_or((seq, seq));
        self.skipped = Some((first.min(seq), last.max(seq)));
    }

    /// The first event that no cursor may pass.
    pub(super) fn lowest(&self) -> Option<u64> {
        let held = self.held.iter().find(|(_, waiting)| waiting.due.is_none()).map(|(seq, _)| *seq);
        held.into_iter().chain(self.skipped.map(|(first, _)| first)).min()
    }
}
