//! Publishes scheduled events when they are due.

mod clock;
mod message;
mod queue;
mod snapshot;

use std::time::{Duration, Instant};

use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, SpawnHandle, WrapFuture};

pub use message::{Advanced, Drain, Panic, Scheduled};

use self::{
    clock::DatabaseClock,
    queue::{DueQueue, QueueLimits, Trouble},
};
use super::{
    clock::{now_micros, now_millis},
    journal::{Journal, RunDue, RunRecurring},
    life::{Halt, Life},
    mail::{Handle, measured},
    snapshot::Snapshot,
};
use crate::{
    event::{Fault, RecurringName},
    metrics::{Meter, Metrics},
    store::{Due, Store, StoreError},
};

/// What a [`Scheduler`] is told at its start.
#[derive(Debug, Clone, Copy)]
pub struct SchedulerConfig {
    /// How often the database is read: so late is seen what others put there.
    pub poll: Duration,
    /// How long before the first start of a hub of ours what the npm stack scheduled may have been due; none: however long.
    pub npm_overdue: Option<Duration>,
}

/// What is kept in memory, read at once and run at once. Of data 4 MiB in one transaction; one event always fits.
const LIMITS: QueueLimits = QueueLimits { most: 10_000, page: 5_000, batch: 256, bytes: 4 * 1024 * 1024 };
/// The longest sleep without a look at the clocks: one that is set forward is noticed within it.
const LOOK: Duration = Duration::from_secs(1);
/// How long a database in trouble is left alone.
const REST: Duration = Duration::from_secs(1);
/// What is read ahead beyond the time to the next read, to bear one that is late.
const AHEAD: Duration = Duration::from_secs(2);
/// How often all schedules are counted.
const COUNT: Duration = Duration::from_secs(60);

/// - **Role**: has each scheduled event published at its time, never before, or as soon after it as the hub is up; and
///   recurring schedules run and moved on.
/// - **Owns**: what is due in the near future; one timer. The database holds the rest, and decides what runs.
/// - **Receives**: [`Scheduled`] and [`Advanced`] from the journal, [`Drain`], [`Halt`], [`Panic`] and [`Snapshot`] from the hub; pages of
///   the database.
/// - **Sends**: `RunDue` and `RunRecurring` to the journal, each one at a time.
/// - **Capacity**: 10,000 schedules and as many recurring ones in memory; beyond, those that are due last are left to the database and read again
///   later. `Scheduled` and `Advanced` come once per commit.
/// - **On failure**: the core restarts as one; what is due is read again, and the guard of each row keeps it once.
#[derive(Debug)]
pub struct Scheduler {
    meter: Meter,
    metrics: Metrics,
    config: SchedulerConfig,
    store: Store,
    journal: Handle<Journal>,
    queue: DueQueue,
    recurring: DueQueue<RecurringName>,
    clock: DatabaseClock,
    timer: Option<SpawnHandle>,
    /// When the database was read last.
    polled: Option<Instant>,
    counted: Option<Instant>,
    /// The database is left alone until then.
    rest: Option<Instant>,
    /// Nothing more is run.
    drained: bool,
    _life: Life,
}

measured!(Scheduler: Scheduled, Advanced, Drain, Halt, Panic, Snapshot);

/// What one look into the database brought.
struct Look {
    due: (Vec<Due>, bool),
    recurring: (Vec<Due<RecurringName>>, bool),
    /// Our clock before, the database's, ours after.
    clocks: (i64, i64, i64),
    waiting: Option<u64>,
}

impl Scheduler {
    /// A scheduler that knows nothing yet; it reads as soon as it starts.
    #[must_use]
    pub fn new(
        config: SchedulerConfig,
        store: Store,
        metrics: Metrics,
        meter: Meter,
        journal: Handle<Journal>,
        life: Life,
    ) -> Self {
        Self {
            meter,
            metrics,
            config,
            store,
            journal,
            queue: DueQueue::new(LIMITS),
            recurring: DueQueue::new(LIMITS),
            clock: DatabaseClock::default(),
            timer: None,
            polled: None,
            counted: None,
            rest: None,
            drained: false,
            _life: life,
        }
    }

