//! Makes the core: journal, registry, deliveries, scheduler and collector, from what the store knows. The only place that ties them.

use std::{collections::HashMap, time::Duration};

use actix::{Actor, Context};
use tokio::sync::{mpsc, watch};

use crate::{
    actors::{
        collector::{Collector, CollectorConfig},
        connection::Core,
        deliveries::{Deliveries, DeliveriesConfig, Loaded, LoadedGroup},
        journal::{Connect, Journal, JournalConfig, Sequence},
        life::{Exited, Life},
        mail::Handle,
        registry::{Registry, RegistryConfig},
        scheduler::{Scheduler, SchedulerConfig},
    },
    event::Group,
    metrics::{ActorKind, Metrics, Readiness},
    store::{self, GroupRow, HubRow, Seat, Store, StoreError},
    wire::GroupSettings,
};

/// Places in the mailboxes of the core. What goes past them is bounded elsewhere: by windows, credit and links.
const MAILBOX: usize = 4_096;
/// How long a member of a new core may take to answer.
const DEADLINE: Duration = Duration::from_secs(5);
/// Interrupted removals of groups that a start goes on with; the next one takes the rest.
const MOST_LEFT: usize = 1_000;

/// What each new core is made of.
#[derive(Debug, Clone)]
pub struct CoreParts {
    /// The database.
    pub store: Store,
    /// The hub's numbers.
    pub metrics: Metrics,
    /// For the journal.
    pub journal: JournalConfig,
    /// For the registry.
    pub registry: RegistryConfig,
    /// For deliveries.
    pub deliveries: DeliveriesConfig,
    /// For the scheduler.
    pub scheduler: SchedulerConfig,
    /// For the collector.
    pub collector: CollectorConfig,
    /// This start of the hub.
    pub epoch: u64,
    /// What it registers as, and where it runs.
    pub post: Post,
    /// Whether the hub can be given work.
    pub readiness: watch::Sender<Readiness>,
    /// Where actors report their end.
    pub exits: mpsc::UnboundedSender<Exited>,
}

/// What a hub registers as, and where it runs.
#[derive(Debug, Clone)]
pub struct Post {
    /// Its row.
    pub row: HubRow,
    /// Its place among hubs of other machines.
    pub seat: Seat,
}

impl CoreParts {
    /// Loads the state and starts the five actors on this thread. Each core of one hub start is a generation.
    ///
    /// # Errors
    /// If the database can't be read.
    pub async fn make(&self, generation: u64) -> Result<Core, StoreError> {
        // Behind the last statement of an earlier core, which may be a commit: its actors have ended, but the
        // database goes on by itself. What is loaded then is all there is.
        let synchronous = self.store.synchronous().await?;
        self.metrics.hub().synchronous.set(synchronous);
        // On a server that line isn't one: there the next epoch makes void what is under way, and what another hub that
        // took this one's place has begun. Until that one's lease is over this is refused, and tried again.
        let epoch = if generation > 0 && self.store.is_on_server() {
            self.store.take_hub(&self.post.row, &self.post.seat).await?
        } else {
            self.epoch
        };
        let journal = JournalConfig { epoch, ..self.journal.clone() };
        let hub = &self.journal.hub;
        let head = self.store.last_seq(hub).await?;
        // Claims of an earlier generation must not fit: their tokens start lower.
        let epoch = epoch.saturating_mul(GENERATIONS).saturating_add(generation);
        let (default, named) = self.groups().await?;
        let left = self.store.removed_groups(MOST_LEFT).await?;
        let left = left.into_iter().map(Group::from_stored).collect();
        let loaded = Loaded { default, named, left, head, epoch };

        let journal = self.start(ActorKind::Journal, |meter, _| {
            Journal::new(
                journal,
                self.store.clone(),
                Sequence::after(head),
                self.metrics.clone(),
                meter.clone(),
                self.readiness.clone(),
                self.life(ActorKind::Journal, generation),
            )
        });
        let deliveries = self.start(ActorKind::Deliveries, |meter, _| {
            Deliveries::new(
                self.deliveries.clone(),
                self.store.clone(),
                loaded,
                self.metrics.clone(),
                meter.clone(),
                journal.clone(),
                self.life(ActorKind::Deliveries, generation),
            )
        });
        let registry = self.start(ActorKind::Registry, |meter, _| {
            Registry::new(
                self.registry,
                self.metrics.clone(),
                meter.clone(),
                head,
                deliveries.clone(),
                self.life(ActorKind::Registry, generation),
            )
        });
        let scheduler = self.start(ActorKind::Scheduler, |meter, _| {
            Scheduler::new(
                self.scheduler,
                self.store.clone(),
                self.metrics.clone(),
                meter.clone(),
                journal.clone(),
                self.life(ActorKind::Scheduler, generation),
            )
        });
        let collector = self.start(ActorKind::Collector, |meter, _| {
            Collector::new(
                self.collector.clone(),
                self.store.clone(),
                self.metrics.clone(),
                meter.clone(),
                journal.clone(),
                self.life(ActorKind::Collector, generation),
            )
        });
        let connect = Connect {
            registry: registry.clone(),
            deliveries: deliveries.clone(),
            scheduler: scheduler.clone(),
        };
        if let Err(error) = journal.ask(connect, DEADLINE).await {
            // Its exit is reported, and the next core is made.
            tracing::error!(%error, "the journal didn't start");
        }
        Ok(Core { journal, registry, deliveries, scheduler, collector })
    }

