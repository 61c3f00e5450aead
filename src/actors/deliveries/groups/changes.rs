//! Groups that change: settings, bindings that go, the place that one has come to, groups that end.

use super::{Effects, Group, GroupNo, Groups, Policy};
use crate::{
    actors::clock::Now,
    event::{Group as Name, Pattern},
    wire::GroupSettings,
};

impl Groups {
    /// What the group has set itself, over the hub's defaults.
    #[must_use]
    pub fn own(&self, no: GroupNo) -> GroupSettings {
        self.own.get(&no).cloned().unwrap_or_default()
    }

    /// The group has set this itself, so that it does that with events that fail.
    pub fn set(&mut self, no: GroupNo, own: GroupSettings, policy: Policy) {
        if let Some(group) = self.get_mut(no) {
            group.set_policy(policy);
            self.own.insert(no, own);
        }
    }

    /// A binding of the group goes.
    pub fn unbind(&mut self, no: GroupNo, id: i64, now: Now, effects: &mut Effects) {
        let Some((_, domain, name)) = self.patterns(id) else { return };
        if let Some(group) = self.get_mut(no) {
            group.unbind(id, effects);
        }
        self.forget_binding(no, id, domain, name);
        self.follow(now, effects);
    }

    /// The group goes on from this number, in this round.
    pub fn go_to(&mut self, no: GroupNo, start_seq: u64, round: u32, effects: &mut Effects) {
        if let Some(group) = self.get_mut(no) {
            group.go_to(start_seq, round, effects);
        }
    }

    /// Nothing is handed out to the group's consumers until it is resumed or taken out; all else of it goes on.
    pub fn hold(&mut self, no: GroupNo) {
        if let Some(group) = self.get_mut(no) {
            group.drain();
        }
    }

    /// The group stays after all: its consumers go on.
    pub fn resume(&mut self, no: GroupNo, now: Now, effects: &mut Effects) {
        if self.shared.draining {
            return;
        }
        if let Some(group) = self.get_mut(no) {
            group.resume(now, effects);
        }
        self.follow(now, effects);
    }

    /// Nothing is handed out by any group until [`Self::resume_all`]; all else goes on.
    pub fn hold_all(&mut self) {
        self.iter_mut().for_each(Group::drain);
    }

    /// They go on, but those that something else holds, and those that are no more.
    pub fn resume_all(&mut self, is_held: impl Fn(&Option<Name>) -> bool, now: Now, effects: &mut Effects) {
        let is_named = |(name, _): &(&Name, &GroupNo)| !is_held(&Some((*name).clone()));
        let mut all: Vec<GroupNo> = self.names.iter().filter(is_named).map(|(_, no)| *no).collect();
        if !is_held(&None) {
            all.push(GroupNo::DEFAULT);
        }
        for no in all {
            self.resume(no, now, effects);
        }
    }

    /// Takes a named group out: its name is free, and nobody gets its events any more.
    pub fn take_out(&mut self, no: GroupNo, now: Now, effects: &mut Effects) {
        let Some(group) = self.named.get_mut(&no) else { return };
        let (bindings, name) = (group.all_patterns(), group.identity().name.clone());
        group.retire(effects);
        for (id, domain, name) in bindings {
            self.forget_binding(no, id, domain, name);
        }
        if let Some(name) = name {
            self.names.remove(&name);
        }
        self.own.remove(&no);
        self.follow(now, effects);
        self.forget_retired();
    }

    /// Groups that were taken out are forgotten once the last of their outcomes is recorded.
    pub(super) fn forget_retired(&mut self) {
        let names = &self.names;
        let is_there = |no: &GroupNo, group: &Group| {
            group.in_flight() > 0
                || group.identity().name.as_ref().is_some_and(|name| names.get(name) == Some(no))
        };
        self.named.retain(|no, group| is_there(no, group));
    }

    fn forget_binding(&mut self, no: GroupNo, id: i64, domain: Pattern, name: Pattern) {
        self.index.remove(&domain, &name, &no);
        self.bindings.remove(&id);
        self.known.remove(&(no, domain, name));
    }
}
