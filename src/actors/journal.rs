//! The only writer of hot rows: group commit.

mod adoption;
mod amend;
mod batch;
mod collect;
mod due;
mod message;
mod npm;
mod outcomes;
mod pulse;
mod recurring;
mod redrive;
mod sequence;
mod snapshot;
mod sweeps;
mod trouble;

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, WrapFuture};
use tokio::sync::watch;

pub use collect::{Collect, Fate};
pub use due::RunDue;
pub use message::{
    Alter, Amend, Amending, Amendment, Backlog, Bind, Close, Connect, Note, Panic, Publish, Publishing,
    Record, Storing, Take,
};
pub use recurring::RunRecurring;
pub use sequence::{Place, Sequence};
pub use sweeps::Sweep;

use self::adoption::Adoption;
use self::batch::{Batch, Bounds, Job, Reply, ReplyTo};
use super::{
    clock::{now_micros, now_millis},
    deliveries::{Ended, Reserve},
    life::{Halt, Life},
    mail::measured,
    snapshot::Snapshot,
};
use crate::{
    event::{Fault, Uid, code},
    metrics::{Meter, Metrics, Readiness, Refusal},
    store::{Store, StoreError, Write, Written},
};

/// What a [`Journal`] is told at its start.
#[derive(Debug, Clone)]
pub struct JournalConfig {
    /// This hub.
    pub hub: Uid,
    /// This start of it.
    pub epoch: u64,
    /// The most writes of one transaction.
    pub batch: usize,
    /// The most bytes that wait for a transaction; publishes beyond are refused.
    pub queue_bytes: usize,
}

/// The most bytes of one transaction; one write always fits.
const BATCH_BYTES: usize = 8 * 1024 * 1024;
/// Notes are dropped while so many writes wait.
const NOTES_LIMIT: usize = 4_096;
/// How long a publisher that finds the queue full is told to wait.
const BUSY_WAIT: Duration = Duration::from_millis(50);

/// - **Role**: commits all that waits in one transaction; batches form by themselves while one is under way. On a server it
///   goes on with the work of hubs whose leases are over.
/// - **Owns**: the hub's sequence, the queue of writes, the store's writer, on a server the hub's lease.
/// - **Receives**: [`Publish`], [`Amend`] and [`Take`] from connections, [`RunDue`] and [`RunRecurring`] from the scheduler,
///   [`Sweep`] from the keeper, [`Collect`] from the collector, [`Record`], [`Bind`] and [`Alter`] from deliveries, [`Note`]
///   from anyone, [`Connect`], [`Close`], [`Backlog`], [`Halt`], [`Panic`] and [`Snapshot`] from the hub.
/// - **Sends**: answers into the publishers' outlets; `Committed` and `Deleted` to the registry, `Recorded`,
///   `Redriven` and `Expired` to deliveries, `Scheduled` and `Advanced` to the scheduler.
/// - **Capacity**: `queue_bytes` of publishes and changes; beyond, they are refused as retryable. Outcomes are bounded by the
///   consumers' credit, npm publishes by their links' windows: both are always taken.
/// - **On failure**: the core restarts as one, as when another hub has taken this one's place. What wasn't acked is in doubt,
///   and clients send it again under the same id.
#[derive(Debug)]
pub struct Journal {
    meter: Meter,
    metrics: Metrics,
    config: JournalConfig,
    store: Store,
    sequence: Sequence,
    queue: VecDeque<Job>,
    queued_bytes: usize,
    committing: usize,
    closed: bool,
    halting: bool,
    peers: Option<Connect>,
    readiness: watch::Sender<Readiness>,
    /// The last trouble of the database was that it is full.
    full: bool,
    /// Whether it is about to be tried if the trouble is over.
    trying: bool,
    adoption: Adoption,
    _life: Life,
}

measured!(Journal: Connect, Publish, Take, Amend, RunDue, RunRecurring, Sweep, Collect, Record, Bind, Alter, Note, Close, Backlog, Halt, Panic, Snapshot);

impl Journal {
    /// A journal that goes on after `sequence`. It reports a database in trouble to `readiness`.
    #[must_use]
    pub fn new(
        config: JournalConfig,
        store: Store,
        sequence: Sequence,
        metrics: Metrics,
        meter: Meter,
        readiness: watch::Sender<Readiness>,
        life: Life,
    ) -> Self {
        Self {
            meter,
            metrics,
            config,
            store,
            sequence,
            queue: VecDeque::new(),
            queued_bytes: 0,
            committing: 0,
            closed: false,
            halting: false,
            peers: None,
            readiness,
            full: false,
            trying: false,
            adoption: Adoption::default(),
            _life: life,
        }
    }

