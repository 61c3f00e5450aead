//! How claims end: acked, nacked, handed back, over by their lease, or lost with their link.

use std::sync::Arc;

use super::{Group, Settling, ordered::Ending};
use crate::{
    actors::{
        clock::Now,
        deliveries::{
            binding::Waiting,
            consumer::ConsumerKey,
            effects::{Effects, Ended, Finish, Verdict},
            leases::granted,
        },
        dispatched::Dispatched,
        outlet::{LinkId, Outlet},
    },
    event::Outcome,
    wire::{Attempt, Req, Token},
};

impl Group {
    /// What a consumer says of a claim that its link holds.
    pub fn settle(
        &mut self,
        outlet: &Outlet,
        req: Req,
        token: Token,
        verdict: Verdict,
        now: Now,
        effects: &mut Effects,
    ) {
        let held = self.claims.get(&token).filter(|claim| {
            claim.consumer.link == outlet.id() && claim.settling.is_none() && !claim.reserving
        });
        let Some(claim) = held else {
            effects.answers.push((outlet.clone(), req, false));
            self.spoke_late(outlet.id(), token, now, effects);
            return;
        };
        let key = claim.consumer;
        let waits = Some((outlet.clone(), req));
        let was_silent = self.spoke(key);
        match verdict {
            Verdict::Extend(lease) => {
                let usual = self.consumers.get(&key).map_or(0, |consumer| consumer.lease);
                self.leases.hold(token, now.steady + granted(lease, usual));
                effects.answers.push((outlet.clone(), req, true));
                if was_silent {
                    self.offer_turn(key, now, effects);
                }
                return;
            }
            Verdict::Release => {
                effects.answers.push((outlet.clone(), req, true));
                // Others first: whoever handed it back has just shown that it doesn't want it now.
                self.leave_turn(key);
                self.give_back(token, now, effects);
                self.forget_if_done(key);
                return;
            }
            Verdict::Ack => self.finish(token, Outcome::Success, None, waits, effects),
            Verdict::Nack(options) => self.nack(token, options, waits, now, effects),
        }
        let freed = self.consumers.get_mut(&key).map_or(0, |consumer| consumer.settled(token));
        self.freed(key, freed, now, effects);
    }

    /// What [`Effects::finishes`] or [`Effects::retries`] asked for was recorded, or (`again`) couldn't be: then the claim is
    /// its holder's as before; without one, the event is offered again. Returns who waits for the answer.
    pub fn recorded(
        &mut self,
        token: Token,
        again: bool,
        now: Now,
        effects: &mut Effects,
    ) -> Option<(Outlet, Req)> {
        let claim = self.claims.get_mut(&token)?;
        let settling = claim.settling.take()?;
        let ending = settling.ending(claim.round);
        let Settling { waits, due, .. } = settling;
        let (key, seq, weight) = (claim.consumer, claim.event.seq, claim.event.weight());
        let holder = self.consumers.get_mut(&key).filter(|_| waits.is_some());
        if again {
            claim.round = claim.round.max(self.identity.round);
            match holder {
                // It may try again.
                Some(consumer) => {
                    consumer.recorded();
                    consumer.took(token, weight);
                    self.budget.took(key.link, weight);
                    self.leases.hold(token, now.steady + consumer.lease);
                    self.offer_turn(key, now, effects);
                }
                None => self.give_back(token, now, effects),
            }
            return waits;
        }
        if let Some(consumer) = holder {
            consumer.recorded();
        }
        let mut again = None;
        if let Some(claim) = self.claims.remove(&token) {
            if claim.round < self.identity.round && due.is_none() {
                again = Some(claim.event.clone());
            }
            // A page under way may still show it.
            self.each_matching(&claim.event, |binding| binding.ended(seq));
            self.pending.ended(seq);
            match due {
                Some(due) => self.retries.committed(due, seq),
                None => self.retries.ended(seq),
            }
            effects.tell(claim.event, claim.tell);
        }
        self.taken.remove(&seq);
        let deleted = self.deleted.remove(&seq);
        self.ended_in_order(seq, ending, deleted, now, effects);
        if let Some(event) = again.filter(|_| !deleted) {
            self.serve_again(event, now, effects);
        }
        self.offer_turn(key, now, effects);
        self.want_retries(now, effects);
        self.forget_if_done(key);
        waits
    }

    /// Its end was recorded in a round that doesn't count any more: it is offered as a new one is.
    fn serve_again(&mut self, event: Arc<Dispatched>, now: Now, effects: &mut Effects) {
        let mut matched = Vec::new();
        self.matching(&event, &mut matched);
        if !matched.is_empty() {
            self.pending.came(event.seq);
            let waiting = Waiting { event, attempts: 0, round: self.identity.round, due: None };
            self.place(waiting, &matched, now, effects);
        }
    }

