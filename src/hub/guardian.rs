//! Builds the cast from factories, restarts what fails, drains and stops.

mod snapshot;

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, fut::wrap_future};
use actix_rt::Arbiter;
use tokio::sync::{mpsc, oneshot, watch};

use super::{
    HubError,
    cast::{Asked, Cast},
    core::{CoreParts, start},
    drain::{self, DrainOutcome, Draining},
};
use crate::{
    actors::{
        announcer::{self, Announcer, AnnouncerConfig},
        connection::{Core, restart},
        keeper::{self, Keeper, KeeperConfig},
        life::{Exited, Halt, Life},
        listener::{self, Door, Listener, ListenerConfig},
        mail::{Handle, mail, measured},
        monitor::{Monitor, Notice, UseJournal},
        snapshot::{Snapshot, Stall},
        warden::{Attend, Warden},
    },
    event::Uid,
    metrics::{ActorKind, CutReason, Label, Meter, Metrics, Readiness},
};

/// Actors of a core: journal, registry, deliveries, scheduler, collector.
const CORE: usize = 5;
/// The core may fail so often…
const FAILURES: usize = 3;
/// …within this time; once more, and the hub ends.
const FAILURE_WINDOW: Duration = Duration::from_secs(60);
/// The first wait before a restart; it doubles with each failure in the window.
const BACKOFF: Duration = Duration::from_millis(20);
/// The wait before a restart of the announcer, or the keeper, doubles so often: up to 20 s.
const MOST_DOUBLINGS: u32 = 10;
/// Places in the mailboxes of monitor, listener, announcer and keeper.
const MAILBOX: usize = 1_024;

/// Drains and stops the hub. Answered through `done` when all is over.
#[derive(Debug)]
pub struct Drain {
    /// Gets the outcome.
    pub done: oneshot::Sender<DrainOutcome>,
}
mail!(Drain => ());

/// Makes an actor of the core, or the announcer, or the keeper, panic.
#[derive(Debug, Clone, Copy)]
pub struct InjectPanic(pub ActorKind);
mail!(InjectPanic => ());

/// What the guardian is made of.
pub struct GuardianParts {
    /// The hub.
    pub hub: Uid,
    /// What cores are made of.
    pub core: CoreParts,
    /// The first core.
    pub first: Core,
    /// Where actors report their end.
    pub exits: mpsc::UnboundedReceiver<Exited>,
    /// For the listener.
    pub listener: ListenerConfig,
    /// For the announcer.
    pub announcer: AnnouncerConfig,
    /// For the keeper.
    pub keeper: KeeperConfig,
    /// Started.
    pub warden: Handle<Warden>,
    /// Bound.
    pub socket: tokio::net::TcpListener,
    /// The threads of links, to be joined at the end.
    pub arbiters: Vec<Arbiter>,
    /// How long a drain may take.
    pub grace: Duration,
    /// Told when the hub can't go on.
    pub gave_up: mpsc::UnboundedSender<HubError>,
}

/// - **Role**: starts the cast, restarts the core as one when one of it fails, drains and stops.
/// - **Owns**: the factories, the threads of links, the generation of the core.
/// - **Receives**: [`Drain`], [`Snapshot`], [`InjectPanic`] and [`Stall`] from the hub's handle; exits of actors by a channel.
/// - **Sends**: cuts, halts and drain steps to all others.
/// - **Capacity**: a handful of messages in a life; exits are bounded by the actors.
/// - **On failure**: the hub's thread ends, and with it the hub; its handle reports that.
pub struct Guardian {
    meter: Meter,
    metrics: Metrics,
    parts: CoreParts,
    core: watch::Sender<Option<Core>>,
    generation: u64,
    /// Actors of the core that have not ended.
    members: usize,
    /// A new core is to be made, after this wait, once the old one has ended: what it has under way may still be
    /// committed, and belongs into what the new one loads.
    remake: Option<Duration>,
    failures: VecDeque<Instant>,
    listener: Handle<Listener>,
    announcer: watch::Sender<Handle<Announcer>>,
    announcer_config: AnnouncerConfig,
    /// How often the announcer failed.
    announcer_failures: u32,
    keeper: watch::Sender<Handle<Keeper>>,
    keeper_config: KeeperConfig,
    /// How often the keeper failed.
    keeper_failures: u32,
    monitor: Handle<Monitor>,
    exits: Option<mpsc::UnboundedReceiver<Exited>>,
    arbiters: Vec<Arbiter>,
    grace: Duration,
    gave_up: mpsc::UnboundedSender<HubError>,
    hub: Uid,
    draining: bool,
    _life: Life,
}

