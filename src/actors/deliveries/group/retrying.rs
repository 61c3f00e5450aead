//! Attempts that fail: what waits for the next one, and what is dead.

use super::{Binding, Group, Settling};
use crate::{
    actors::{
        clock::Now,
        deliveries::{
            binding::Waiting,
            consumer::ConsumerKey,
            effects::{Effects, Retry},
            retries::RetriesPage,
        },
        outlet::{LinkId, Outlet},
    },
    event::Outcome,
    wire::{NackOptions, Req, Token},
};

/// The longest wait between two attempts that a consumer may ask for, in milliseconds: 30 days.
const LONGEST_DELAY: u64 = 30 * 24 * 3_600 * 1_000;

/// When the group wants to be called, if nothing else happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Next {
    /// When the next lease ends, by the steady clock.
    pub steady: Option<u64>,
    /// When the next retry is due, by the wall clock.
    pub wall: Option<i64>,
}

impl Next {
    /// Whichever comes first, by each clock.
    #[must_use]
    pub fn earlier(self, other: Self) -> Self {
        fn first<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
            one.into_iter().chain(other).min()
        }
        Self { steady: first(self.steady, other.steady), wall: first(self.wall, other.wall) }
    }

    /// How many milliseconds from now that is.
    #[must_use]
    pub fn wait(self, now: Now) -> Option<u64> {
        let steady = self.steady.map(|at| at.saturating_sub(now.steady));
        let wall = self.wall.map(|at| u64::try_from(at.saturating_sub(now.wall)).unwrap_or(0));
        steady.into_iter().chain(wall).min()
    }
}

/// Why an attempt failed, and what its holder wants.
struct Failure {
    reason: &'static str,
    error: String,
    /// How long the next attempt waits, in milliseconds; none: by the group's back-off.
    delay: Option<u64>,
    is_final: bool,
}

impl Failure {
    fn of(reason: &'static str) -> Self {
        Self { reason, error: String::new(), delay: None, is_final: false }
    }
}

impl Group {
    /// Ends claims whose leases are over, and asks for what is due for a retry.
    pub(super) fn time_passed(&mut self, now: Now, effects: &mut Effects) {
        while let Some(token) = self.leases.over(now.steady) {
            let Some(claim) = self.claims.get(&token) else { continue };
            effects.over += 1;
            self.overdue.insert(token, claim.consumer);
            if let Some(consumer) = self.consumers.get_mut(&claim.consumer) {
                consumer.silent = true;
            }
            if self.deleted.contains(&claim.event.seq) {
                self.give_back(token, now, effects);
            } else {
                self.fail(token, Failure::of("lease over"), None, now, effects);
            }
        }
        self.want_retries(now, effects);
    }

    /// When [`Self::due`] has something to do, as far as is known.
    #[must_use]
    pub fn next(&self) -> Next {
        let wall = if self.reads_retries() { self.retries.next(&self.bindings) } else { None };
        Next { steady: self.leases.next(), wall }
    }

    /// Others have changed what waits for a retry: what is due is looked for from the start.
    pub fn look_at_retries(&mut self, now: Now, effects: &mut Effects) {
        self.retries.look_again();
        self.load_order_again(effects);
        self.want_retries(now, effects);
    }

    /// A page that [`Effects::due`] asked for.
    pub fn retries_page(&mut self, page: RetriesPage, now: Now, effects: &mut Effects) {
        let mut matched = Vec::new();
        for waiting in self.retries.page(page) {
            if self.is_nobodys(waiting.event.seq) {
                self.matching_waiting(&waiting, &mut matched);
                self.place(waiting, &matched, now, effects);
            }
        }
        self.want_retries(now, effects);
    }

    /// It couldn't be read.
    pub fn retries_failed(&mut self, ticket: u64, now: Now) {
        self.retries.page_failed(ticket, now.wall);
    }

    /// Asks for a page of what is due, if there may be something and somebody.
    pub(super) fn want_retries(&mut self, now: Now, effects: &mut Effects) {
        if self.reads_retries() {
            let page = self.retries.want_page(now.wall, &self.bindings);
            effects.due.extend(page.map(|page| (self.identity.no, page)));
        }
    }

    /// Whether somebody is there for what is due. Where the order of keys is kept, bindings have no shares: what has its
    /// turn waits for its consumer, and holds back those behind it.
    fn reads_retries(&self) -> bool {
        self.active > 0 && !self.draining && (self.order.is_none() || self.retries.is_low())
    }

