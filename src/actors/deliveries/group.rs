//! The pure state of a group: bindings, consumers, claims. It decides who gets what and returns effects as data;
//! it takes `now` and reads no clock.

mod changes;
mod count;
mod cursor;
mod deleted;
mod ends;
mod ordered;
mod retrying;
mod shared;
mod standing;
mod state;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use fastrand::Rng;

use self::cursor::Cursor;
use super::{
    binding::{Binding, Page, Waiting},
    budget::Budget,
    consumer::{Consumer, ConsumerKey},
    effects::{Effects, Reserve},
    groups::{GroupNo, Shared},
    guards::Guards,
    leases::Leases,
    letters::Letters,
    order::Order,
    pending::Pending,
    policy::Policy,
    retries::Retries,
    tokens::Tokens,
};
use crate::{
    actors::{
        clock::Now,
        dispatched::Dispatched,
        outlet::{ClaimPush, LinkId, Outlet},
    },
    event::{Group as Name, Pattern, PatternIndex, Uid},
    store::GroupKey,
    wire::{Attempt, Req, Token},
};

pub use retrying::Next;
pub use state::GroupState;

/// An event in somebody's hands.
#[derive(Debug)]
struct Claim {
    event: Arc<Dispatched>,
    /// Attempts counted before this one.
    attempts: u32,
    consumer: ConsumerKey,
    uid: Uid,
    started: i64,
    /// Its round.
    round: u32,
    /// As in [`Waiting::due`].
    due: Option<i64>,
    /// It came as one that waited for another attempt: the database may have a row that ends with it.
    retried: bool,
    /// It is over, and what becomes of it is on its way to the database.
    settling: Option<Settling>,
    /// Asked for in the database, and not handed out before that says yes.
    reserving: bool,
    /// npm links that are told of the event once it is claimed in the database.
    tell: Vec<Outlet>,
}

/// What is to be recorded of a claim.
#[derive(Debug)]
struct Settling {
    /// Who waits for the answer: its holder, if it has said so itself.
    waits: Option<(Outlet, Req)>,
    /// When the next attempt is due; none: it has its outcome.
    due: Option<i64>,
    /// Its outcome is that it is dead.
    is_dead: bool,
    /// The database has something else of it.
    refused: bool,
}

/// Which group it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its number among the groups of this start.
    pub no: GroupNo,
    /// Its name; none is the default one.
    pub name: Option<Name>,
    /// Outcomes of earlier rounds don't count.
    pub round: u32,
}

impl Identity {
    /// As the store knows it.
    #[must_use]
    pub fn key(&self) -> GroupKey<'_> {
        GroupKey { name: self.name.as_deref().unwrap_or_default(), round: self.round }
    }
}

/// Bindings, consumers and claims of one group.
#[derive(Debug)]
pub struct Group {
    identity: Identity,
    policy: Policy,
    cursor: Cursor,
    bindings: HashMap<i64, Binding>,
    index: PatternIndex<i64>,
    consumers: BTreeMap<ConsumerKey, Consumer>,
    claims: HashMap<Token, Claim>,
    /// Which claim an event is under, by sequence number.
    taken: BTreeMap<u64, Token>,
    guards: Guards,
    leases: Leases,
    /// Claims whose leases are over, and of which their holders said nothing yet: they count for the credit.
    overdue: HashMap<Token, ConsumerKey>,
    retries: Retries,
    /// Spreads the times of retries.
    dice: Rng,
    pending: Pending,
    /// Which of them are deleted: they are under a claim to its end, and nobody gets them after it.
    deleted: HashSet<u64>,
    budget: Budget,
    /// Attempts on their way to the database: a page read before would not count them.
    unrecorded_attempts: usize,
    /// The last event that was dispatched.
    head: u64,
    tokens: Tokens,
    draining: bool,
    /// Consumers that take events.
    active: usize,
    letters: Letters,
    /// Whose turn it is, if it keeps the order of keys.
    order: Option<Box<Order>>,
    /// How many orders it had.
    orders: u32,
}

