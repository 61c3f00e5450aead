//! Lets orphans expire and removes what was kept long enough, by the policies of their domains.

mod pass;
mod snapshot;
mod walk;

use std::{sync::Arc, time::Duration};

use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, WrapFuture};
use tokio::sync::watch;

use self::{
    pass::{Pass, Report},
    walk::Walk,
};
use super::{
    connection::Core,
    journal::Note,
    life::{Halt, Life},
    mail::{mail, measured},
    snapshot::Snapshot,
};
use crate::{
    actors::clock::now_millis as now,
    event::{Policies, Uid},
    metrics::{Meter, Metrics},
    store::{Store, Write},
};

/// What a [`Keeper`] is told at its start.
#[derive(Debug, Clone)]
pub struct KeeperConfig {
    /// This hub.
    pub hub: Uid,
    /// What is wanted of each domain.
    pub policies: Arc<Policies>,
    /// From the end of one pass to the next.
    pub interval: Duration,
    /// The most events of one transaction.
    pub batch: usize,
}

/// Ends the actor by a panic, to show that nothing is lost by one.
#[derive(Debug)]
pub struct Panic;
mail!(Panic => ());

/// - **Role**: lets orphans expire and removes what was kept long enough, by the policies of their domains.
/// - **Owns**: how far it has looked in each domain; one pass at a time.
/// - **Receives**: [`Halt`] and [`Panic`] from the guardian, [`Snapshot`] from the hub; its timer.
/// - **Sends**: sweeps to the journal, one at a time, after asking deliveries who is held; a line for the log.
/// - **Capacity**: places of 10,000 domains; a pass looks at 20,000 events that stay, and rests between its transactions
///   for as long as they take, or eight times as long where others write. Where nothing ever goes it sleeps for ever.
/// - **On failure**: restarted with back-off; it looks anew from the oldest event on, which changes nothing.
#[derive(Debug)]
pub struct Keeper {
    meter: Meter,
    metrics: Metrics,
    config: KeeperConfig,
    store: Store,
    core: watch::Receiver<Option<Core>>,
    /// None while a pass has it.
    walk: Option<Walk>,
    passes: u64,
    last: Option<Report>,
    _life: Life,
}

measured!(Keeper: Halt, Panic, Snapshot);

impl Keeper {
    /// A keeper that begins once it is started.
    #[must_use]
    pub fn new(
        config: KeeperConfig,
        store: Store,
        core: watch::Receiver<Option<Core>>,
        metrics: Metrics,
        meter: Meter,
        life: Life,
    ) -> Self {
        let walk = Some(Walk::new(config.interval));
        Self { meter, metrics, config, store, core, walk, passes: 0, last: None, _life: life }
    }

    fn go(&mut self, ctx: &mut Context<Self>) {
        let Some(walk) = self.walk.take() else { return };
        let pass = Pass {
            config: self.config.clone(),
            store: self.store.clone(),
            core: self.core.clone(),
            metrics: self.metrics.clone(),
        };
        ctx.spawn(pass.run(walk, now()).into_actor(self).map(|(walk, report), keeper, ctx| {
            keeper.walk = Some(walk);
            keeper.passed(report);
            ctx.run_later(keeper.config.interval, Self::go);
        }));
    }

    fn passed(&mut self, report: Report) {
        self.meter.progress();
        self.passes += 1;
        self.metrics.hub().retention_pass.set(now() / 1_000);
        if report.did_something() {
            let message = report.to_string();
            tracing::info!("{message}");
            if let Some(core) = self.core.borrow().as_ref() {
                let (agent, error) = (self.config.hub.to_string(), report.as_json());
                core.journal.signal(Note(vec![Write::Log { at: now(), agent, message, error }]));
            }
        }
        self.last = Some(report);
    }
}

impl Actor for Keeper {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        if !self.config.policies.keeps_all() {
            // Not at once: a hub that starts has other things to do.
            ctx.run_later(self.config.interval, Self::go);
        }
    }
}

impl Handler<Halt> for Keeper {
    type Result = ();

    fn handle(&mut self, _: Halt, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

impl Handler<Panic> for Keeper {
    type Result = ();

    fn handle(&mut self, _: Panic, _: &mut Self::Context) {
        panic!("the keeper was told to panic");
    }
}