    /// Runs what is due, reads what is missing, and sleeps until there is more to do.
    fn go(&mut self, ctx: &mut Context<Self>) {
        if self.drained {
            return;
        }
        let at = Instant::now();
        self.rest = self.rest.filter(|rest| at < *rest);
        if self.rest.is_none() {
            let now = self.clock.now(now_millis());
            let due = self.queue.take(now);
            if !due.is_empty() {
                self.run(due, ctx);
            }
            let due = self.recurring.take(now);
            if !due.is_empty() {
                self.run_recurring(due, ctx);
            }
            let poll = self.polled.is_none_or(|polled| at.duration_since(polled) >= self.config.poll);
            // Both are read together.
            let wanted = poll || self.queue.wants_page() || self.recurring.wants_page();
            if wanted && !self.queue.is_reading() {
                self.polled = Some(at);
                self.read(at, ctx);
            }
        }
        let pause = self.pause(at);
        if let Some(timer) = self.timer.take() {
            ctx.cancel_future(timer);
        }
        self.timer = Some(ctx.run_later(pause, Self::go));
    }

    /// How long nothing is to be done, at most [`LOOK`].
    fn pause(&self, at: Instant) -> Duration {
        if let Some(rest) = self.rest {
            return rest.saturating_duration_since(at).min(LOOK);
        }
        let poll =
            self.polled.map_or(LOOK, |polled| (polled + self.config.poll).saturating_duration_since(at));
        let next = self.queue.next().into_iter().chain(self.recurring.next()).min();
        let due = next.map_or(LOOK, |due| {
            let wall = self.clock.wall(due).saturating_mul(1_000);
            let micros = u64::try_from(wall).unwrap_or(0).saturating_sub(now_micros());
            Duration::from_micros(micros)
        });
        // A read under way wakes us by its end.
        let poll = if self.queue.is_reading() { LOOK } else { poll };
        LOOK.min(poll).min(due)
    }

    fn run(&mut self, due: Vec<Due>, ctx: &mut Context<Self>) {
        let (done, answer) = tokio::sync::oneshot::channel();
        self.journal.signal(RunDue { due, done });
        ctx.spawn(answer.into_actor(self).map(|answer, scheduler, ctx| match answer {
            Ok(answer) => scheduler.ran(answer, ctx),
            // The journal is gone: the core restarts, and reads anew.
            Err(_) => scheduler.drained = true,
        }));
    }

    fn run_recurring(&mut self, due: Vec<Due<RecurringName>>, ctx: &mut Context<Self>) {
        let (done, answer) = tokio::sync::oneshot::channel();
        self.journal.signal(RunRecurring { due, done });
        ctx.spawn(answer.into_actor(self).map(|answer, scheduler, ctx| match answer {
            Ok(answer) => {
                scheduler.meter.progress();
                let settled = settle(&mut scheduler.recurring, answer);
                if let Some((name, fault)) = scheduler.settled(settled) {
                    tracing::error!(recurring = %name, %fault, "a recurring schedule can't run until the hub starts anew");
                }
                scheduler.go(ctx);
            }
            // The journal is gone: the core restarts, and reads anew.
            Err(_) => scheduler.drained = true,
        }));
    }

    fn ran(&mut self, answer: Result<usize, Fault>, ctx: &mut Context<Self>) {
        self.meter.progress();
        let settled = settle(&mut self.queue, answer);
        if let Some((id, fault)) = self.settled(settled) {
            tracing::error!(event.id = %id, %fault, "a scheduled event can't be run until the hub starts anew");
        }
        self.go(ctx);
    }

    /// Rests after a passing trouble; returns what is at fault for a lasting one.
    fn settled<Id>(&mut self, settled: Settled<Id>) -> Option<(Id, Fault)> {
        match settled {
            Settled::Ran => None,
            Settled::Rest => {
                self.rest = Some(Instant::now() + REST);
                None
            }
            Settled::Lasting(id, fault) => id.map(|id| (id, fault)),
        }
    }