impl Group {
    /// A group that nobody consumes yet. Everything of it up to `cursor` has an outcome, as it was saved.
    #[must_use]
    pub fn new(identity: Identity, policy: Policy, cursor: u64, shared: &Shared) -> Self {
        // npm knows the default group alone.
        let earlier = if identity.name.is_none() { shared.head } else { 0 };
        shared.letters.go_to(identity.no, policy.dead_letter.as_ref());
        // The same in each test.
        let dice = Rng::with_seed(shared.seed);
        let mut group = Self {
            identity,
            policy,
            cursor: Cursor::at(cursor),
            bindings: HashMap::new(),
            index: PatternIndex::default(),
            consumers: BTreeMap::new(),
            claims: HashMap::new(),
            taken: BTreeMap::new(),
            guards: Guards::new(earlier),
            leases: Leases::default(),
            overdue: HashMap::new(),
            retries: Retries::default(),
            dice,
            pending: Pending::default(),
            deleted: HashSet::new(),
            budget: shared.budget.clone(),
            unrecorded_attempts: 0,
            head: shared.head,
            tokens: shared.tokens.clone(),
            draining: shared.draining,
            active: 0,
            letters: shared.letters.clone(),
            order: None,
            orders: 0,
        };
        group.order = group.new_order();
        group
    }

    /// Which group it is.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// What it does with events that fail.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// From now on it does that.
    pub fn set_policy(&mut self, policy: Policy) {
        self.letters.go_to(self.identity.no, policy.dead_letter.as_ref());
        let before = self.order_wanted();
        self.policy = policy;
        if self.order_wanted() != before {
            self.begin_order();
        }
        let in_order = self.order.is_some();
        self.bindings.values_mut().for_each(|binding| binding.set_in_order(in_order));
    }

    fn is_default(&self) -> bool {
        self.identity.name.is_none()
    }

    /// Adds a binding that nobody consumes yet. One that is known already stays as it is.
    pub fn bind(&mut self, id: i64, mut binding: Binding) {
        binding.set_in_order(self.order.is_some());
        if !self.bindings.contains_key(&id) {
            self.index.insert(&binding.domain, &binding.name, id);
            self.bindings.insert(id, binding);
            // It may want what was dispatched before.
            self.pending.doubt();
        }
    }

    /// What a binding wants: domains and names.
    #[must_use]
    pub fn patterns(&self, id: i64) -> Option<(Pattern, Pattern)> {
        self.bindings.get(&id).map(|binding| (binding.domain.clone(), binding.name.clone()))
    }

    /// A consumer came, for a binding that is known.
    pub fn join(&mut self, key: ConsumerKey, consumer: Consumer, now: Now, effects: &mut Effects) {
        let binding = consumer.binding;
        if let Some(bound) = self.bindings.get_mut(&binding) {
            if bound.joined() {
                self.retries.joined(binding);
                self.retries.also_for(bound);
            }
            self.active += 1;
            self.consumers.insert(key, consumer);
            self.want_order(effects);
            self.offer_turn(key, now, effects);
            self.want_page(binding, effects);
        }
    }

    /// No more events for this consumer; what it holds stays its own. False: there is no such consumer.
    pub fn stop(&mut self, key: ConsumerKey) -> bool {
        let Some(consumer) = self.consumers.get_mut(&key) else { return false };
        if !std::mem::replace(&mut consumer.stopped, true) {
            let binding = consumer.binding;
            self.leave(binding, key);
            self.forget_overdue(key);
        }
        self.forget_if_done(key);
        true
    }

    /// Whether the link has a consumer of this number.
    #[must_use]
    pub fn has_consumer(&self, key: ConsumerKey) -> bool {
        self.consumers.contains_key(&key)
    }

    /// Whether the claim is under way, or something may yet be heard of it.
    #[must_use]
    pub fn holds(&self, token: Token) -> bool {
        self.claims.contains_key(&token) || self.overdue.contains_key(&token)
    }

    /// Nothing is handed out from here on.
    pub fn drain(&mut self) {
        self.draining = true;
    }

    /// Whether the event of this sequence number is under a claim, or about to be.
    #[must_use]
    pub fn is_taken(&self, seq: u64) -> bool {
        self.taken.contains_key(&seq)
    }

