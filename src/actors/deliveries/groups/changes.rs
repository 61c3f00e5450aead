//! Groups that change: settings, bindings that go, the place that one has come to, groups that end.

use super::{Effects, Group, GroupNo, Groups, Name, Policy};
use crate::{actors::clock::Now, event::Pattern, store, wire::GroupSettings};

/// A group that was taken out, to be put back if the store keeps it.
#[derive(Debug)]
pub struct TakenOut {
    round: u32,
    own: GroupSettings,
    policy: Policy,
    bindings: Vec<store::Binding>,
    cursor: u64,
}

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

    /// Takes a named group out: its name is free, and nobody gets its events any more.
    pub fn take_out(&mut self, no: GroupNo, now: Now, effects: &mut Effects) -> Option<TakenOut> {
        let own = self.own(no);
        let group = self.named.get_mut(&no)?;
        let (round, policy, cursor) = (group.identity().round, group.policy().clone(), group.saved());
        let bindings = group.bindings();
        let name = group.identity().name.clone();
        group.retire(effects);
        for store::Binding { id, domain, name, .. } in &bindings {
            self.forget_binding(no, *id, domain.clone(), name.clone());
        }
        if let Some(name) = name {
            self.names.remove(&name);
        }
        self.own.remove(&no);
        self.follow(now, effects);
        self.forget_retired();
        Some(TakenOut { round, own, policy, bindings, cursor })
    }

    /// Puts a group back that the store has kept.
    pub fn put_back(&mut self, name: Name, group: TakenOut) {
        let TakenOut { round, own, policy, bindings, cursor } = group;
        let no = self.add(name, round, policy.clone(), cursor);
        self.set(no, own, policy);
        for binding in bindings {
            self.bind(no, binding, cursor);
        }
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