    /// The default group, and the others by name.
    async fn groups(&self) -> Result<(LoadedGroup, Vec<(Group, LoadedGroup)>), StoreError> {
        let hub = &self.journal.hub;
        let mut bindings: HashMap<String, Vec<store::Binding>> = HashMap::new();
        for binding in self.store.bindings().await? {
            bindings.entry(binding.group.clone()).or_default().push(binding);
        }
        let mut all = HashMap::new();
        for GroupRow { name, settings, round, .. } in self.store.groups().await? {
            all.insert(name, (settings, round));
        }
        // It has a row only if it has settings.
        all.entry(String::new()).or_insert_with(|| (GroupSettings::default(), 1));
        let (mut default, mut named) = (None, Vec::new());
        for (name, (settings, round)) in all {
            let cursor = self.store.cursor(hub, &name).await?.unwrap_or(0);
            let group =
                LoadedGroup { round, settings, bindings: bindings.remove(&name).unwrap_or_default(), cursor };
            if name.is_empty() {
                default = Some(group);
            } else {
                named.push((Group::from_stored(name), group));
            }
        }
        named.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok((default.unwrap_or_default(), named))
    }

    fn life(&self, kind: ActorKind, generation: u64) -> Life {
        Life::begin(kind, generation, self.metrics.meter(kind), self.exits.clone())
    }

    fn start<A>(
        &self,
        kind: ActorKind,
        make: impl FnOnce(&crate::metrics::Meter, &mut Context<A>) -> A,
    ) -> Handle<A>
    where
        A: Actor<Context = Context<A>>,
    {
        start(&self.metrics, kind, MAILBOX, make)
    }
}

/// Cores of one epoch, at most.
const GENERATIONS: u64 = 1 << 8;

/// Starts an actor with a mailbox of its size, on this thread.
pub fn start<A>(
    metrics: &Metrics,
    kind: ActorKind,
    mailbox: usize,
    make: impl FnOnce(&crate::metrics::Meter, &mut Context<A>) -> A,
) -> Handle<A>
where
    A: Actor<Context = Context<A>>,
{
    let meter = metrics.meter(kind);
    let addr = A::create(|ctx| {
        ctx.set_mailbox_capacity(mailbox);
        make(&meter, ctx)
    });
    Handle::new(addr, meter)
}