    /// Everything at or below it has an outcome or no matching binding; none while there is no binding.
    #[must_use]
    pub fn floor(&self) -> Option<u64> {
        let floor = self.bindings.values().map(Binding::floor).min()?;
        // What has a row of its own is found by that.
        let is_new = |token: &Token| self.claims.get(token).is_some_and(|claim| claim.due.is_none());
        let taken = self.taken.iter().find(|(_, token)| is_new(token)).map(|(seq, _)| *seq);
        let kept = self.order.as_ref().and_then(|order| order.lowest());
        let open = [taken, self.guards.first(), kept].into_iter().flatten().min();
        Some(open.map_or(floor, |seq| floor.min(seq.saturating_sub(1))))
    }

    /// The round of what is new.
    fn round(&self) -> u32 {
        self.identity.round
    }

    /// Whether nobody has it, and it doesn't wait for the end of npm spokes' time.
    fn is_nobodys(&self, seq: u64) -> bool {
        !self.taken.contains_key(&seq)
            && !self.guards.keeps(seq)
            && self.order.as_ref().is_none_or(|order| !order.holds(seq))
    }

    /// The last event that was dispatched.
    #[must_use]
    pub fn head(&self) -> u64 {
        self.head
    }

    /// Events were committed, in sequence; these npm links are to be told, by sequence number.
    pub fn dispatch(
        &mut self,
        events: &[Arc<Dispatched>],
        mut npm: BTreeMap<u64, Vec<Outlet>>,
        now: Now,
        effects: &mut Effects,
    ) {
        let mut matched = Vec::new();
        for event in events {
            self.matching(event, &mut matched);
            if matched.is_empty() {
                effects.orphans += u64::from(self.is_default());
            } else {
                self.pending.came(event.seq);
            }
            self.lag_in_order(&matched);
            let bindings = &mut self.bindings;
            matched.retain(|id| bindings.get_mut(id).is_some_and(|binding| binding.arrive(event)));
            let told = npm.remove(&event.seq);
            // npm knows the default group alone.
            if self.is_default() && (event.shared || told.is_some()) {
                self.share(event, told.unwrap_or_default(), &matched, now, effects);
            } else if !matched.is_empty() {
                self.place(Waiting::new(event.clone(), self.round()), &matched, now, effects);
            }
        }
        if let Some(last) = events.last() {
            self.passed(last.seq, effects);
        }
        self.run_lanes(now, effects);
    }

    /// All that was dispatched up to `seq` went by.
    pub fn passed(&mut self, seq: u64, effects: &mut Effects) {
        self.head = self.head.max(seq);
        self.bindings.values_mut().for_each(|binding| binding.passed(seq));
        self.want_pages(effects);
    }

    /// A page that [`Effects::pages`] asked for.
    pub fn page(&mut self, id: i64, page: Page, now: Now, effects: &mut Effects) {
        let round = self.round();
        let Some(binding) = self.bindings.get_mut(&id) else { return };
        for waiting in binding.page(page, self.head, round) {
            if !self.is_nobodys(waiting.event.seq) {
                continue;
            }
            if self.order.is_some() {
                self.place_of_page(waiting, id, now, effects);
            } else {
                self.place(waiting, &[id], now, effects);
            }
        }
        self.run_lanes(now, effects);
        self.want_page(id, effects);
    }

    /// The page couldn't be read. Ask for it again with [`Self::want_pages`].
    pub fn page_failed(&mut self, id: i64, ticket: u64) {
        if let Some(binding) = self.bindings.get_mut(&id) {
            binding.page_failed(ticket);
        }
    }

    /// Attempts of [`Effects::ended`] were recorded, or couldn't be.
    pub fn attempts_recorded(&mut self, attempts: usize, effects: &mut Effects) {
        self.unrecorded_attempts = self.unrecorded_attempts.saturating_sub(attempts);
        self.want_pages(effects);
    }

    /// Asks for all pages that are wanted and not under way.
    pub fn want_pages(&mut self, effects: &mut Effects) {
        self.want_order(effects);
        let Some(limit) = self.may_read() else { return };
        for (id, binding) in &mut self.bindings {
            if binding.loaded() <= limit
                && let Some(page) = binding.want_page()
            {
                effects.pages.push((*id, page));
            }
        }
    }

