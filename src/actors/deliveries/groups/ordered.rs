//! Pages of groups that keep the order of keys.

use super::{Effects, GroupNo, Groups};
use crate::actors::{
    clock::Now,
    deliveries::order::{HeldPage, LanePage},
};

impl Groups {
    /// A page of what holds back others; none: it couldn't be read.
    pub fn held_back(
        &mut self,
        no: GroupNo,
        ticket: u64,
        page: Option<HeldPage>,
        now: Now,
        effects: &mut Effects,
    ) {
        if let Some(group) = self.get_mut(no) {
            group.held_back(ticket, page, now, effects);
        }
        self.follow(now, effects);
    }

    /// A page of the events of a process.
    pub fn lane_page(&mut self, no: GroupNo, page: LanePage, now: Now, effects: &mut Effects) {
        if let Some(group) = self.get_mut(no) {
            group.lane_page(page, now, effects);
        }
        self.follow(now, effects);
    }

    /// It couldn't be read.
    pub fn lane_failed(&mut self, no: GroupNo, ticket: u64) {
        if let Some(group) = self.get_mut(no) {
            group.lane_failed(ticket);
        }
    }
}