    fn enqueue(&mut self, write: Write, weight: usize, reply: ReplyTo) {
        self.queued_bytes += weight;
        self.queue.push_back(Job { write, weight, reply });
    }

    /// Starts a transaction for what waits, unless one is under way.
    fn pump(&mut self, ctx: &mut Context<Self>) {
        let hub = self.metrics.hub();
        if self.committing > 0 || self.queue.is_empty() {
            hub.journal_queue.set_len(self.queue.len() + self.committing);
            hub.journal_queue_bytes.set_len(self.queued_bytes);
            return;
        }
        let mut batch = Batch::default();
        let bounds = Bounds { writes: self.config.batch, bytes: BATCH_BYTES };
        while let Some(job) = self.queue.pop_front_if(|job| batch.takes(job, bounds)) {
            self.queued_bytes -= job.weight;
            batch.push(job, &mut self.sequence, now_micros());
        }
        self.committing = batch.len();
        hub.journal_queue.set_len(self.queue.len() + self.committing);
        hub.journal_queue_bytes.set_len(self.queued_bytes);
        hub.batches.inc();
        hub.batch_size.record_size(batch.len());
        let began = Instant::now();
        let (writes, replies) = batch.split();
        let store = self.store.clone();
        let commit = async move { store.commit(writes).await };
        ctx.spawn(commit.into_actor(self).map(move |results, journal, ctx| {
            journal.metrics.hub().commit_time.record(began.elapsed());
            journal.committed(replies, results, ctx);
            journal.committing = 0;
            journal.meter.progress();
            if journal.halting {
                ctx.stop();
            } else {
                journal.pump(ctx);
            }
        }));
    }

    /// Tells everyone how it went: first the publishers, then the registry, then deliveries.
    fn committed(
        &mut self,
        replies: Vec<Reply>,
        results: Vec<Result<Written, StoreError>>,
        ctx: &mut Context<Self>,
    ) {
        self.report(&results, ctx);
        let told = batch::tell(replies, results, self.metrics.hub());
        self.take_again(told.refused, ctx);
        for (write, reply) in told.again {
            if self.closed {
                amend::interrupt(reply);
            } else {
                // Behind what waits: a long deletion holds nobody up.
                self.enqueue(write, amend::WEIGHT, reply);
            }
        }
        if let Some(part) = told.adopted {
            self.adopted(part, ctx);
        }
        let Some(peers) = &self.peers else { return };
        if !told.committed.is_empty() || !told.npm.is_empty() {
            peers.registry.signal(super::registry::Committed { events: told.committed, npm: told.npm });
        }
        if !told.scheduled.is_empty() {
            peers.scheduler.signal(super::scheduler::Scheduled(told.scheduled));
        }
        if !told.advanced.is_empty() {
            peers.scheduler.signal(super::scheduler::Advanced(told.advanced));
        }
        if !told.gone.is_empty() || !told.owed.is_empty() {
            peers.registry.signal(super::registry::Deleted { gone: told.gone, owed: told.owed });
        }
        if !told.expired.is_empty() {
            peers.deliveries.signal(super::deliveries::Expired(told.expired));
        }
        for group in told.redriven {
            peers.deliveries.signal(super::deliveries::Redriven { group });
        }
        if !told.recorded.is_empty() {
            peers.deliveries.signal(told.recorded);
        }
    }

    /// Why no publish is taken now, if none is.
    fn refusal(&self) -> Option<Fault> {
        if self.closed {
            return Some(Fault::retryable(
                code::HUB_DRAINING,
                "the hub is stopping and takes no new events: publish again once it is back, or to another hub",
                Duration::from_secs(1),
            ));
        }
        (self.queued_bytes > self.config.queue_bytes).then(|| {
            Fault::retryable(
                code::HUB_BUSY,
                format!(
                    "the hub has {} bytes waiting to be written, more than it allows: publish again in a moment",
                    self.queued_bytes
                ),
                BUSY_WAIT,
            )
        })
    }
}

impl Actor for Journal {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let told = trouble::tell_damage(self.store.clone(), self.readiness.clone(), self.metrics.clone());
        ctx.spawn(told.into_actor(self));
        if self.store.is_on_server() {
            self.beat(ctx);
            self.look_for_dead(ctx);
        }
    }
}

impl Handler<Connect> for Journal {
    type Result = ();

    fn handle(&mut self, peers: Connect, _: &mut Self::Context) {
        self.peers = Some(peers);
    }
}

impl Handler<Publish> for Journal {
    type Result = ();

