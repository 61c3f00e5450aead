//! How claims end: acked, nacked, handed back, or lost with their link.

use super::Group;
use crate::{
    actors::{
        deliveries::{
            binding::Waiting,
            consumer::ConsumerKey,
            effects::{Effects, Ended, Finish, Verdict},
        },
        outlet::{LinkId, Outlet},
    },
    event::Outcome,
    wire::{Req, Token},
};

impl Group {
    /// What a consumer says of a claim that its link holds.
    pub fn settle(
        &mut self,
        outlet: &Outlet,
        req: Req,
        token: Token,
        verdict: Verdict,
        now: i64,
        effects: &mut Effects,
    ) {
        let held = self.claims.get_mut(&token).filter(|claim| {
            claim.consumer.link == outlet.id() && claim.settling.is_none() && !claim.reserving
        });
        let Some(claim) = held else {
            effects.answers.push((outlet.clone(), req, false));
            return;
        };
        let key = claim.consumer;
        let (outcome, attempt) = match verdict {
            Verdict::Release => {
                effects.answers.push((outlet.clone(), req, true));
                // Others first: whoever handed it back has just shown that it doesn't want it now.
                self.leave_turn(key);
                self.give_back(token, false, "released", now, effects);
                self.forget_if_done(key);
                return;
            }
            Verdict::Ack => (Outcome::Success, None),
            Verdict::Nack(error) => (Outcome::Dead, Some(claim.attempt(&self.identity, "nack", error, now))),
        };
        claim.settling = Some((outlet.clone(), req));
        effects.finishes.push(Finish {
            token,
            group: self.identity.name.clone(),
            round: self.identity.round,
            event_id: claim.event.event.id.clone(),
            seq: claim.event.seq,
            outcome,
            consumer: claim.uid.clone(),
            attempt,
        });
        let freed = self.consumers.get_mut(&key).map_or(0, |consumer| consumer.settled(token));
        self.freed(key, freed, now, effects);
    }

    /// The outcome was recorded, or (`again`) couldn't be: then the claim is its holder's as before. Returns who
    /// waits for the answer.
    pub fn recorded(
        &mut self,
        token: Token,
        again: bool,
        now: i64,
        effects: &mut Effects,
    ) -> Option<(Outlet, Req)> {
        let claim = self.claims.get_mut(&token)?;
        let waits = claim.settling.take();
        let (key, seq, weight) = (claim.consumer, claim.event.seq, claim.event.weight());
        let consumer = self.consumers.get_mut(&key);
        if again {
            match consumer {
                // Its holder may try again.
                Some(consumer) => {
                    consumer.recorded();
                    consumer.took(token, weight);
                    self.budget.took(key.link, weight);
                    self.offer_turn(key, now, effects);
                }
                None => self.give_back(token, false, "not recorded", now, effects),
            }
            return waits;
        }
        if let Some(consumer) = consumer {
            consumer.recorded();
        }
        if let Some(claim) = self.claims.remove(&token) {
            self.each_matching(&claim.event, |binding| binding.ended(seq));
            self.pending.ended(seq);
            effects.tell(claim.event, claim.tell);
        }
        self.taken.remove(&seq);
        self.deleted.remove(&seq);
        self.offer_turn(key, now, effects);
        self.forget_if_done(key);
        waits
    }

    /// The link is gone: what its consumers hold is offered again at once. The oldest of each, as many as run at
    /// once at the client, count as attempts.
    pub fn link_gone(&mut self, link: LinkId, now: i64, effects: &mut Effects) {
        let gone = self.keys_of(link);
        let mut returned = Vec::new();
        self.budget.forget(link);
        for key in gone {
            if let Some(consumer) = self.consumers.remove(&key) {
                if !consumer.stopped {
                    self.leave(consumer.binding, key);
                }
                let claims = &self.claims;
                let handed_out = |token: &Token| claims.get(token).is_some_and(|claim| !claim.reserving);
                let (begun, reserving): (Vec<_>, Vec<_>) = consumer.held().partition(handed_out);
                let begun = begun.into_iter().enumerate();
                returned.extend(begun.map(|(at, token)| (token, at < consumer.concurrency)));
                returned.extend(reserving.into_iter().map(|token| (token, false)));
            }
        }
        effects.returned += returned.len() as u64;
        for (token, counts) in returned {
            self.give_back(token, counts, "link lost", now, effects);
        }
    }

    /// Takes a claim from its holder and offers the event again.
    pub(super) fn give_back(
        &mut self,
        token: Token,
        counts: bool,
        reason: &str,
        now: i64,
        effects: &mut Effects,
    ) {
        let Some(claim) = self.claims.remove(&token) else { return };
        self.taken.remove(&claim.event.seq);
        let key = claim.consumer;
        let freed = self.consumers.get_mut(&key).map_or(0, |consumer| consumer.gave_back(token));
        if self.deleted.remove(&claim.event.seq) {
            self.freed(key, freed, now, effects);
            return;
        }
        if counts {
            self.unrecorded_attempts += 1;
            let attempt = claim.attempt(&self.identity, reason, String::new(), now);
            let of = self.identity.no;
            effects.ended.push(Ended { of, event_id: claim.event.event.id.clone(), attempt });
        }
        self.pending.came(claim.event.seq);
        let mut matched = Vec::new();
        self.matching(&claim.event, &mut matched);
        let attempts = claim.attempts + u32::from(counts);
        effects.tell(claim.event.clone(), claim.tell);
        self.place(Waiting { event: claim.event, attempts }, &matched, now, effects);
        self.freed(key, freed, now, effects);
    }

    /// A consumer holds so many bytes less: it has its turn, and so has each other one of its link that the link's
    /// bytes held back.
    pub(super) fn freed(&mut self, key: ConsumerKey, bytes: usize, now: i64, effects: &mut Effects) {
        let held_back = self.budget.freed(key.link, bytes);
        self.offer_turn(key, now, effects);
        if held_back {
            self.turns_of(key.link, now, effects);
            effects.unblocked.push((key.link, self.identity.no));
        }
    }

    /// Each consumer of the link has its turn: the link's bytes held it back.
    pub fn turns_of(&mut self, link: LinkId, now: i64, effects: &mut Effects) {
        for key in self.keys_of(link) {
            self.offer_turn(key, now, effects);
        }
    }
}
