//! Groups, credit and claims: who gets which event to work on, and what becomes of it.

mod back_off;
mod binding;
mod budget;
mod census;
mod changes;
mod consumer;
mod count;
mod effects;
mod feeds;
mod group;
mod groups;
mod guards;
mod joins;
mod keeping;
pub mod leases;
mod letters;
mod message;
mod npm;
mod order;
mod ordered;
mod outcomes;
mod pages;
mod pending;
mod policy;
mod removal;
mod retries;
mod retrying;
mod snapshot;
mod standing;
mod start;
#[cfg(test)]
mod tests;
mod tick;
mod tokens;
mod windows;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use actix::{Actor, ActorContext, AsyncContext, Context, Handler, SpawnHandle};

pub use effects::{Ended, Finish, Reserve, Retry, Verdict};
pub use groups::GroupNo;
pub use message::{
    AwaitOutcome, ChangeGroup, Consume, Deleted, Dispatch, Drain, Expired, Floor, ForgetOutcome,
    GroupStanding, Held, HeldOf, HeldSeqs, Holder, Holders, Holding, InFlight, LinkGone, NpmCame, NpmLeft,
    Panic, Recorded, Redriven, Reserved, Settle, Settled, Standings, Stop,
};
pub use policy::Policy;

use self::{
    budget::Budget,
    census::Counted,
    consumer::ConsumerKey,
    effects::{Effects, claim_lost},
    feeds::Feeds,
    groups::{Groups, Shared},
    letters::Letters,
    outcomes::Outcomes,
    removal::Removals,
    tokens::Tokens,
    windows::Windows,
};
use super::{
    journal::{Journal, Record},
    life::{Halt, Life},
    mail::{Handle, measured},
    outlet::{Frame, LinkId},
    snapshot::Snapshot,
};
use crate::{
    event::{Group as GroupName, Policies, Uid, code},
    metrics::{self, Meter, Metrics},
    store::{self, Store},
    wire::{Answer, GroupSettings},
};

/// What [`Deliveries`] are told at their start.
#[derive(Debug, Clone)]
pub struct DeliveriesConfig {
    /// This hub.
    pub hub: Uid,
    /// How long an event that no binding wanted is kept for one that comes later, by its domain.
    pub policies: Arc<Policies>,
    /// The most events that a consumer may hold un-acked.
    pub credit: u32,
    /// The most bytes that a consumer may hold un-acked; one event always fits.
    pub credit_bytes: usize,
    /// The most bytes that all consumers of a link may hold un-acked; each may hold one event all the same. Less
    /// than what may wait to be sent on a link, which is cut beyond.
    pub link_bytes: usize,
    /// The most bytes of events that wait in memory for consumers, of all bindings together; each may have one event all
    /// the same.
    pub pending_bytes: usize,
    /// How long a claim is held without a word of its holder, if it doesn't ask for another time.
    pub lease: Duration,
    /// The most bytes of an event's data.
    pub data_bytes: usize,
    /// What groups do with events that fail, as far as they have no settings of their own.
    pub policy: Policy,
}

/// Events of one page.
const PAGE_EVENTS: usize = 1_000;
/// Bytes of one page.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// The timer: cursors are saved, pages that failed are asked for again, and what other programs write is looked for.
const TICK: Duration = Duration::from_secs(1);
/// Why an outcome isn't recorded though the claim is over.
const ENDED: [&str; 2] = [code::CLAIM_LOST, code::EVENT_NOT_FOUND];
/// Tokens of one epoch; the next epoch's start above them.
const TOKENS_PER_EPOCH: u64 = 1 << 36;

