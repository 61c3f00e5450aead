//! A group that keeps the order of keys: its events come to consumers by way of the [`Order`], one of each process.

use std::collections::BTreeSet;

use super::{Binding, Group, Settling};
use crate::{
    actors::{
        clock::Now,
        deliveries::{
            binding::{WINDOW_EVENTS, Waiting},
            effects::Effects,
            order::{Admitted, HeldPage, LanePage, Next, Order},
        },
    },
    wire::Token,
};

/// What became of a claim, as far as others of its process are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// It has its outcome, or is gone.
    Over,
    /// It waits for its next attempt.
    Waits,
    /// It is dead, in this round.
    Dead(u32),
    /// Others wrote what became of it.
    Unknown,
}

impl Settling {
    pub(super) fn ending(&self, round: u32) -> Ending {
        match (self.refused, self.due) {
            (true, _) => Ending::Unknown,
            (_, Some(_)) => Ending::Waits,
            _ if self.is_dead => Ending::Dead(round),
            _ => Ending::Over,
        }
    }
}

impl Group {
    /// Whether it is to keep the order of keys, and whether dead events hold back others then.
    pub(super) fn order_wanted(&self) -> Option<bool> {
        (!self.is_default() && self.policy.key_order).then_some(self.policy.dead_blocks)
    }

    pub(super) fn new_order(&mut self) -> Option<Box<Order>> {
        let with_dead = self.order_wanted()?;
        self.orders += 1;
        let claims = self.claims.values().map(|claim| (&claim.event.event.pid, claim.event.seq));
        Some(Box::new(Order::new(self.orders, with_dead, claims)))
    }

    /// The order is asked for, or no longer, or otherwise: what is in hands stays there, all else is read anew.
    pub(super) fn begin_order(&mut self) {
        let floor = self.order.as_ref().and_then(|order| order.lowest()).map(|seq| seq.saturating_sub(1));
        self.bindings.values_mut().for_each(|binding| binding.give_up(floor));
        self.retries.forget();
        self.order = self.new_order();
    }

    /// What holds back others isn't what it was.
    pub(super) fn load_order_again(&mut self, effects: &mut Effects) {
        if let Some(order) = &mut self.order {
            order.load_again();
        }
        self.want_order(effects);
    }

    /// Asks for what holds back others, and for events of processes for which there was no room.
    pub(super) fn want_order(&mut self, effects: &mut Effects) {
        if self.active == 0 || self.draining {
            return;
        }
        if let Some(order) = &mut self.order {
            effects.held_back.extend(order.want_load().map(|page| (self.identity.no, page)));
        }
        self.want_lanes(effects);
    }

    /// Asks for events of processes for which there was no room, unless consumers have enough to do.
    pub(super) fn want_lanes(&mut self, effects: &mut Effects) {
        let Some(order) = self.order.as_mut().filter(|order| order.wants_pages()) else { return };
        let waiting: usize = self.bindings.values().map(Binding::waiting).sum();
        if !self.draining && self.unrecorded_attempts == 0 && waiting < WINDOW_EVENTS {
            let no = self.identity.no;
            effects.lanes.extend(order.want_pages().into_iter().map(|page| (no, page)));
        }
    }

    /// Up to where bindings must have come to read on; none: they may not.
    pub(super) fn may_read_in_order(&self) -> Option<u64> {
        match &self.order {
            None => Some(u64::MAX),
            // What is due again, or before that, can't have its turn before bindings have come as far: if they didn't read on,
            // there would be too many for ever.
            Some(order) if order.is_full() && order.is_open() && order.waits_for_bindings() => {
                Some(self.horizon())
            }
            Some(order) if order.is_full() || !order.is_loaded() => None,
            Some(order) if order.is_crowded() => Some(self.horizon()),
            Some(_) => Some(u64::MAX),
        }
    }

    /// Whether it isn't known yet whose turn it is.
    pub(super) fn has_no_turns(&self) -> bool {
        self.order.as_ref().is_some_and(|order| !order.is_open())
    }

    /// Where new events can't be taken now, they stay in the database.
    pub(super) fn lag_in_order(&mut self, bindings: &[i64]) {
        let Some(order) = &self.order else { return };
        let is_ahead = || self.horizon() != u64::MAX;
        if order.is_full() || !order.is_loaded() || order.is_crowded() && is_ahead() {
            for id in bindings {
                if let Some(binding) = self.bindings.get_mut(id) {
                    binding.lag();
                }
            }
        }
    }

