//! Events that are deleted while they wait or are claimed.

use std::sync::Arc;

use super::{Effects, Group};
use crate::{
    actors::{clock::Now, dispatched::Dispatched},
    event::EventId,
    store::Gone,
};

impl Group {
    /// Events were deleted: who holds one keeps it to the end of the claim, nobody else gets it. An event of the same id
    /// that is published later has a number of its own.
    pub fn deleted(&mut self, gone: &[Gone], now: Now, effects: &mut Effects) {
        for Gone { id, domain, name, seq, open, .. } in gone {
            let Some(seq) = seq.or_else(|| self.adopted(id)) else { continue };
            let bindings = &mut self.bindings;
            let mut wanted = false;
            self.index.matching(domain, name, |id| {
                if let Some(binding) = bindings.get_mut(id) {
                    wanted |= binding.reaches(seq, domain);
                    binding.forget(seq);
                    // A page that is being read may still show it.
                    binding.ended(seq);
                }
            });
            self.guards.drop_kept(seq);
            let waited = self.retries.take(seq).is_some();
            self.retries.ended(seq);
            if self.taken.contains_key(&seq) {
                self.deleted.insert(seq);
                continue;
            }
            if let Some(order) = &mut self.order {
                order.ended(seq);
            }
            self.pending.ended(seq);
            if wanted && *open && !waited {
                self.pending.went(seq);
                // A count that read after the deletion and before this word of it never had the event.
                self.pending.be_unsure();
            }
        }
        self.run_lanes(now, effects);
        self.want_pages(effects);
    }

    /// The number here of an event that another hub has dispatched, if memory has it. There are few of them, if any.
    fn adopted(&self, id: &EventId) -> Option<u64> {
        let waiting = self
            .retries
            .events()
            .chain(self.order.iter().flat_map(|order| order.all_held()).map(|held| &held.event));
        let claimed = self.claims.values().map(|claim| &claim.event);
        let is_it = |event: &&Arc<Dispatched>| event.original != event.seq && event.event.id == *id;
        waiting.chain(claimed).find(is_it).map(|event| event.seq)
    }
}