    fn handle(&mut self, message: Publish, ctx: &mut Self::Context) {
        let Publish { outlet, publisher, events } = message;
        if let Some(fault) = self.refusal() {
            let refused = self.metrics.hub().refused.of(Refusal::of(&fault.code));
            refused.add(events.len() as u64);
            batch::refuse(&outlet, events, &fault);
            return;
        }
        for Publishing { req, what, permit } in events {
            let (write, weight) = batch::store(what, publisher.clone(), self.config.hub.clone());
            self.enqueue(write, weight, ReplyTo::Publisher { outlet: outlet.clone(), req, permit });
        }
        self.pump(ctx);
    }
}

impl Handler<Take> for Journal {
    type Result = ();

    fn handle(&mut self, message: Take, ctx: &mut Self::Context) {
        self.take(message);
        self.pump(ctx);
    }
}

impl Handler<Amend> for Journal {
    type Result = ();

    fn handle(&mut self, message: Amend, ctx: &mut Self::Context) {
        let Amend { outlet, by, changes } = message;
        if let Some(fault) = self.refusal() {
            amend::refuse(&outlet, changes, &fault);
            return;
        }
        for change in changes {
            let Job { write, weight, reply } = amend::job(&outlet, &by, &self.config.hub, change);
            self.enqueue(write, weight, reply);
        }
        self.pump(ctx);
    }
}

impl Handler<Sweep> for Journal {
    type Result = ();

    fn handle(&mut self, message: Sweep, ctx: &mut Self::Context) {
        let Sweep { sweep, done } = message;
        if let Some(fault) = self.refusal() {
            // A keeper that is gone needs no answer.
            let _ = done.send(Err(fault));
            return;
        }
        self.enqueue(Write::Sweep(sweep), amend::WEIGHT, ReplyTo::Keeper(done));
        self.pump(ctx);
    }
}

impl Handler<Record> for Journal {
    type Result = ();

    fn handle(&mut self, message: Record, ctx: &mut Self::Context) {
        let at = now_millis();
        for finish in message.finishes {
            let (write, weight, claimed) = outcomes::finish(finish, at, self.config.hub.clone());
            self.enqueue(write, weight, ReplyTo::Claim(claimed));
        }
        for retry in message.retries {
            let (write, claimed) = outcomes::retry(retry, self.config.hub.clone());
            self.enqueue(write, 0, ReplyTo::Claim(claimed));
        }
        for Ended { of, event_id, attempt } in message.ended {
            let row = outcomes::attempt_row(event_id, attempt);
            self.enqueue(Write::Attempt(row), 0, ReplyTo::Attempt(of));
        }
        for Reserve { token, event_id, consumer } in message.claims {
            self.enqueue(Write::Claim { event_id, consumer, at }, 0, ReplyTo::Reserve(token));
        }
        self.pump(ctx);
    }
}

impl Handler<Bind> for Journal {
    type Result = ();

    fn handle(&mut self, message: Bind, ctx: &mut Self::Context) {
        self.enqueue(Write::Bind(message.binding), 0, ReplyTo::Binding(message.made));
        self.pump(ctx);
    }
}

impl Handler<Alter> for Journal {
    type Result = ();

    fn handle(&mut self, message: Alter, ctx: &mut Self::Context) {
        self.enqueue(message.write, 0, ReplyTo::Alterer(message.done));
        self.pump(ctx);
    }
}

impl Handler<Note> for Journal {
    type Result = ();

    fn handle(&mut self, message: Note, ctx: &mut Self::Context) {
        // Rows that nobody waits for are the first to go when the database can't keep up.
        if self.queue.len() > NOTES_LIMIT {
            let lines = message.0.iter().filter(|write| matches!(write, Write::Log { .. })).count();
            self.metrics.hub().log_dropped.add(lines as u64);
            return;
        }
        for write in message.0 {
            self.enqueue(write, 0, ReplyTo::Nobody);
        }
        self.pump(ctx);
    }
}

impl Handler<Close> for Journal {
    type Result = ();

    fn handle(&mut self, _: Close, _: &mut Self::Context) {
        self.closed = true;
    }
}

impl Handler<Backlog> for Journal {
    type Result = usize;

    fn handle(&mut self, _: Backlog, _: &mut Self::Context) -> Self::Result {
        self.queue.len() + self.committing
    }
}

impl Handler<Halt> for Journal {
    type Result = ();

    fn handle(&mut self, _: Halt, ctx: &mut Self::Context) {
        self.closed = true;
        self.halting = true;
        if self.committing == 0 {
            ctx.stop();
        }
    }
}

impl Handler<Panic> for Journal {
    type Result = ();

    fn handle(&mut self, _: Panic, _: &mut Self::Context) {
        panic!("the journal was told to panic");
    }
}
