//! How a group stands, in numbers, and who holds an event.

use std::collections::BTreeMap;

use super::{Binding, Group};
use crate::{
    actors::{
        clock::Now,
        deliveries::{
            message::{GroupStanding, Holder},
            pending::Oldest,
        },
    },
    wire::{ConsumerInfo, MOST_LISTED},
};

impl Group {
    /// How it stands; `listed`: with its consumers.
    #[must_use]
    pub fn standing(&self, listed: bool) -> GroupStanding {
        let active = || self.consumers.values().filter(|consumer| !consumer.stopped);
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let mut standing = GroupStanding {
            group: self.identity.name.clone(),
            round: self.identity.round,
            settings: self.policy.settings(),
            pending: self.pending(),
            in_flight: count(self.in_flight()),
            oldest: self.oldest(),
            consumers: count(active().count()),
            bound: Vec::new(),
            connected: Vec::new(),
        };
        if listed {
            let mut bound: BTreeMap<i64, u64> = BTreeMap::new();
            for consumer in active() {
                *bound.entry(consumer.binding).or_default() += 1;
                let Some((domain, name)) = self.patterns(consumer.binding) else { continue };
                if standing.connected.len() < MOST_LISTED {
                    standing.connected.push(ConsumerInfo {
                        uid: consumer.uid.clone(),
                        domain,
                        name,
                        credit: u32::try_from(consumer.credit()).unwrap_or(u32::MAX),
                        holds: u32::try_from(consumer.held().count()).unwrap_or(u32::MAX),
                    });
                }
            }
            let patterns = |(id, consumers)| {
                let (domain, name) = self.patterns(id)?;
                Some((domain, name, consumers))
            };
            standing.bound = bound.into_iter().filter_map(patterns).collect();
        }
        standing
    }

    /// Who holds the event of this sequence number.
    #[must_use]
    pub fn holder(&self, seq: u64, now: Now) -> Option<Holder> {
        let token = self.taken.get(&seq)?;
        let claim = self.claims.get(token)?;
        let left = self.leases.end(*token).map(|end| end.saturating_sub(now.steady));
        (!claim.reserving).then(|| Holder {
            group: self.identity.name.clone(),
            consumer: claim.uid.clone(),
            round: claim.round,
            attempts: claim.attempts,
            since: claim.started,
            until: left.map(|left| now.wall.saturating_add_unsigned(left)),
        })
    }

    /// The number of the oldest event that waits or is in somebody's hands.
    #[must_use]
    pub fn oldest(&self) -> Option<u64> {
        let taken = self.taken.first_key_value().map(|(seq, _)| *seq);
        let waiting = match self.pending.oldest() {
            Oldest::At(seq) => Some(seq),
            Oldest::Nothing => None,
            // Memory has the oldest, if it has any; else all that is known is where they begin.
            Oldest::Unknown => {
                let kept = self.order.as_ref().and_then(|order| order.lowest());
                let first = self.bindings.values().filter_map(Binding::first).chain(kept).min();
                first.or_else(|| self.floor().filter(|floor| *floor < self.head).map(|floor| floor + 1))
            }
        };
        [taken, waiting].into_iter().flatten().min()
    }
}