    /// Up to where every binding has come that somebody consumes: what is later may have earlier ones of its process that
    /// memory doesn't know.
    fn horizon(&self) -> u64 {
        self.bindings.values().filter_map(Binding::behind).min().unwrap_or(u64::MAX)
    }

    /// One that comes back: it is the first of its process again.
    pub(super) fn place_back(&mut self, waiting: Waiting, bindings: &[i64], now: Now, effects: &mut Effects) {
        if let Some(order) = &mut self.order {
            order.forget(waiting.event.seq);
            self.place_in_order(waiting, bindings, true, now, effects);
        } else {
            self.place(waiting, bindings, now, effects);
        }
    }

    /// Keeps an event until it is its turn, which may be now.
    pub(super) fn place_in_order(
        &mut self,
        waiting: Waiting,
        bindings: &[i64],
        comes_back: bool,
        now: Now,
        effects: &mut Effects,
    ) {
        self.admit(waiting, bindings, comes_back);
        self.run_lanes(now, effects);
    }

    /// The same for one of a page of this binding, by number: what comes behind it isn't known yet.
    pub(super) fn place_of_page(&mut self, waiting: Waiting, id: i64, now: Now, effects: &mut Effects) {
        let seq = waiting.event.seq;
        self.admit(waiting, &[id], false);
        self.run_lanes_up_to(seq, now, effects);
    }

    fn admit(&mut self, waiting: Waiting, bindings: &[i64], comes_back: bool) {
        let consumed = |id: &i64| self.bindings.get(id).is_some_and(Binding::has_consumers);
        if !bindings.iter().any(consumed) {
            self.leave_in_order(waiting, bindings);
        } else if let Some(order) = &mut self.order {
            match order.admit(waiting, comes_back) {
                Admitted::Known => {}
                Admitted::Again(waiting) => {
                    self.recall(waiting.event.seq);
                    if let Some(order) = &mut self.order {
                        order.hold(waiting);
                    }
                }
                Admitted::Left(waiting) => self.retries.leave(&waiting),
            }
        }
    }

    /// Nobody is there for it: the database has it.
    fn leave_in_order(&mut self, waiting: Waiting, bindings: &[i64]) {
        let Some(order) = &mut self.order else { return };
        order.forget(waiting.event.seq);
        if waiting.due.is_some() {
            order.keep_back(&waiting.event.event.pid, waiting.event.seq);
            self.retries.leave(&waiting);
            return;
        }
        for id in bindings {
            if let Some(binding) = self.bindings.get_mut(id) {
                binding.put(waiting.clone());
            }
        }
    }

    /// Hands out, or offers, whatever has its turn now.
    pub fn run_lanes(&mut self, now: Now, effects: &mut Effects) {
        self.run_lanes_up_to(u64::MAX, now, effects);
    }

    fn run_lanes_up_to(&mut self, known: u64, now: Now, effects: &mut Effects) {
        let mut matched = Vec::new();
        loop {
            let horizon = match &self.order {
                Some(_) => self.horizon().min(known),
                None => return,
            };
            let Some(order) = &mut self.order else { return };
            order.advance(horizon);
            let Some(key) = order.pop_touched() else { break };
            match order.next(&key, horizon) {
                Next::Nothing => {}
                Next::Look => {
                    self.retries.somebody_came();
                    self.want_retries(now, effects);
                }
                Next::Recall(seq) => {
                    if let (Some(waiting), Some(order)) = (self.recall(seq), &mut self.order) {
                        order.hold(waiting);
                    }
                }
                Next::Give(waiting) => {
                    self.matching_waiting(&waiting, &mut matched);
                    let consumed = |id: &i64| self.bindings.get(id).is_some_and(Binding::has_consumers);
                    if matched.iter().any(consumed) {
                        self.place_freely(waiting, &matched, now, effects);
                    } else {
                        self.leave_in_order(waiting, &matched);
                    }
                }
            }
        }
        self.want_lanes(effects);
    }

    /// Takes one back that waits for a consumer.
    fn recall(&mut self, seq: u64) -> Option<Waiting> {
        let kept = self.bindings.values_mut().filter_map(|binding| binding.take_out(seq)).last();
        self.retries.take(seq).or(kept)
    }

