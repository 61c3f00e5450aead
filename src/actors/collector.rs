//! Has published what applications put into the database in transactions of their own.

mod message;
mod rounds;
mod snapshot;
mod work;

use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, Instant},
};

use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, SpawnHandle, WrapFuture};

pub use message::{Drain, Nudge, Panic};
pub use work::take;

use self::{
    message::Nudger,
    rounds::{Job, Pace, Rounds},
    work::{Desk, Page},
};
use super::{
    clock::now_millis,
    draining,
    journal::{Fate, Journal, Note},
    life::{Halt, Life},
    mail::{Handle, measured},
    snapshot::Snapshot,
};
use crate::{
    event::{EventId, Fault, Uid, code},
    metrics::{Meter, Metrics},
    store::{Store, Write},
    wire::{Answer, Nudged},
};

/// What a [`Collector`] is told at its start.
#[derive(Debug, Clone)]
pub struct CollectorConfig {
    /// This hub.
    pub hub: Uid,
    /// How often it looks.
    pub interval: Duration,
    /// How old a row must be, unless a nudge names it: npm spokes write the rows of an event one by one.
    pub age: Duration,
    /// The most bytes that an event's data may have.
    pub data_bytes: usize,
}

/// Events that break the rules are kept in mind, to be told once; beyond so many they are told again.
const MOST_INVALID: usize = 1_000;
/// How long a nudge that finds too many others is told to wait.
const BUSY_WAIT: Duration = Duration::from_secs(1);

/// - **Role**: finds published events that no hub has, which applications have put into the database in transactions of
///   their own or an npm hub has left, and has them taken and dispatched.
/// - **Owns**: how far it has looked; one timer; the nudges that wait.
/// - **Receives**: [`Nudge`] from connections; [`Drain`], [`Halt`], [`Panic`] and [`Snapshot`] from the hub; pages of the
///   database.
/// - **Sends**: `Collect` and `Note` to the journal, one `Collect` at a time; answers into the outlets of those who nudge.
/// - **Capacity**: 1,024 nudges and 16,384 ids wait; beyond, they are refused as retryable. The rest is in the database,
///   read in pages.
/// - **On failure**: the core restarts as one; all is looked for again, and the guard of each row keeps it once.
#[derive(Debug)]
pub struct Collector {
    meter: Meter,
    metrics: Metrics,
    config: CollectorConfig,
    desk: Desk,
    rounds: Rounds<Nudger>,
    /// Those that were told of.
    invalid: Arc<HashSet<EventId>>,
    timer: Option<SpawnHandle>,
    /// Nothing more is collected.
    drained: bool,
    _life: Life,
}

measured!(Collector: Nudge, Drain, Halt, Panic, Snapshot);

impl Collector {
    /// A collector that knows nothing yet; it looks as soon as it starts.
    #[must_use]
    pub fn new(
        config: CollectorConfig,
        store: Store,
        metrics: Metrics,
        meter: Meter,
        journal: Handle<Journal>,
        life: Life,
    ) -> Self {
        let pace = Pace { interval: config.interval, age: config.age };
        let desk = Desk { store, journal, age: config.age, data_bytes: config.data_bytes };
        Self {
            meter,
            metrics,
            config,
            desk,
            rounds: Rounds::new(pace),
            invalid: Arc::default(),
            timer: None,
            drained: false,
            _life: life,
        }
    }

    /// Does what comes next, or sleeps until there is something.
    fn go(&mut self, ctx: &mut Context<Self>) {
        if self.drained {
            return;
        }
        let now = Instant::now();
        match self.rounds.next(now, now_millis()) {
            Some(Job::Named(nudger, ids)) => self.collect_named(nudger, ids, ctx),
            Some(Job::Page { since, after }) => {
                let (desk, invalid) = (self.desk.clone(), self.invalid.clone());
                let page = async move { desk.page(since, after, &invalid).await };
                ctx.spawn(page.into_actor(self).map(|page, collector, ctx| {
                    collector.paged(page);
                    collector.go(ctx);
                }));
            }
            None => {}
        }
        if let Some(timer) = self.timer.take() {
            ctx.cancel_future(timer);
        }
        // Work under way wakes us by its end.
        self.timer = self.rounds.pause(now).map(|pause| ctx.run_later(pause, Self::go));
    }