    fn keys_of(&self, link: LinkId) -> Vec<ConsumerKey> {
        let all = ConsumerKey { link, sub: 0 }..=ConsumerKey { link, sub: u32::MAX };
        self.consumers.range(all).map(|(key, _)| *key).collect()
    }

    /// Hands an event to a consumer with credit of one of these bindings, or keeps it for all of them.
    fn place(&mut self, waiting: Waiting, bindings: &[i64], now: Now, effects: &mut Effects) {
        if self.order.is_some() {
            self.place_in_order(waiting, bindings, false, now, effects);
            return;
        }
        let Some(waiting) = self.not_yet(waiting, now) else { return };
        self.place_freely(waiting, bindings, now, effects);
    }

    /// The same for one whose turn it is.
    fn place_freely(&mut self, waiting: Waiting, bindings: &[i64], now: Now, effects: &mut Effects) {
        if waiting.due.is_some() {
            self.place_again(waiting, bindings, now, effects);
            return;
        }
        if let Some(key) = self.ready_for(bindings) {
            self.hand_out(key, waiting, now, effects);
            return;
        }
        for id in bindings {
            if let Some(binding) = self.bindings.get_mut(id) {
                binding.put(waiting.clone());
            }
        }
    }

    /// A consumer with credit of one of these bindings.
    fn ready_for(&mut self, bindings: &[i64]) -> Option<ConsumerKey> {
        if self.draining || self.has_no_turns() {
            return None;
        }
        bindings.iter().find_map(|id| self.next_ready(*id))
    }

    /// The consumer of this binding whose turn it is, if one has credit.
    fn next_ready(&mut self, id: i64) -> Option<ConsumerKey> {
        let binding = self.bindings.get_mut(&id)?;
        while let Some(key) = binding.ready.pop_front() {
            if let Some(consumer) = self.consumers.get_mut(&key) {
                if self.budget.allows(consumer) {
                    binding.ready.push_back(key);
                    return Some(key);
                }
                consumer.queued = false;
            }
        }
        None
    }

    /// A consumer may have credit again: it gets what waits, or a place in the turn.
    fn offer_turn(&mut self, key: ConsumerKey, now: Now, effects: &mut Effects) {
        let Some(consumer) = self.consumers.get_mut(&key) else { return };
        if self.draining || !self.budget.allows(consumer) {
            return;
        }
        let id = consumer.binding;

        if !consumer.queued {
            consumer.queued = true;
            if let Some(binding) = self.bindings.get_mut(&id) {
                binding.ready.push_back(key);
            }
        }
        if self.has_no_turns() {
            return;
        }
        while let Some(key) = self.next_ready(id) {
            let Some(waiting) = self.next_waiting(id) else { break };
            if !self.taken.contains_key(&waiting.event.seq)
                && let Some(waiting) = self.in_turn(waiting)
            {
                self.hand_out(key, waiting, now, effects);
            }
        }
        self.want_page(id, effects);
        self.want_retries(now, effects);
    }

    fn hand_out(&mut self, key: ConsumerKey, waiting: Waiting, now: Now, effects: &mut Effects) {
        let Some(consumer) = self.consumers.get_mut(&key) else { return };
        let token = self.tokens.next();
        if self.identity.name.is_some() {
            effects.named.push((token, self.identity.no));
        }
        let Waiting { event, attempts, round, due } = waiting;
        if due.is_some() {
            self.retries.take(event.seq);
        } else {
            self.pending.went(event.seq);
        }
        let lease = consumer.lease;
        consumer.took(token, event.weight());
        self.budget.took(key.link, event.weight());
        let uid = consumer.uid.clone();
        self.guards.drop_kept(event.seq);
        // Of what another hub has dispatched that one may have told npm spokes.
        let is_adopted = event.original != event.seq;
        let reserving = self.guards.is_guarded(event.seq) || (is_adopted && self.identity.name.is_none());
        if reserving {
            let event_id = event.event.id.clone();
            effects.reserves.push(Reserve { token, event_id, consumer: uid.clone() });
        } else {
            let push = ClaimPush { sub: key.sub, token, attempt: attempts + 1, event: event.clone() };
            effects.hand(key.link, &consumer.outlet, push);
            self.leases.hold(token, now.steady + lease);
        }
        self.taken.insert(event.seq, token);
        if let Some(order) = &mut self.order {
            order.handed(event.seq);
        }
        if self.bindings.len() > 1 {
            self.each_matching(&event, |binding| binding.forget(event.seq));
        }
        let claim = Claim {
            event,
            attempts,
            round,
            due,
            retried: due.is_some(),
            consumer: key,
            uid,
            started: now.wall,
            settling: None,
            reserving,
            tell: Vec::new(),
        };
        self.claims.insert(token, claim);
    }