    /// The event, unless it may not be handed out any more since an earlier one may come.
    pub(super) fn in_turn(&mut self, waiting: Waiting) -> Option<Waiting> {
        if self.order.is_none() || waiting.event.seq <= self.horizon() {
            return Some(waiting);
        }
        self.recall(waiting.event.seq);
        if let Some(order) = &mut self.order {
            order.hold(waiting);
        }
        None
    }

    /// A claim ended for good, or until its event is read again.
    pub(super) fn ended_in_order(
        &mut self,
        seq: u64,
        ending: Ending,
        deleted: bool,
        now: Now,
        effects: &mut Effects,
    ) {
        let round = self.identity.round;
        let Some(order) = &mut self.order else { return };
        match ending {
            _ if deleted => order.ended(seq),
            Ending::Waits => order.waits(seq),
            Ending::Dead(of) if self.policy.dead_blocks && of >= round => order.waits(seq),
            Ending::Over | Ending::Dead(_) => order.ended(seq),
            Ending::Unknown => {
                order.ended(seq);
                self.load_order_again(effects);
            }
        }
        self.run_lanes(now, effects);
    }

    /// What a claim ended with was refused by what others wrote.
    pub fn refused(&mut self, token: Token) {
        self.be_unsure();
        if let Some(settling) = self.claims.get_mut(&token).and_then(|claim| claim.settling.as_mut()) {
            settling.refused = true;
        }
    }

    /// The last consumer of a binding left: what only that wanted holds back nobody, unless it failed before. `kept` had
    /// their turns and waited for a consumer, and so did `again`, after their time.
    pub(super) fn left_in_order(&mut self, id: i64, kept: &[u64], again: &BTreeSet<u64>) {
        if self.order.is_none() || self.bindings.get(&id).is_none_or(Binding::has_consumers) {
            return;
        }
        let others = |seq: u64| self.bindings.values().any(|binding| binding.keeps(seq));
        let gone: Vec<u64> = kept.iter().copied().filter(|seq| !others(*seq)).collect();
        let unwanted: Vec<Waiting> = self
            .order
            .iter()
            .flat_map(|order| order.all_held())
            .filter(|waiting| !self.is_consumed(waiting))
            .cloned()
            .collect();
        let Some(order) = &mut self.order else { return };
        for seq in gone.iter().filter(|seq| order.is_out(**seq)).copied().collect::<Vec<_>>() {
            order.forget(seq);
        }
        for seq in again {
            if !self.retries.has(*seq) && order.is_out(*seq) {
                order.waits(*seq);
            }
        }
        let skipped = order.first_skipped();
        let mut matched = Vec::new();
        for waiting in unwanted {
            self.matching_waiting(&waiting, &mut matched);
            self.leave_in_order(waiting, &matched);
        }
        if let Some(binding) = self.bindings.get_mut(&id)
            && let Some(seq) = skipped
        {
            binding.give_up(Some(seq.saturating_sub(1)));
        }
    }

    /// Whether a binding wants it that somebody consumes.
    fn is_consumed(&self, waiting: &Waiting) -> bool {
        let mut matched = Vec::new();
        self.matching_waiting(waiting, &mut matched);
        matched.iter().any(|id| self.bindings.get(id).is_some_and(Binding::has_consumers))
    }

    /// A page of what holds back others; none: it couldn't be read. [`Self::want_pages`] asks for the next.
    pub fn held_back(&mut self, ticket: u64, page: Option<HeldPage>, now: Now, effects: &mut Effects) {
        let Some(order) = &mut self.order else { return };
        let Some(page) = page else {
            order.load_failed(ticket);
            return;
        };
        if order.loaded(ticket, page) {
            self.run_lanes(now, effects);
            for key in self.consumers.keys().copied().collect::<Vec<_>>() {
                self.offer_turn(key, now, effects);
            }
        }
        self.want_pages(effects);
    }

    /// A page of the events of a process that [`Effects::lanes`] asked for.
    pub fn lane_page(&mut self, page: LanePage, now: Now, effects: &mut Effects) {
        let Some(mut order) = self.order.take() else { return };
        let unwanted = order.page(page, |waiting| self.is_consumed(waiting));
        self.order = Some(order);
        let mut matched = Vec::new();
        for waiting in unwanted {
            self.matching_waiting(&waiting, &mut matched);
            self.leave_in_order(waiting, &matched);
        }
        self.run_lanes(now, effects);
    }

    /// It couldn't be read; it is asked for again.
    pub fn lane_failed(&mut self, ticket: u64) {
        if let Some(order) = &mut self.order {
            order.page_failed(ticket);
        }
    }
}