    /// The link is gone. The oldest claims of each of its consumers, as many as run at once at the client, count as
    /// attempts; a first attempt and what wasn't begun is offered again at once.
    pub fn link_gone(&mut self, link: LinkId, now: Now, effects: &mut Effects) {
        let gone = self.keys_of(link);
        let mut returned = Vec::new();
        self.budget.forget(link);
        for key in gone {
            if let Some(consumer) = self.consumers.remove(&key) {
                if !consumer.stopped {
                    self.leave(consumer.binding, key);
                }
                let claims = &self.claims;
                let is_reserving = |token: &Token| claims.get(token).is_some_and(|claim| claim.reserving);
                let (reserving, begun): (Vec<_>, Vec<_>) = consumer.held().partition(is_reserving);
                let begun = begun.into_iter().enumerate();
                returned.extend(begun.map(|(at, token)| (token, at < consumer.concurrency)));
                returned.extend(reserving.into_iter().map(|token| (token, false)));
            }
        }
        // One that is over by its lease isn't the link's any more, though its handler may have run.
        returned.retain(|(token, _)| self.overdue.remove(token).is_none());
        effects.returned += returned.len() as u64;
        for (token, counts) in returned {
            if counts {
                self.lost_with_link(token, now, effects);
            } else {
                self.give_back(token, now, effects);
            }
        }
        self.run_lanes(now, effects);
    }

    /// Records how the event ends, and with it the claim.
    pub(super) fn finish(
        &mut self,
        token: Token,
        outcome: Outcome,
        attempt: Option<Attempt>,
        waits: Option<(Outlet, Req)>,
        effects: &mut Effects,
    ) {
        self.leases.let_go(token);
        let Some(claim) = self.claims.get_mut(&token) else { return };
        let is_dead = outcome == Outcome::Dead;
        claim.settling = Some(Settling { waits, due: None, is_dead, refused: false });
        let letter =
            attempt.as_ref().and_then(|attempt| self.letters.of(&self.policy, &claim.event, attempt));
        effects.finishes.push(Finish {
            token,
            group: self.identity.name.clone(),
            event_id: claim.event.event.id.clone(),
            seq: claim.event.original,
            outcome,
            consumer: claim.uid.clone(),
            attempt,
            round: claim.round,
            retried: claim.retried,
            letter,
        });
    }

    /// Takes a claim from its holder and offers the event again at once; it counts as no attempt.
    pub(super) fn give_back(&mut self, token: Token, now: Now, effects: &mut Effects) {
        self.offer_again(token, None, now, effects);
    }

    /// The same; what is to be written of it counts as an attempt.
    pub(super) fn offer_again(
        &mut self,
        token: Token,
        counted: Option<Attempt>,
        now: Now,
        effects: &mut Effects,
    ) {
        let Some(claim) = self.claims.remove(&token) else { return };
        self.leases.let_go(token);
        self.taken.remove(&claim.event.seq);
        let key = claim.consumer;
        // One that is over counts for its holder until that says something.
        let holder = self.consumers.get_mut(&key).filter(|_| !self.overdue.contains_key(&token));
        let freed = holder.map_or(0, |consumer| consumer.gave_back(token));
        if self.deleted.remove(&claim.event.seq) {
            self.ended_in_order(claim.event.seq, Ending::Over, true, now, effects);
            self.freed(key, freed, now, effects);
            return;
        }
        let attempts = claim.attempts + u32::from(counted.is_some());
        if let Some(attempt) = counted {
            self.unrecorded_attempts += 1;
            let of = self.identity.no;
            effects.ended.push(Ended { of, event_id: claim.event.event.id.clone(), attempt });
        }
        effects.tell(claim.event.clone(), claim.tell);
        let waiting = Waiting { event: claim.event, attempts, round: claim.round, due: claim.due };
        let mut matched = Vec::new();
        self.matching_waiting(&waiting, &mut matched);
        // Its binding may be gone, or have passed it over.
        if waiting.due.is_none() && !matched.is_empty() {
            self.pending.came(waiting.event.seq);
        }
        self.place_back(waiting, &matched, now, effects);
        self.freed(key, freed, now, effects);
    }

    /// A consumer holds so many bytes less: it has its turn, and so has each other one of its link that the link's
    /// bytes held back.
    pub(super) fn freed(&mut self, key: ConsumerKey, bytes: usize, now: Now, effects: &mut Effects) {
        let held_back = self.budget.freed(key.link, bytes);
        self.offer_turn(key, now, effects);
        if held_back {
            self.turns_of(key.link, now, effects);
            effects.unblocked.push((key.link, self.identity.no));
        }
    }

    /// Each consumer of the link has its turn: the link's bytes held it back.
    pub fn turns_of(&mut self, link: LinkId, now: Now, effects: &mut Effects) {
        for key in self.keys_of(link) {
            self.offer_turn(key, now, effects);
        }
    }
}