measured!(Guardian: InjectPanic, Stall, Drain, Snapshot);

impl std::fmt::Debug for Guardian {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guardian").field("generation", &self.generation).finish_non_exhaustive()
    }
}

impl Guardian {
    /// Starts the rest of the cast around the first core. Returns too what knows all of it.
    #[must_use]
    pub fn start(parts: GuardianParts) -> (Handle<Self>, Cast) {
        let GuardianParts {
            hub,
            core: parts,
            first,
            exits,
            listener,
            announcer,
            keeper,
            warden,
            socket,
            arbiters,
            grace,
            gave_up,
        } = parts;
        let metrics = parts.metrics.clone();
        let life = |kind| Life::begin(kind, 0, metrics.meter(kind), parts.exits.clone());
        let monitor = start(&metrics, ActorKind::Monitor, MAILBOX, |meter, _| {
            let life = life(ActorKind::Monitor);
            Monitor::new(hub.clone(), metrics.clone(), meter.clone(), first.journal.clone(), life)
        });
        let core = watch::Sender::new(Some(first));
        let listener = start(&metrics, ActorKind::Listener, MAILBOX, |meter, _| {
            let door = Door {
                socket,
                config: Arc::new(listener),
                core: core.subscribe(),
                store: parts.store.clone(),
                monitor: monitor.clone(),
                warden: warden.clone(),
            };
            Listener::new(door, metrics.clone(), meter.clone(), life(ActorKind::Listener))
        });
        let announcer_config = announcer;
        let announcer = watch::Sender::new(start_announcer(&parts, &announcer_config, &monitor, &listener));
        warden.signal(Attend { listener: listener.clone(), monitor: monitor.clone() });
        let (watched, listening, monitoring) = (core.subscribe(), listener.clone(), monitor.clone());
        let announcing = announcer.subscribe();
        let keeper_config = keeper;
        let keeper = watch::Sender::new(start_keeper(&parts, &keeper_config, core.subscribe()));
        let keeping = keeper.subscribe();
        let guardian = start(&metrics, ActorKind::Guardian, MAILBOX, |meter, _| Self {
            meter: meter.clone(),
            metrics: metrics.clone(),
            core,
            generation: 0,
            members: CORE,
            remake: None,
            failures: VecDeque::new(),
            listener,
            announcer,
            announcer_config,
            announcer_failures: 0,
            keeper,
            keeper_config,
            keeper_failures: 0,
            monitor,
            exits: Some(exits),
            arbiters,
            grace,
            gave_up,
            hub,
            draining: false,
            _life: life(ActorKind::Guardian),
            parts: parts.clone(),
        });
        let cast = Cast {
            guardian: guardian.clone(),
            core: watched,
            listener: listening,
            monitor: monitoring,
            warden,
            announcer: announcing,
            keeper: keeping,
            metrics,
            asked: Asked::default().into(),
        };
        (guardian, cast)
    }

    /// One exit after the other, for as long as the guardian lives.
    fn await_exit(&mut self, ctx: &mut Context<Self>) {
        let Some(mut exits) = self.exits.take() else { return };
        let next = async move {
            let exited = exits.recv().await;
            (exited, exits)
        };
        ctx.spawn(wrap_future::<_, Self>(next).map(|(exited, exits), guardian, ctx| {
            guardian.exits = Some(exits);
            if let Some(exited) = exited {
                guardian.exited(exited, ctx);
                guardian.await_exit(ctx);
            }
        }));
    }