    /// Hands one whose time has come to a consumer with credit of one of these bindings, or keeps it for those that have
    /// consumers, if one of them has room.
    pub(super) fn place_again(
        &mut self,
        waiting: Waiting,
        bindings: &[i64],
        now: Now,
        effects: &mut Effects,
    ) {
        if let Some(key) = self.ready_for(bindings) {
            self.hand_out(key, waiting, now, effects);
            return;
        }
        let mut has_room = self.order.is_some();
        let is_consumed = |id: &&i64| {
            let binding = self.bindings.get(id).filter(|binding| binding.has_consumers());
            has_room |= binding.is_some_and(Binding::has_room_again);
            binding.is_some()
        };
        let consumed: Vec<i64> = bindings.iter().filter(is_consumed).copied().collect();
        if consumed.is_empty() {
            self.retries.leave(&waiting);
        } else if has_room {
            for id in &consumed {
                if let Some(binding) = self.bindings.get_mut(id) {
                    binding.put_again(&waiting.event);
                }
            }
            self.retries.keep(waiting, consumed.len());
        } else {
            self.retries.leave_behind(&waiting, consumed);
        }
    }

    /// What the consumers of this binding get next: retries first, they have waited longer.
    pub(super) fn next_waiting(&mut self, id: i64) -> Option<Waiting> {
        let binding = self.bindings.get_mut(&id)?;
        while let Some(seq) = binding.take_again() {
            if let Some(waiting) = self.retries.take(seq) {
                return Some(waiting);
            }
        }
        self.bindings.get_mut(&id).and_then(Binding::take)
    }

    /// Its holder says that the attempt failed.
    pub(super) fn nack(
        &mut self,
        token: Token,
        options: NackOptions,
        waits: Option<(Outlet, Req)>,
        now: Now,
        effects: &mut Effects,
    ) {
        let NackOptions { reason: error, delay, is_final } = options;
        let reason = if is_final { "given up" } else { "nack" };
        self.fail(token, Failure { reason, error, delay, is_final }, waits, now, effects);
    }

    /// A claim that was begun is lost with its link. A first attempt is offered again at once: most links end for reasons
    /// that have nothing to do with the event.
    pub(super) fn lost_with_link(&mut self, token: Token, now: Now, effects: &mut Effects) {
        let Some(claim) = self.claims.get(&token) else { return };
        // When the hub stops, its links end by its own doing.
        if self.draining || self.deleted.contains(&claim.event.seq) {
            self.give_back(token, now, effects);
            return;
        }
        let failure = Failure::of("link lost");
        let at_once = claim.attempts == 0 && self.policy.max_attempts > 1;
        if at_once && claim.due.is_none() {
            let attempt = claim.attempt(&self.identity, failure.reason, failure.error, now);
            self.offer_again(token, Some(attempt), now, effects);
        } else {
            let delay = at_once.then_some(0);
            self.fail(token, Failure { delay, ..failure }, None, now, effects);
        }
    }

    /// Whoever held a claim until its lease was over speaks of it: now it may have another event for it.
    pub(super) fn spoke_late(&mut self, link: LinkId, token: Token, now: Now, effects: &mut Effects) {
        if self.overdue.get(&token).is_some_and(|key| key.link == link)
            && let Some(key) = self.overdue.remove(&token)
        {
            self.spoke(key);
            let freed = self.consumers.get_mut(&key).map_or(0, |consumer| consumer.gave_back(token));
            self.freed(key, freed, now, effects);
            self.forget_if_done(key);
        }
    }

    /// It is alive: whatever became of its claims, it may have more. Whether it was thought to hang.
    pub(super) fn spoke(&mut self, key: ConsumerKey) -> bool {
        self.consumers.get_mut(&key).is_some_and(|consumer| std::mem::take(&mut consumer.silent))
    }

    /// A consumer gets no more events: those whose leases are over needn't count any more.
    pub(super) fn forget_overdue(&mut self, key: ConsumerKey) {
        let Some(consumer) = self.consumers.get_mut(&key) else { return };
        let overdue: Vec<Token> =
            consumer.held().filter(|token| self.overdue.remove(token).is_some()).collect();
        let freed = overdue.into_iter().map(|token| consumer.gave_back(token)).sum();
        self.budget.freed(key.link, freed);
    }

    /// The attempt failed: another one comes after a time, or it was the last.
    fn fail(
        &mut self,
        token: Token,
        failure: Failure,
        waits: Option<(Outlet, Req)>,
        now: Now,
        effects: &mut Effects,
    ) {
        let Some(claim) = self.claims.get_mut(&token) else { return };
        let Failure { reason, error, delay, is_final } = failure;
        let attempt = claim.attempt(&self.identity, reason, error, now);
        if is_final || attempt.number >= self.policy.max_attempts {
            self.finish(token, Outcome::Dead, Some(attempt), waits, effects);
            return;
        }
        self.leases.let_go(token);
        let wait = match delay {
            Some(delay) => i64::try_from(delay.min(LONGEST_DELAY)).unwrap_or(i64::MAX),
            None => self.policy.back_off(attempt.number, self.dice.f64()),
        };
        let due = now.wall.saturating_add(wait);
        claim.settling = Some(Settling { waits, due: Some(due), is_dead: false, refused: false });
        effects.retries.push(Retry {
            token,
            event_id: claim.event.event.id.clone(),
            seq: claim.event.seq,
            original: claim.event.original,
            pid: claim.event.event.pid.clone(),
            attempt,
            due,
        });
    }
}