/// - **Role**: chooses, for each group, a consumer for each event that a binding of the group matches, and knows what
///   each consumer holds; tells npm links of events once it is known whether one of ours gets them.
/// - **Owns**: bindings, credit, claims and their leases; windows in memory over what the database holds for each binding
///   and what is due for a retry; the waits for outcomes; which events npm links were told of; removals of groups under way.
/// - **Receives**: [`Consume`], [`Stop`], [`Settle`], [`ChangeGroup`], [`Holders`], [`Standings`], [`AwaitOutcome`],
///   [`ForgetOutcome`], [`LinkGone`] from connections; [`Dispatch`], [`Deleted`], [`NpmCame`], [`NpmLeft`] from the registry; [`Recorded`],
///   [`Redriven`] and [`Expired`] from the journal; [`HeldOf`] from the keeper; [`Drain`], [`InFlight`], [`Floor`], [`Halt`],
///   [`Panic`], [`Snapshot`] and [`Holding`] from the hub.
/// - **Sends**: claims, answers and npm records into the links' outlets; word of outcomes to the waits of links;
///   outcomes, attempts, claims of shared events, bindings, cursors and changes of groups to the journal.
/// - **Capacity**: connections offer and refuse their request when the mailbox is full; claims are bounded by
///   credit; what doesn't fit a binding's window, or the bound of all windows, stays in the database and is read in pages.
/// - **On failure**: the core restarts as one; claims are void, events without an outcome are read again, and counted.
#[derive(Debug)]
pub struct Deliveries {
    meter: Meter,
    metrics: Metrics,
    config: DeliveriesConfig,
    store: Store,
    journal: Handle<Journal>,
    groups: Groups,
    feeds: Feeds,
    /// Consumers whose binding is being made, each with a number of its own: one that stops and comes again under
    /// the same key is another.
    joining: HashMap<ConsumerKey, u64>,
    joins: u64,
    /// Groups whose bindings are being made, with how many. Meanwhile no cursor of them is saved: it could pass what
    /// those still want.
    making: HashMap<Option<GroupName>, usize>,
    /// Groups that are being changed otherwise, or removed.
    changing: HashSet<Option<GroupName>>,
    removals: Removals,
    /// Removals that were interrupted.
    left: Vec<GroupName>,
    /// What waits is being counted.
    counting: bool,
    counted: Counted,
    ticks: u32,
    /// Nothing is handed out, since the hub's lease is in doubt.
    holds: bool,
    /// When the timer of leases and retries runs out, by the steady clock.
    timer: Option<(SpawnHandle, u64)>,
    awaited: Outcomes,
    _life: Life,
}

measured!(Deliveries: Consume, Stop, Settle, ChangeGroup, Redriven, LinkGone, Dispatch, Deleted, NpmCame, NpmLeft, Recorded, AwaitOutcome, ForgetOutcome, Holders, Standings, Drain, InFlight, Floor, Halt, Panic, Snapshot, Holding, HeldOf, Expired);

/// What the store knows at the start.
#[derive(Debug)]
pub struct Loaded {
    /// The default group.
    pub default: LoadedGroup,
    /// The others.
    pub named: Vec<(GroupName, LoadedGroup)>,
    /// Groups that are removed but for what the store has of them yet.
    pub left: Vec<GroupName>,
    /// The last sequence number that was dispatched.
    pub head: u64,
    /// This start of the hub.
    pub epoch: u64,
}

/// What the store knows of a group.
#[derive(Debug, Default)]
pub struct LoadedGroup {
    /// Outcomes of earlier rounds don't count.
    pub round: u32,
    /// Its own settings.
    pub settings: GroupSettings,
    /// Its bindings.
    pub bindings: Vec<store::Binding>,
    /// Up to where everything has an outcome.
    pub cursor: u64,
}