    fn read(&mut self, at: Instant, ctx: &mut Context<Self>) {
        let ahead = (2 * self.config.poll + AHEAD).as_millis();
        let ahead = i64::try_from(ahead).unwrap_or(i64::MAX);
        let until = self.clock.now(now_millis()).saturating_add(ahead);
        let limits = (self.queue.read_begins(until), self.recurring.read_begins(until));
        let count = self.counted.is_none_or(|counted| at.duration_since(counted) >= COUNT);
        if count {
            self.counted = Some(at);
        }
        let look = look(self.store.clone(), until, limits, self.config.npm_overdue, count);
        ctx.spawn(look.into_actor(self).map(|look, scheduler, ctx| scheduler.looked(look, ctx)));
    }

    fn looked(&mut self, look: Result<Look, StoreError>, ctx: &mut Context<Self>) {
        match look {
            Ok(Look { due, recurring, clocks: (before, database, after), waiting }) => {
                self.clock.look(before, database, after);
                self.metrics.hub().clock_skew.set(self.clock.ahead());
                self.queue.read_ends(due.0, due.1);
                self.recurring.read_ends(recurring.0, recurring.1);
                if let Some(waiting) = waiting {
                    self.metrics.hub().schedules_waiting.set(i64::try_from(waiting).unwrap_or(i64::MAX));
                }
            }
            Err(error) => {
                tracing::warn!(%error, "what is due can't be read");
                self.queue.read_failed();
                self.recurring.read_failed();
                self.rest = Some(Instant::now() + REST);
                self.polled = None;
                self.counted = None;
            }
        }
        self.go(ctx);
    }
}

/// How a run came to its end.
enum Settled<Id> {
    Ran,
    Rest,
    /// It can't be; and which one is at fault, if that is known.
    Lasting(Option<Id>, Fault),
}

/// Tells a queue how its run ended.
fn settle<Id: Clone + Ord + std::hash::Hash>(
    queue: &mut DueQueue<Id>,
    answer: Result<usize, Fault>,
) -> Settled<Id> {
    match answer {
        Ok(ran) => {
            queue.ran(ran);
            Settled::Ran
        }
        Err(fault) if fault.is_retryable() => {
            queue.failed(Trouble::Passing);
            Settled::Rest
        }
        Err(fault) => Settled::Lasting(queue.failed(Trouble::Lasting), fault),
    }
}

async fn look(
    store: Store,
    until: i64,
    limits: (usize, usize),
    npm_overdue: Option<Duration>,
    count: bool,
) -> Result<Look, StoreError> {
    let before = now_millis();
    let database = store.clock().await?;
    let clocks = (before, database, now_millis());
    let due = store.due_page(until, npm_overdue, limits.0).await?;
    let recurring = store.recurring_due(until, limits.1).await?;
    let waiting = if count { Some(store.schedules_waiting().await?) } else { None };
    Ok(Look { due, recurring, clocks, waiting })
}

impl Actor for Scheduler {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.go(ctx);
    }
}

impl Handler<Scheduled> for Scheduler {
    type Result = ();

    fn handle(&mut self, message: Scheduled, ctx: &mut Self::Context) {
        for due in message.0 {
            self.queue.told(due);
        }
        self.go(ctx);
    }
}

impl Handler<Advanced> for Scheduler {
    type Result = ();

    fn handle(&mut self, message: Advanced, ctx: &mut Self::Context) {
        for due in message.0 {
            self.recurring.told(due);
        }
        self.go(ctx);
    }
}

impl Handler<Drain> for Scheduler {
    type Result = ();

    fn handle(&mut self, _: Drain, ctx: &mut Self::Context) {
        self.drained = true;
        if let Some(timer) = self.timer.take() {
            ctx.cancel_future(timer);
        }
    }
}

impl Handler<Halt> for Scheduler {
    type Result = ();

    fn handle(&mut self, _: Halt, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

impl Handler<Panic> for Scheduler {
    type Result = ();

    fn handle(&mut self, _: Panic, _: &mut Self::Context) {
        panic!("the scheduler was told to panic");
    }
}
