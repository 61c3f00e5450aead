//! What groups have together, and counting what waits for each.

use super::{Group, GroupNo, Groups};
use crate::{
    actors::{deliveries::pending::MarksWanted, outlet::LinkId},
    store::OpenMark,
};

impl Groups {
    /// Claims in somebody's hands or on their way to the database.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.iter().map(Group::in_flight).sum()
    }

    /// Events that wait for a consumer, once for each group; none until they were counted once for all.
    #[must_use]
    pub fn pending(&self) -> Option<u64> {
        self.iter().map(Group::pending).sum()
    }

    /// Events that the consumers of a link hold un-acked.
    #[must_use]
    pub fn held_by(&self, link: LinkId) -> usize {
        let named = self.links.get(&link).into_iter().flatten().filter_map(|no| self.named.get(no));
        self.default.held_by(link) + named.map(|group| group.held_by(link)).sum::<usize>()
    }

    /// What is to be read to count what waits for one of the groups, if that is needed now. Answer with
    /// [`Self::marks`] or [`Self::marks_failed`].
    pub fn want_marks(&mut self) -> Option<(GroupNo, MarksWanted)> {
        self.iter_mut().find_map(|group| Some((group.identity().no, group.want_marks()?)))
    }

    /// Open events that were asked for, by number, up to `read`; none: that was all. Returns what is to be read next.
    pub fn marks(&mut self, no: GroupNo, marks: &[OpenMark], read: Option<u64>) -> Option<MarksWanted> {
        self.get_mut(no)?.marks(marks, read)
    }

    /// They couldn't be read.
    pub fn marks_failed(&mut self, no: GroupNo) {
        if let Some(group) = self.get_mut(no) {
            group.marks_failed();
        }
    }

    /// Now and then: counts again, if others may have changed what waits.
    pub fn recount(&mut self) {
        self.iter_mut().for_each(Group::recount);
    }
}