impl Deliveries {
    /// Deliveries that go on from what the store knows.
    #[must_use]
    pub fn new(
        config: DeliveriesConfig,
        store: Store,
        loaded: Loaded,
        metrics: Metrics,
        meter: Meter,
        journal: Handle<Journal>,
        life: Life,
    ) -> Self {
        let Loaded { default, named, left, head, epoch } = loaded;
        let shared = Shared {
            tokens: Tokens::after(epoch.saturating_mul(TOKENS_PER_EPOCH)),
            budget: Budget::new(config.link_bytes),
            windows: Windows::new(config.pending_bytes),
            letters: Letters::new(config.data_bytes),
            seed: epoch ^ head,
            head,
            draining: false,
        };
        let policy = config.policy.with(&default.settings);
        let mut groups = Groups::new(shared, policy.clone(), default.cursor);
        groups.set(GroupNo::DEFAULT, default.settings, policy);
        for binding in default.bindings {
            groups.bind(GroupNo::DEFAULT, binding, default.cursor);
        }
        for (name, group) in named {
            let policy = config.policy.with(&group.settings);
            let no = groups.add(name, group.round, policy.clone(), group.cursor);
            groups.set(no, group.settings, policy);
            for binding in group.bindings {
                groups.bind(no, binding, group.cursor);
            }
        }
        Self {
            meter,
            metrics,
            config,
            store,
            journal,
            groups,
            feeds: Feeds::default(),
            joining: HashMap::new(),
            joins: 0,
            making: HashMap::new(),
            changing: HashSet::new(),
            removals: Removals::default(),
            left,
            counting: false,
            counted: Counted::default(),
            ticks: 0,
            holds: false,
            timer: None,
            awaited: Outcomes::default(),
            _life: life,
        }
    }

    /// Does what the group decided.
    fn apply(&mut self, mut effects: Effects, ctx: &mut Context<Self>) {
        self.removals.hold_back(&mut effects);
        let hub = self.metrics.hub();
        for (outlet, claims) in effects.claims.into_values() {
            hub.claims.add(claims.len() as u64);
            for claim in &claims {
                let (event, attempt) = (&claim.event.event, claim.attempt);
                tracing::trace!(event.id = %event.id, domain = %event.domain, conn.id = %outlet.id(), attempt, "handed out");
            }
            // A link that is cut reports its end, and its claims come back.
            outlet.send(Frame::Claims(claims));
        }
        for (outlet, req, held) in effects.answers {
            if !held {
                hub.claims_lost.inc();
            }
            outlet.answer(req, if held { Ok(Answer::Done) } else { Err(claim_lost()) });
        }
        hub.orphans.add(effects.orphans);
        hub.reoffered.add(effects.returned);
        self.show_pending();
        hub.in_flight.set_len(self.groups.in_flight());
        let windows = self.groups.windows();
        hub.windows.set_len(windows.held());
        hub.windows_refused.add(windows.take_refused());
        for finish in &effects.finishes {
            let Finish { event_id, outcome, consumer, .. } = finish;
            tracing::trace!(event.id = %event_id, spoke.id = %consumer, ?outcome, "ended");
        }
        hub.leases_over.add(effects.over);
        let Effects { finishes, retries, ended, reserves, .. } = effects;
        if !(finishes.is_empty() && retries.is_empty() && ended.is_empty() && reserves.is_empty()) {
            self.journal.signal(Record { finishes, retries, ended, claims: reserves });
        }
        if !effects.npm.is_empty() {
            self.tell_npm(effects.npm);
        }
        for (id, page) in effects.pages {
            self.read_page(id, page, ctx);
        }
        for (no, page) in effects.due {
            self.read_retries(no, page, ctx);
        }
        for (no, page) in effects.held_back {
            self.read_held_back(no, page, ctx);
        }
        for (no, page) in effects.lanes {
            self.read_lane(no, page, ctx);
        }
        self.set_timer(ctx);
    }
}

impl Actor for Deliveries {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(TICK, Self::tick);
        self.clean_up(ctx);
        self.count(ctx);
    }
}

impl Handler<Consume> for Deliveries {
    type Result = ();

    fn handle(&mut self, message: Consume, ctx: &mut Self::Context) {
        self.consume(message, ctx);
    }
}

impl Handler<Stop> for Deliveries {
    type Result = ();

    fn handle(&mut self, message: Stop, ctx: &mut Self::Context) {
        let key = ConsumerKey { link: message.outlet.id(), sub: message.sub };
        let mut effects = Effects::default();
        let now = self.now();
        self.groups.stop(key, now, &mut effects);
        self.apply(effects, ctx);
        self.joining.remove(&key);
        message.outlet.answer(message.req, Ok(Answer::Done));
    }
}