    fn exited(&mut self, exited: Exited, ctx: &mut Context<Self>) {
        let Exited { kind, generation, panicked } = exited;
        if self.draining {
            return;
        }
        match kind {
            ActorKind::Journal
            | ActorKind::Registry
            | ActorKind::Deliveries
            | ActorKind::Scheduler
            | ActorKind::Collector => {
                self.members = self.members.saturating_sub(1);
                if generation == self.generation {
                    tracing::error!(actor = kind.as_str(), panicked, "the core failed and restarts");
                    self.monitor.note(Notice::fault("the core failed and restarts", kind.as_str()));
                    self.restart_core(kind);
                }
                self.remake_core(ctx);
            }
            // Connections come and go; these must not.
            ActorKind::Listener | ActorKind::Monitor | ActorKind::Warden => self.give_up(kind, 1),
            ActorKind::Announcer => self.restart_announcer(ctx),
            ActorKind::Keeper => self.restart_keeper(ctx),
            ActorKind::Connection | ActorKind::Guardian => {}
        }
    }

    /// Links are cut, what is left of the core ends; then a new one is made of what the store knows.
    fn restart_core(&mut self, kind: ActorKind) {
        let now = Instant::now();
        self.failures.retain(|failure| now.duration_since(*failure) < FAILURE_WINDOW);
        self.failures.push_back(now);
        self.generation += 1;
        self.metrics.meter(kind).restarted();
        self.ready(Readiness::Starting);
        let old = self.core.send_replace(None);
        self.listener.signal(listener::CutAll { reason: CutReason::Restart, fault: restart() });
        if let Some(core) = old {
            halt(&core);
        }
        if self.failures.len() > FAILURES {
            self.give_up(kind, self.failures.len());
            return;
        }
        let wait = BACKOFF * 2_u32.saturating_pow(u32::try_from(self.failures.len()).unwrap_or(u32::MAX))
            + Duration::from_millis(fastrand::u64(0..20));
        self.remake = Some(wait);
    }

    fn remake_core(&mut self, ctx: &mut Context<Self>) {
        let Some(wait) = self.remake.take_if(|_| self.members == 0) else { return };
        self.members = CORE;
        let (parts, generation) = (self.parts.clone(), self.generation);
        let made = async move {
            tokio::time::sleep(wait).await;
            parts.make(generation).await
        };
        ctx.spawn(wrap_future::<_, Self>(made).map(move |made, guardian, ctx| match made {
            // One of it failed already, or the hub stops: then it makes room, and the next one is made if need be.
            Ok(core) if guardian.draining || generation != guardian.generation => halt(&core),
            Ok(core) => {
                guardian.monitor.signal(UseJournal(core.journal.clone()));
                guardian.core.send_replace(Some(core));
                guardian.ready(Readiness::Ready);
                tracing::info!(generation, "the core is back");
            }
            Err(error) => {
                tracing::error!(%error, "the core can't be made yet");
                guardian.members = 0;
                if !guardian.draining {
                    guardian.ready(Readiness::Degraded { reason: error.to_string() });
                    guardian.remake = Some((wait * 2).min(Duration::from_secs(5)));
                    guardian.remake_core(ctx);
                }
            }
        }));
    }

    /// Nobody depends on it: it may fail as often as it likes, ever more slowly.
    fn restart_announcer(&mut self, ctx: &mut Context<Self>) {
        self.announcer_failures += 1;
        self.metrics.meter(ActorKind::Announcer).restarted();
        let wait = BACKOFF * 2_u32.saturating_pow(self.announcer_failures.min(MOST_DOUBLINGS))
            + Duration::from_millis(fastrand::u64(0..20));
        tracing::error!(actor = ActorKind::Announcer.as_str(), ?wait, "it failed and restarts");
        ctx.run_later(wait, |guardian, _| {
            if !guardian.draining {
                let announcer = start_announcer(
                    &guardian.parts,
                    &guardian.announcer_config,
                    &guardian.monitor,
                    &guardian.listener,
                );
                guardian.announcer.send_replace(announcer);
            }
        });
    }

    /// The same.
    fn restart_keeper(&mut self, ctx: &mut Context<Self>) {
        self.keeper_failures += 1;
        self.metrics.meter(ActorKind::Keeper).restarted();
        let wait = BACKOFF * 2_u32.saturating_pow(self.keeper_failures.min(MOST_DOUBLINGS))
            + Duration::from_millis(fastrand::u64(0..20));
        tracing::error!(actor = ActorKind::Keeper.as_str(), ?wait, "it failed and restarts");
        ctx.run_later(wait, |guardian, _| {
            if !guardian.draining {
                let core = guardian.core.subscribe();
                let keeper = start_keeper(&guardian.parts, &guardian.keeper_config, core);
                guardian.keeper.send_replace(keeper);
            }
        });
    }

