//! The end of a hub, in order and under one deadline: nothing new, in-flight work ends or is handed back, commits
//! done, links told, threads joined.

use std::time::Duration;

use actix_rt::Arbiter;
use tokio::time::Instant;

use crate::{
    actors::{
        collector,
        connection::Core,
        deliveries::{self, Floor, InFlight},
        draining,
        journal::{self, Backlog},
        life::Halt,
        listener::{self, Announce, CutAll, Links, Listener},
        mail::{Handle, MailError},
        monitor::{Flush, Monitor},
        scheduler,
    },
    event::Uid,
    metrics::CutReason,
    store::Store,
};

/// How it ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DrainOutcome {
    /// Claims that were in somebody's hands when the time was up: their events are offered again at the next start.
    pub handed_back: usize,
    /// Writes that weren't committed when the time was up: their publishers were told nothing and will try again.
    pub uncommitted: usize,
    /// Links that didn't end by themselves.
    pub forced_links: usize,
    /// The core was failing: what was under way in it is in doubt, and its clients will try again.
    pub without_core: bool,
}

impl DrainOutcome {
    /// Whether everything came to its own end.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        *self == Self::default()
    }
}

/// What is to be drained.
pub struct Draining {
    /// The core, unless it is failing.
    pub core: Option<Core>,
    /// Lets nobody in any more.
    pub listener: Handle<Listener>,
    /// Writes its last rows.
    pub monitor: Handle<Monitor>,
    /// Closed at the end.
    pub store: Store,
    /// The hub that quits.
    pub hub: Uid,
    /// Joined at the end.
    pub arbiters: Vec<Arbiter>,
    /// For all of it.
    pub deadline: Instant,
}

/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(5);
/// How long one actor may take to answer.
const ANSWER: Duration = Duration::from_secs(1);
/// What an actor counts for that doesn't say how much it has left.
const UNKNOWN: usize = 1;
/// What is kept of the time for telling the links and committing the rest.
const LAST_STEPS: u32 = 4;

/// Runs all steps.
pub async fn run(draining_hub: Draining) -> DrainOutcome {
    let Draining { core, listener, monitor, store, hub, arbiters, deadline } = draining_hub;
    let began = Instant::now();
    let work_ends = deadline - (deadline - began) / LAST_STEPS;
    let mut outcome = DrainOutcome { without_core: core.is_none(), ..DrainOutcome::default() };

    listener.signal(listener::Close);
    if let Some(core) = &core {
        core.scheduler.signal(scheduler::Drain);
        core.collector.signal(collector::Drain);
        core.journal.signal(journal::Close);
        // Once nothing is handed out any more, clients give back what they haven't begun.
        let _ = core.deliveries.ask(deliveries::Drain, ANSWER).await;
        listener.signal(Announce);
        let in_flight = || async { left(core.deliveries.ask(InFlight, ANSWER).await) };
        outcome.handed_back = until_zero(work_ends, in_flight).await;
        until_zero(work_ends, || async { left(core.journal.ask(Backlog, ANSWER).await) }).await;
    }

    listener.signal(CutAll { reason: CutReason::Draining, fault: draining() });
    outcome.forced_links = until_zero(deadline, || async { left(listener.ask(Links, ANSWER).await) }).await;

    // The last rows: they may fail without loss, so their answers aren't waited for beyond the deadline.
    let _ = monitor.ask(Flush, ANSWER).await;
    if let Some(core) = core {
        let _ = core.deliveries.ask(Floor, ANSWER).await;
        outcome.uncommitted =
            until_zero(deadline, || async { left(core.journal.ask(Backlog, ANSWER).await) }).await;
        // A core that failed in the drain isn't made anew: what was under way in it is in doubt.
        outcome.without_core = !core.is_alive();
        core.scheduler.signal(Halt);
        core.collector.signal(Halt);
        core.registry.signal(Halt);
        core.deliveries.signal(Halt);
        core.journal.signal(Halt);
    }
    let closing = async {
        if let Err(error) = store.hub_quit(&hub).await {
            tracing::warn!(%error, "the hub's row still says that it runs");
        }
        store.close().await;
    };
    if tokio::time::timeout(ANSWER, closing).await.is_err() {
        tracing::warn!("the database didn't close in time");
    }
    for arbiter in arbiters {
        arbiter.stop();
        if arbiter.join().is_err() {
            tracing::warn!("a thread of links ended by a panic");
        }
    }
    let took = began.elapsed();
    if outcome.is_clean() {
        tracing::info!(?took, "drained: all came to its own end");
    } else {
        tracing::warn!(?took, ?outcome, "drained: some of it was forced");
    }
    outcome
}

/// What an actor says that it has left. One that is gone has nothing; one that doesn't say has something.
fn left(answer: Result<usize, MailError>) -> usize {
    match answer {
        Ok(left) => left,
        Err(MailError::Gone) => 0,
        Err(_) => UNKNOWN,
    }
}

/// Asks until the answer is 0 or the time is up; returns the last answer.
async fn until_zero<F: Future<Output = usize>>(deadline: Instant, mut ask: impl FnMut() -> F) -> usize {
    loop {
        let left = ask().await;
        if left == 0 || Instant::now() >= deadline {
            return left;
        }
        tokio::time::sleep(LOOK).await;
    }
}
