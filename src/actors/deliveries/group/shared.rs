//! Events that npm spokes may claim too: those are claimed in the database before a consumer of ours gets them.

use std::sync::Arc;

use super::Group;
use crate::{
    actors::{
        clock::Now,
        deliveries::{
            binding::Waiting,
            consumer::ConsumerKey,
            effects::{Effects, Reserve},
            guards::NPM_FIRST,
        },
        dispatched::Dispatched,
        outlet::{ClaimPush, Outlet},
    },
    wire::Token,
};

/// After so many milliseconds a claim is tried again that the database had no answer for.
const AGAIN: i64 = 1_000;

impl Group {
    /// A new event that npm spokes are, or were, told of. With a consumer ready in one of these bindings the claim
    /// comes first; else npm spokes do, and after a moment whoever of ours is left.
    pub(super) fn share(
        &mut self,
        event: &Arc<Dispatched>,
        links: Vec<Outlet>,
        bindings: &[i64],
        now: Now,
        effects: &mut Effects,
    ) {
        self.pending.share();
        let waiting = Waiting::new(event.clone(), self.round());
        if let Some(key) = self.ready_for(bindings) {
            self.guards.guard(event.seq, now.wall);
            self.hand_out(key, waiting, now, effects);
            if let Some(claim) = self.taken.get(&event.seq).and_then(|token| self.claims.get_mut(token)) {
                claim.tell = links;
            }
            return;
        }
        self.guards.guard(event.seq, now.wall + NPM_FIRST);
        effects.tell(event.clone(), links);
        if !bindings.is_empty() {
            self.place(waiting, bindings, now, effects);
        }
    }

    /// The event, unless its time for consumers of ours hasn't come: then it is kept until [`Self::due`].
    pub(super) fn not_yet(&mut self, waiting: Waiting, now: Now) -> Option<Waiting> {
        match self.guards.waits_until(waiting.event.seq, now.wall) {
            Some(_) => self.guards.keep(waiting).err(),
            None => Some(waiting),
        }
    }

    /// What time brings: ends of leases, retries, and what npm spokes had their time for.
    pub fn due(&mut self, now: Now, effects: &mut Effects) {
        self.time_passed(now, effects);
        self.run_lanes(now, effects);
        let mut matched = Vec::new();
        for waiting in self.guards.due(now.wall) {
            self.matching_waiting(&waiting, &mut matched);
            self.place(waiting, &matched, now, effects);
        }
    }

    /// An npm spoke came: it, or one that was there before a restart, may claim what was dispatched before.
    pub fn npm_came(&mut self) {
        self.guards.npm_came();
        self.pending.share();
    }

    /// An npm link is told of an event that it missed. One that a consumer of ours has is claimed in the database
    /// first.
    pub fn tell_late(&mut self, event: Arc<Dispatched>, link: Outlet, now: Now, effects: &mut Effects) {
        let held = self.taken.get(&event.seq).and_then(|token| Some((*token, self.claims.get_mut(token)?)));
        let Some((token, claim)) = held else {
            self.guards.guard(event.seq, now.wall + NPM_FIRST);
            effects.tell(event, vec![link]);
            return;
        };
        claim.tell.push(link);
        // If it comes back before the database says whose it is, it must be asked again.
        self.guards.guard(event.seq, now.wall);
        if !claim.reserving {
            let consumer = claim.uid.clone();
            effects.reserves.push(Reserve { token, event_id: event.event.id.clone(), consumer });
        }
    }

    /// Whether npm spokes may be told of this event, which is open: no binding wants it, and none of them is at it.
    /// Else, until when they have to wait; never: none.
    pub fn is_free(&self, event: &Dispatched, now: Now) -> Result<(), Option<i64>> {
        let mut matched = Vec::new();
        self.matching(event, &mut matched);
        if !matched.is_empty() || self.taken.contains_key(&event.seq) {
            return Err(None);
        }
        self.guards.waits_until(event.seq, now.wall).map_or(Ok(()), |until| Err(Some(until)))
    }

    /// A claim of [`Effects::reserves`] was made or lost, or the database couldn't say. npm links are told only now.
    pub fn reserved(&mut self, token: Token, won: Option<bool>, now: Now, effects: &mut Effects) {
        // Its consumer may be gone meanwhile; what the database has is found again by the next one.
        let Some(claim) = self.claims.get_mut(&token) else { return };
        let (event, key) = (claim.event.clone(), claim.consumer);
        effects.tell(event.clone(), std::mem::take(&mut claim.tell));
        if !std::mem::replace(&mut claim.reserving, false) {
            // It was handed out before npm links came; if it is lost, its ack will be told.
            if won == Some(true) {
                self.guards.forget(event.seq);
            }
            return;
        }
        match won {
            Some(true) => {
                self.guards.forget(event.seq);
                self.hand_reserved(token, key, now, effects);
            }
            Some(false) => self.lost(token, key, now, effects),
            None => {
                self.guards.guard(event.seq, now.wall + AGAIN);
                self.give_back(token, now, effects);
                self.forget_if_done(key);
            }
        }
    }

    /// Claims that wait for the database's word, and events that wait for the end of npm spokes' time.
    #[cfg(test)]
    pub fn undecided(&self) -> (usize, usize) {
        (self.claims.values().filter(|claim| claim.reserving).count(), self.guards.waiting())
    }

    fn hand_reserved(&mut self, token: Token, key: ConsumerKey, now: Now, effects: &mut Effects) {
        let gone = self.claims.get(&token).is_some_and(|claim| self.deleted.contains(&claim.event.seq));
        let consumer =
            self.consumers.get(&key).filter(|consumer| !consumer.stopped && !self.draining && !gone);
        match (consumer, self.claims.get_mut(&token)) {
            (Some(consumer), Some(claim)) => {
                claim.started = now.wall;
                let (attempt, event) = (claim.attempts + 1, claim.event.clone());
                self.leases.hold(token, now.steady + consumer.lease);
                effects.hand(key.link, &consumer.outlet, ClaimPush { sub: key.sub, token, attempt, event });
            }
            _ => {
                self.give_back(token, now, effects);
                self.forget_if_done(key);
            }
        }
    }

    /// An npm spoke has the event: what becomes of it is written there.
    fn lost(&mut self, token: Token, key: ConsumerKey, now: Now, effects: &mut Effects) {
        let Some(claim) = self.claims.remove(&token) else { return };
        let seq = claim.event.seq;
        self.pending.ended(seq);
        self.retries.ended(seq);
        self.taken.remove(&seq);
        self.deleted.remove(&seq);
        self.guards.forget(seq);
        self.each_matching(&claim.event, |binding| {
            binding.forget(seq);
            binding.ended(seq);
        });
        let freed = self.consumers.get_mut(&key).map_or(0, |consumer| consumer.gave_back(token));
        self.freed(key, freed, now, effects);
        self.forget_if_done(key);
    }
}
