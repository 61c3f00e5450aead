//! What is changed in a group: bindings that go, the place that it has come to, its end.

use super::{Effects, Group};
use crate::{
    actors::{
        clock::Now,
        deliveries::{consumer::ConsumerKey, leases::Leases},
    },
    event::{Pattern, PatternIndex},
};

impl Group {
    /// A binding goes. Its consumers end; what they hold stays theirs.
    pub fn unbind(&mut self, id: i64, effects: &mut Effects) {
        let of_it = |stopped: bool, binding: i64| !stopped && binding == id;
        let consumers = self.consumers.iter();
        let ending: Vec<_> = consumers
            .filter(|(_, consumer)| of_it(consumer.stopped, consumer.binding))
            .map(|(key, consumer)| (*key, consumer.outlet.clone()))
            .collect();
        for (key, outlet) in ending {
            self.stop(key);
            effects.ended_consumers.push((outlet, key.sub));
        }
        if let Some(binding) = self.bindings.remove(&id) {
            self.index.remove(&binding.domain, &binding.name, &id);
        }
        // What only this one wanted waits for nobody any more.
        self.pending.doubt();
    }

    /// All bindings go on from this number, and outcomes of rounds before this one don't count. What consumers hold stays
    /// theirs.
    pub fn go_to(&mut self, start_seq: u64, round: u32, effects: &mut Effects) {
        self.identity.round = round;
        // What is in hands counts in the new round. Whose end is on its way to the database ends in the old one: it is
        // served once more then.
        for claim in self.claims.values_mut().filter(|claim| claim.settling.is_none()) {
            claim.round = round;
        }
        self.cursor.go_to(start_seq.saturating_sub(1));
        self.bindings.values_mut().for_each(|binding| binding.go_to(start_seq));
        self.retries.forget();
        // Nothing waits for another attempt any more: what comes back is as new as the rest.
        self.claims.values_mut().for_each(|claim| claim.due = None);
        self.order = self.new_order();
        self.pending.doubt();
        self.want_pages(effects);
    }

    /// The group is no more: its consumers end, what they hold isn't theirs any more. Outcomes that are on their way to
    /// the database are waited for.
    pub fn retire(&mut self, effects: &mut Effects) {
        self.draining = true;
        self.bindings.clear();
        self.index = PatternIndex::default();
        for (key, consumer) in std::mem::take(&mut self.consumers) {
            if self.budget.freed(key.link, consumer.held_bytes()) {
                effects.unblocked.push((key.link, self.identity.no));
            }
            if !consumer.stopped {
                effects.ended_consumers.push((consumer.outlet, key.sub));
            }
        }
        self.claims.retain(|_, claim| claim.settling.is_some());
        let claims = &self.claims;
        self.taken.retain(|_, token| claims.contains_key(token));
        self.deleted.clear();
        self.overdue.clear();
        self.leases = Leases::default();
        self.letters.go_to(self.identity.no, None);
        self.retries.forget();
        self.order = None;
        self.active = 0;
    }

    /// Its bindings, and what each wants.
    #[must_use]
    pub fn all_patterns(&self) -> Vec<(i64, Pattern, Pattern)> {
        let bindings = self.bindings.iter();
        bindings.map(|(id, binding)| (*id, binding.domain.clone(), binding.name.clone())).collect()
    }

    /// Its consumers go on after [`Self::drain`].
    pub fn resume(&mut self, now: Now, effects: &mut Effects) {
        self.draining = false;
        self.want_pages(effects);
        self.run_lanes(now, effects);
        let keys: Vec<ConsumerKey> = self.consumers.keys().copied().collect();
        for key in keys {
            self.offer_turn(key, now, effects);
        }
        self.want_retries(now, effects);
    }
}