impl Handler<Settle> for Deliveries {
    type Result = ();

    fn handle(&mut self, message: Settle, ctx: &mut Self::Context) {
        let mut effects = Effects::default();
        let now = self.now();
        let hub = self.metrics.hub();
        for (req, token, verdict) in message.verdicts {
            match &verdict {
                Verdict::Ack => hub.acks.inc(),
                Verdict::Nack(_) => hub.nacks.inc(),
                Verdict::Release => hub.released.inc(),
                Verdict::Extend(_) => hub.extends.inc(),
            }
            self.groups.settle(&message.outlet, req, token, verdict, now, &mut effects);
        }
        self.apply(effects, ctx);
    }
}

impl Handler<LinkGone> for Deliveries {
    type Result = ();

    fn handle(&mut self, message: LinkGone, ctx: &mut Self::Context) {
        let link: LinkId = message.0;
        self.joining.retain(|key, _| key.link != link);
        self.feeds.link_gone(link);
        let mut effects = Effects::default();
        let now = self.now();
        self.groups.link_gone(link, now, &mut effects);
        self.apply(effects, ctx);
    }
}

impl Handler<Dispatch> for Deliveries {
    type Result = ();

    fn handle(&mut self, message: Dispatch, ctx: &mut Self::Context) {
        let Dispatch { events, npm } = message;
        let mut effects = Effects::default();
        let now = self.now();
        self.groups.dispatch(&events, npm, now, &mut effects);
        self.apply(effects, ctx);
    }
}

impl Handler<Recorded> for Deliveries {
    type Result = ();

    fn handle(&mut self, message: Recorded, ctx: &mut Self::Context) {
        let mut effects = Effects::default();
        let now = self.now();
        let Recorded { settled, attempts, reserved } = message;
        self.groups.attempts_recorded(&attempts, &mut effects);
        for Settled { event_id, token, outcome, result } in settled {
            // Only where the event has its outcome, or is gone, nobody else is to get it.
            let again = result.as_ref().is_err_and(|fault| !ENDED.contains(&fault.code.as_str()));
            if !again && outcome.is_some() {
                self.tell(&event_id, self.groups.name_of(token).cloned());
            }
            if result.is_err() && !again {
                self.groups.refused(token);
            }
            match outcome.filter(|_| result.is_ok()) {
                Some(outcome) => self.metrics.hub().outcomes.of(metrics::Ended::from(outcome)).inc(),
                None if result.is_ok() => self.metrics.hub().retries.inc(),
                None => {}
            }
            if let Some((outlet, req)) = self.groups.recorded(token, again, now, &mut effects) {
                outlet.answer(req, result.map(|()| Answer::Done));
            }
        }
        for Reserved { token, won } in reserved {
            self.groups.default_mut().reserved(token, won, now, &mut effects);
        }
        self.apply(effects, ctx);
    }
}

impl Handler<Drain> for Deliveries {
    type Result = ();

    fn handle(&mut self, _: Drain, _: &mut Self::Context) {
        self.groups.drain();
    }
}

impl Handler<InFlight> for Deliveries {
    type Result = usize;

    fn handle(&mut self, _: InFlight, _: &mut Self::Context) -> Self::Result {
        self.groups.in_flight()
    }
}

impl Handler<Floor> for Deliveries {
    type Result = Option<u64>;

    fn handle(&mut self, _: Floor, _: &mut Self::Context) -> Self::Result {
        self.save_cursors();
        self.groups.default_group().floor()
    }
}

impl Handler<Halt> for Deliveries {
    type Result = ();

    fn handle(&mut self, _: Halt, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

impl Handler<Panic> for Deliveries {
    type Result = ();

    fn handle(&mut self, _: Panic, _: &mut Self::Context) {
        panic!("deliveries were told to panic");
    }
}