    fn collect_named(&mut self, nudger: Nudger, ids: Vec<EventId>, ctx: &mut Context<Self>) {
        let desk = self.desk.clone();
        let named = async move { desk.named(ids).await };
        ctx.spawn(named.into_actor(self).map(|named, collector, ctx| {
            collector.rounds.named_done();
            collector.meter.progress();
            let answer = named.map(|fates| {
                collector.tell(&fates);
                Answer::Nudged { taken: taken(&fates), events: fates.into_iter().map(nudged).collect() }
            });
            nudger.answer(answer);
            collector.go(ctx);
        }));
    }

    fn paged(&mut self, page: Result<Page, Fault>) {
        self.meter.progress();
        match page {
            Ok(Page { fates, next, first_start }) => {
                self.tell(&fates);
                self.rounds.learned(first_start);
                if let Some((nudgers, taken)) = self.rounds.paged(taken(&fates), next) {
                    for nudger in nudgers {
                        nudger.answer(Ok(Answer::Nudged { taken, events: Vec::new() }));
                    }
                }
            }
            Err(fault) => {
                tracing::warn!(%fault, "what applications have put into the database can't be collected now");
                for nudger in self.rounds.failed() {
                    nudger.answer(Err(fault.clone()));
                }
            }
        }
    }

    /// Tells once of what breaks the rules.
    fn tell(&mut self, fates: &[(EventId, Fate)]) {
        let mut lines = Vec::new();
        for (id, fate) in fates {
            let Fate::Invalid(reason) = fate else { continue };
            if self.invalid.len() >= MOST_INVALID {
                self.invalid = Arc::default();
            }
            if !Arc::make_mut(&mut self.invalid).insert(id.clone()) {
                continue;
            }
            self.metrics.hub().collect_refused.inc();
            tracing::warn!(
                event.id = %id,
                reason,
                "an event that an application put into the database breaks the rules: it stays stored, nobody gets it"
            );
            lines.push(Write::Log {
                at: now_millis(),
                agent: self.config.hub.to_string(),
                message: format!("not published, since it breaks the rules: the event {id:?}"),
                error: serde_json::json!({ "id": id, "reason": reason }).to_string(),
            });
        }
        if !lines.is_empty() {
            self.desk.journal.signal(Note(lines));
        }
    }
}

fn taken(fates: &[(EventId, Fate)]) -> u64 {
    fates.iter().filter(|(_, fate)| matches!(fate, Fate::Taken)).count() as u64
}

fn nudged((id, fate): (EventId, Fate)) -> Nudged {
    let state = fate.word().to_owned();
    let reason = if let Fate::Invalid(reason) = fate { reason } else { String::new() };
    Nudged { id, state, reason }
}

impl Actor for Collector {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.go(ctx);
    }
}

impl Handler<Nudge> for Collector {
    type Result = ();

    fn handle(&mut self, message: Nudge, ctx: &mut Self::Context) {
        let Nudge { outlet, req, permit, ids } = message;
        let nudger = Nudger { outlet, req, _permit: permit };
        if self.drained {
            return nudger.answer(Err(draining()));
        }
        match self.rounds.nudged(nudger, ids) {
            Ok(()) => self.go(ctx),
            Err(nudger) => {
                let text =
                    "too many nudges wait: nudge again in a moment, or wait until the hub looks by itself";
                nudger.answer(Err(Fault::retryable(code::HUB_BUSY, text, BUSY_WAIT)));
            }
        }
    }
}

impl Handler<Drain> for Collector {
    type Result = ();

    fn handle(&mut self, _: Drain, ctx: &mut Self::Context) {
        self.drained = true;
        if let Some(timer) = self.timer.take() {
            ctx.cancel_future(timer);
        }
        for nudger in self.rounds.end() {
            nudger.answer(Err(draining()));
        }
    }
}

impl Handler<Halt> for Collector {
    type Result = ();

    fn handle(&mut self, _: Halt, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

impl Handler<Panic> for Collector {
    type Result = ();

    fn handle(&mut self, _: Panic, _: &mut Self::Context) {
        panic!("the collector was told to panic");
    }
}