    fn ready(&self, readiness: Readiness) {
        self.metrics.set_readiness(&readiness);
        self.parts.readiness.send_replace(readiness);
    }

    fn give_up(&self, kind: ActorKind, failures: usize) {
        let error = HubError::GaveUp { part: kind.as_str(), failures, seconds: FAILURE_WINDOW.as_secs() };
        tracing::error!(%error, "giving up");
        // The hub's thread is gone only when all is over.
        let _ = self.gave_up.send(error);
    }
}

fn start_announcer(
    parts: &CoreParts,
    config: &AnnouncerConfig,
    monitor: &Handle<Monitor>,
    listener: &Handle<Listener>,
) -> Handle<Announcer> {
    let kind = ActorKind::Announcer;
    start(&parts.metrics, kind, MAILBOX, |meter, _| {
        let life = Life::begin(kind, 0, meter.clone(), parts.exits.clone());
        let others = (monitor.clone(), listener.clone());
        Announcer::new(config.clone(), parts.store.clone(), others, meter.clone(), life)
    })
}

fn start_keeper(
    parts: &CoreParts,
    config: &KeeperConfig,
    core: watch::Receiver<Option<Core>>,
) -> Handle<Keeper> {
    let kind = ActorKind::Keeper;
    start(&parts.metrics, kind, MAILBOX, |meter, _| {
        let life = Life::begin(kind, 0, meter.clone(), parts.exits.clone());
        Keeper::new(config.clone(), parts.store.clone(), core, parts.metrics.clone(), meter.clone(), life)
    })
}

/// Ends a core; the journal once its commit is through.
fn halt(core: &Core) {
    core.scheduler.signal(Halt);
    core.collector.signal(Halt);
    core.registry.signal(Halt);
    core.deliveries.signal(Halt);
    core.journal.signal(Halt);
}

impl Actor for Guardian {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.await_exit(ctx);
    }
}

impl Handler<InjectPanic> for Guardian {
    type Result = ();

    fn handle(&mut self, message: InjectPanic, _: &mut Self::Context) {
        let core = self.core.borrow().clone();
        match (message.0, core) {
            (ActorKind::Journal, Some(core)) => core.journal.signal(crate::actors::journal::Panic),
            (ActorKind::Registry, Some(core)) => core.registry.signal(crate::actors::registry::Panic),
            (ActorKind::Deliveries, Some(core)) => core.deliveries.signal(crate::actors::deliveries::Panic),
            (ActorKind::Announcer, _) => self.announcer.borrow().signal(announcer::Panic),
            (ActorKind::Keeper, _) => self.keeper.borrow().signal(keeper::Panic),
            (ActorKind::Scheduler, Some(core)) => core.scheduler.signal(crate::actors::scheduler::Panic),
            (ActorKind::Collector, Some(core)) => core.collector.signal(crate::actors::collector::Panic),
            (kind, _) => tracing::warn!(actor = kind.as_str(), "no such part of the core to panic"),
        }
    }
}

impl Handler<Drain> for Guardian {
    type Result = ();

    fn handle(&mut self, message: Drain, ctx: &mut Self::Context) {
        if std::mem::replace(&mut self.draining, true) {
            return;
        }
        self.ready(Readiness::Draining);
        // From here on this hub's row may say that it stops.
        self.announcer.borrow().signal(Halt);
        self.keeper.borrow().signal(Halt);
        let draining = Draining {
            core: self.core.send_replace(None),
            listener: self.listener.clone(),
            monitor: self.monitor.clone(),
            store: self.parts.store.clone(),
            hub: self.hub.clone(),
            arbiters: std::mem::take(&mut self.arbiters),
            deadline: tokio::time::Instant::now() + self.grace,
        };
        ctx.spawn(wrap_future::<_, Self>(drain::run(draining)).map(move |outcome, _, ctx| {
            // Whoever asked may not wait any more.
            let _ = message.done.send(outcome);
            ctx.stop();
        }));
    }
}
