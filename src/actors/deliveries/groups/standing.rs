//! How groups stand, and who holds an event.

use super::{Group, GroupNo, Groups, Name};
use crate::actors::{
    clock::Now,
    deliveries::message::{GroupStanding, Holder},
};

impl Groups {
    /// How they stand: the default group first, then the others by name; or one of them, with its consumers.
    #[must_use]
    pub fn standings(&self, of: Option<&str>) -> Vec<GroupStanding> {
        let one = |no: GroupNo| self.get(no).map(|group| vec![group.standing(true)]).unwrap_or_default();
        match of {
            Some("") => one(GroupNo::DEFAULT),
            Some(name) => self.names.get(name).map(|no| one(*no)).unwrap_or_default(),
            None => {
                let mut names: Vec<(&Name, &GroupNo)> = self.names.iter().collect();
                names.sort_unstable();
                let named = names.into_iter().filter_map(|(_, no)| self.named.get(no));
                std::iter::once(&self.default).chain(named).map(|group| group.standing(false)).collect()
            }
        }
    }

    /// Who holds the event of this sequence number, in each group.
    #[must_use]
    pub fn holders(&self, seq: u64, now: Now) -> Vec<Holder> {
        self.iter().filter_map(|group| group.holder(seq, now)).collect()
    }

    /// When the oldest event was dispatched that waits or is in somebody's hands, by its number; in any group.
    #[must_use]
    pub fn oldest(&self) -> Option<u64> {
        self.iter().filter_map(Group::oldest).min()
    }
}