    /// Runs `change` on each binding that this event is one of.
    fn each_matching(&mut self, event: &Dispatched, mut change: impl FnMut(&mut Binding)) {
        let bindings = &mut self.bindings;
        self.index.matching(&event.event.domain, &event.event.name, |id| {
            if let Some(binding) = bindings.get_mut(id) {
                change(binding);
            }
        });
    }

    /// The bindings that a new event is for.
    fn matching(&self, event: &Dispatched, matched: &mut Vec<i64>) {
        self.matching_if(event, matched, |binding| binding.reaches(event.seq, &event.event.domain));
    }

    /// The bindings that this one is for: one that waits for another attempt is so for each whose patterns match. It was the
    /// group's, and nobody else knows of it.
    fn matching_waiting(&self, waiting: &Waiting, matched: &mut Vec<i64>) {
        if waiting.due.is_some() {
            self.matching_if(&waiting.event, matched, |_| true);
        } else {
            self.matching(&waiting.event, matched);
        }
    }

    fn matching_if(&self, event: &Dispatched, matched: &mut Vec<i64>, is_for: impl Fn(&Binding) -> bool) {
        matched.clear();
        self.index.matching(&event.event.domain, &event.event.name, |id| {
            if self.bindings.get(id).is_some_and(&is_for) {
                matched.push(*id);
            }
        });
        // In turn, so that bindings which overlap share the work.
        if let Some(turn) = (event.seq as usize).checked_rem(matched.len()) {
            matched.rotate_left(turn);
        }
    }

    fn want_page(&mut self, id: i64, effects: &mut Effects) {
        self.want_lanes(effects);
        let Some(limit) = self.may_read() else { return };
        if let Some(page) = self
            .bindings
            .get_mut(&id)
            .filter(|binding| binding.loaded() <= limit)
            .and_then(Binding::want_page)
        {
            effects.pages.push((id, page));
        }
    }

    /// Whether a page read now would be true, and of use: for bindings that have come up to there.
    fn may_read(&self) -> Option<u64> {
        if self.draining || self.unrecorded_attempts > 0 { None } else { self.may_read_in_order() }
    }

    fn leave(&mut self, id: i64, key: ConsumerKey) {
        self.active = self.active.saturating_sub(1);
        let Some(binding) = self.bindings.get_mut(&id) else { return };
        let kept: Vec<u64> = if self.order.is_some() { binding.kept().collect() } else { Vec::new() };
        let again = binding.left(key);
        if !binding.has_consumers() {
            self.retries.left(id);
        }
        self.retries.give_up(again.iter().copied());
        self.left_in_order(id, &kept, &again);
    }

    fn leave_turn(&mut self, key: ConsumerKey) {
        let Some(consumer) = self.consumers.get_mut(&key) else { return };
        consumer.queued = false;
        if let Some(binding) = self.bindings.get_mut(&consumer.binding) {
            binding.ready.retain(|ready| *ready != key);
        }
    }

    /// A stopped consumer stays known while it holds something.
    fn forget_if_done(&mut self, key: ConsumerKey) {
        if self.consumers.get(&key).is_some_and(|consumer| consumer.stopped && consumer.is_idle()) {
            self.consumers.remove(&key);
        }
    }
}

impl Claim {
    fn attempt(&self, of: &Identity, reason: &str, error: String, now: Now) -> Attempt {
        Attempt {
            number: self.attempts + 1,
            round: self.round,
            group: of.name.clone(),
            consumer: self.uid.clone(),
            started: self.started,
            ended: now.wall,
            reason: reason.to_owned(),
            error,
        }
    }
}
