//! How many events wait for a consumer, in memory or in the database, and how many consumers hold.

use super::{Binding, Group};
use crate::{actors::deliveries::pending::MarksWanted, store::OpenMark};

impl Group {
    /// Claims in somebody's hands or on their way to the database.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.claims.len()
    }

    /// Events that wait in memory; [`Self::pending`] counts those in the database too.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.bindings.values().map(Binding::waiting).sum::<usize>()
            + self.guards.waiting()
            + self.retries.waiting()
            + self.order.as_ref().map_or(0, |order| order.held())
    }

    /// Events that a binding wants, without outcome and in nobody's hands; none until they were counted once.
    #[must_use]
    pub fn pending(&self) -> Option<u64> {
        self.pending.count()
    }

    /// What is to be read to count them, if that is needed now. Answer with [`Self::marks`] or [`Self::marks_failed`].
    pub fn want_marks(&mut self) -> Option<MarksWanted> {
        let floor = self.floor();
        self.pending.begin(floor, self.head)
    }

    /// Open events that were asked for, by number, up to `read`; none: that was all. Returns what is to be read next.
    pub fn marks(&mut self, marks: &[OpenMark], read: Option<u64>) -> Option<MarksWanted> {
        let waits = |mark: &&OpenMark| self.wants(mark) && !self.taken.contains_key(&mark.seq);
        let waiting: Vec<u64> = marks.iter().filter(waits).map(|mark| mark.seq).collect();
        self.pending.page(waiting.into_iter(), read)
    }

    /// Whether a binding wants this event, as far as patterns and its time say.
    #[must_use]
    pub fn wants(&self, mark: &OpenMark) -> bool {
        let mut wanted = false;
        self.index.matching(&mark.domain, &mark.name, |id| {
            wanted |= self.bindings.get(id).is_some_and(|binding| binding.reaches(mark.seq, &mark.domain));
        });
        wanted
    }

    /// They couldn't be read.
    pub fn marks_failed(&mut self) {
        self.pending.failed();
    }

    /// An outcome was refused by what others wrote: the count may be off.
    pub fn be_unsure(&mut self) {
        self.pending.be_unsure();
    }

    /// Now and then: counts again, if others may have changed what waits.
    pub fn recount(&mut self) {
        self.pending.refresh();
    }
}
