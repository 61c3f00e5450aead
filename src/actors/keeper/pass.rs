//! One pass of the keeper: through all domains, each from where the last pass ended.

use std::{collections::BTreeMap, collections::HashSet, fmt, time::Duration};

use serde::Serialize;
use tokio::{
    sync::{oneshot, watch},
    time::{Instant, sleep},
};

use super::{KeeperConfig, walk::Walk};
use crate::{
    actors::{clock::now_millis as clock, connection::Core, deliveries::HeldOf, journal},
    event::{Domain, EventId, Fault, code},
    metrics::{self, Metrics},
    store::{Fate, Looked, Store, Sweep, Swept},
};

/// Events that stay and are looked at in one pass.
const MOST_LOOKED: usize = 20_000;
/// Rest after a page of which nothing went.
const BREATH: Duration = Duration::from_millis(2);
/// Rest after a transaction, in times of what it took, where others wait for the journal.
const BESIDE_OTHERS: u32 = 8;
/// The same, where nobody does.
const ALONE: u32 = 1;
/// How long deliveries may take to say who is held.
const ANSWER: Duration = Duration::from_secs(5);

/// What a pass works with.
#[derive(Debug)]
pub(super) struct Pass {
    pub(super) config: KeeperConfig,
    pub(super) store: Store,
    pub(super) core: watch::Receiver<Option<Core>>,
    pub(super) metrics: Metrics,
}

/// What a pass did.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// Events that were looked at.
    looked: usize,
    /// Events that have expired.
    expired: usize,
    /// Events that were removed, by how they stood.
    removed: BTreeMap<&'static str, usize>,
    /// It had enough, and the next one goes on from there.
    unfinished: bool,
    /// Why it ended early.
    trouble: Option<String>,
    /// How long it took, in milliseconds.
    took_ms: u64,
}

impl Report {
    /// Whether anything has changed.
    pub(super) fn did_something(&self) -> bool {
        self.expired > 0 || !self.removed.is_empty()
    }

    pub(super) fn as_json(&self) -> String {
        serde_json::json!({ "removed": self.removed, "expired": self.expired }).to_string()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: usize = self.removed.values().sum();
        let parts: Vec<_> = self.removed.iter().map(|(kept, count)| format!("{count} {kept}")).collect();
        write!(f, "retention: removed {all} events")?;
        if !parts.is_empty() {
            write!(f, " ({})", parts.join(", "))?;
        }
        write!(f, ", {} expired", self.expired)
    }
}

impl Pass {
    pub(super) async fn run(self, mut walk: Walk, now: i64) -> (Walk, Report) {
        let began = Instant::now();
        let mut report = Report::default();
        if let Err(fault) = self.domains(&mut walk, now, &mut report).await {
            tracing::warn!(%fault, "retention stopped early; the next pass goes on");
            report.trouble = Some(fault.to_string());
        }
        report.took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        (walk, report)
    }

    async fn domains(&self, walk: &mut Walk, now: i64, report: &mut Report) -> Result<(), Fault> {
        // Domains have at least one letter, so that all of them come after the empty text.
        let mut last: Option<String> = None;
        let resume = walk.resume();
        let mut next = match resume {
            Some(domain) => Some(Domain::from_stored(domain)),
            None => self.store.next_domain("").await?,
        };
        while let Some(domain) = next {
            let policy = self.config.policies.of(&domain);
            if let Some(until) = policy.least().begin(now)
                && !self.domain(walk, &domain, until, now, report).await?
            {
                walk.stop_before(&domain);
                report.unfinished = true;
                return Ok(());
            }
            next = self.store.next_domain(&domain).await?;
            if last.is_some() {
                walk.only(last.as_deref(), Some(&domain));
            }
            last = Some(domain.to_string());
        }
        walk.only(last.as_deref(), None);
        Ok(())
    }

    /// Looks through one domain. False: that was enough for this pass.
    async fn domain(
        &self,
        walk: &mut Walk,
        domain: &Domain,
        until: i64,
        now: i64,
        report: &mut Report,
    ) -> Result<bool, Fault> {
        let KeeperConfig { hub, policies, batch, .. } = &self.config;
        let mut after = walk.begin(domain, now);
        loop {
            let rows = self
                .store
                .keep_page((hub, domain), after.as_ref(), until, *batch, (policies, now))
                .await
                .map_err(Fault::from)?;
            let Some(last) = rows.last() else { return Ok(true) };
            let (mark, whole) = (last.mark.clone(), rows.len() == *batch);
            report.looked += rows.len();
            let settled = self.settle(domain, &rows, now, report).await?;
            walk.looked(domain, after, &rows, |row| settled.contains(&row.id), now);
            after = Some(mark);
            if !whole {
                return Ok(true);
            }
            if report.looked >= MOST_LOOKED + report.removed.values().sum::<usize>() + report.expired {
                return Ok(false);
            }
            if settled.is_empty() {
                sleep(BREATH).await;
            }
        }
    }

    /// Has done what is to be done with these events. Returns those with which it was.
    async fn settle(
        &self,
        domain: &Domain,
        rows: &[Looked],
        now: i64,
        report: &mut Report,
    ) -> Result<HashSet<EventId>, Fault> {
        let wanted = rows.iter().filter(|row| matches!(row.fate, Fate::Goes(_) | Fate::Expires));
        let wanted: Vec<&Looked> = wanted.collect();
        if wanted.is_empty() {
            return Ok(HashSet::new());
        }
        let core = self.core.borrow().clone().ok_or_else(restarting)?;
        // Whoever is handed an event keeps it, even if its binding is gone by now.
        let numbers = wanted.iter().filter_map(|row| row.seq).collect();
        let held = core.deliveries.ask(HeldOf(numbers), ANSWER).await.map_err(|_| restarting())?;
        let free = wanted.iter().filter(|row| row.seq.is_none_or(|seq| !held.0.contains(&seq)));
        let ids: Vec<EventId> = free.map(|row| row.id.clone()).collect();
        if ids.is_empty() {
            return Ok(HashSet::new());
        }
        let (hub, policies) = (self.config.hub.clone(), self.config.policies.clone());
        let sweep = Sweep { hub, domain: domain.clone(), ids, policies, at: now.max(clock()) };
        let began = Instant::now();
        let (done, answer) = oneshot::channel();
        core.journal.signal(journal::Sweep { sweep, done });
        let swept = answer.await.map_err(|_| restarting())??;
        let took = began.elapsed();
        let settled = self.count(swept, report);
        // Whoever came meanwhile waits now: that tells whether the journal has others to serve.
        let waiting = core.journal.ask(journal::Backlog, ANSWER).await.map_err(|_| restarting())?;
        sleep(took * if waiting > 0 { BESIDE_OTHERS } else { ALONE }).await;
        Ok(settled)
    }

    fn count(&self, swept: Swept, report: &mut Report) -> HashSet<EventId> {
        let hub = self.metrics.hub();
        report.expired += swept.expired.len();
        hub.outcomes.of(metrics::Ended::Expired).add(swept.expired.len() as u64);
        let mut settled: HashSet<EventId> = swept.expired.into_iter().collect();
        for (kept, gone) in swept.removed {
            *report.removed.entry(kept.as_str()).or_default() += 1;
            hub.removed.of(metrics::Removed::from(kept)).inc();
            settled.insert(gone.id);
        }
        settled
    }
}

fn restarting() -> Fault {
    Fault::retryable(code::HUB_BUSY, "the core of the hub restarts, or the hub stops", ANSWER)
}
