//! The numbers at one moment, as plain values for a host program or as JSON.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    Metrics,
    instrument::Histogram,
    label::{ActorKind, Counters, Gauges, Label, ReadyState},
    meter::ActorNumbers,
};

/// All numbers of a hub at one moment. Each is exact; together they aren't one instant, since the hub goes on
/// while they are read.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct MetricsSnapshot {
    /// One entry per kind of actor, by its name.
    pub actors: BTreeMap<&'static str, ActorSnapshot>,
    /// The hub as a whole.
    pub hub: HubSnapshot,
}

impl MetricsSnapshot {
    /// The entry of this kind of actor.
    #[must_use]
    pub fn actor(&self, kind: ActorKind) -> Option<&ActorSnapshot> {
        self.actors.get(kind.as_str())
    }
}

/// What the actors of one kind did.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ActorSnapshot {
    /// Actors that run.
    pub alive: u64,
    /// Restarts after a failure.
    pub restarts: u64,
    /// Messages in their mailboxes.
    pub mailbox_depth: u64,
    /// The most there were at once.
    pub mailbox_depth_peak: u64,
    /// How long messages stayed in a mailbox.
    pub mailbox_wait: TimesSnapshot,
    /// How long handling a message took.
    pub handling: TimesSnapshot,
    /// Messages handled, by type.
    pub messages: BTreeMap<&'static str, u64>,
    /// Messages that a full or closed mailbox turned away.
    pub refused: u64,
    /// When something was last done, in milliseconds since 1970.
    pub last_progress: Option<u64>,
}

/// A histogram of times in short. The quantiles are estimates, linear within a bucket, and never above 10 s;
/// none without values.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TimesSnapshot {
    /// How many.
    pub count: u64,
    /// Their sum in seconds.
    pub sum_seconds: f64,
    /// The median in seconds.
    pub p50_seconds: Option<f64>,
    /// What 99 of 100 stay below, in seconds.
    pub p99_seconds: Option<f64>,
}

/// A histogram of sizes in short; as [`TimesSnapshot`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SizesSnapshot {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
    /// The median.
    pub p50: Option<f64>,
    /// What 99 of 100 stay below.
    pub p99: Option<f64>,
}

/// What the hub as a whole counted. The fields mean what those of [`HubMetrics`](super::HubMetrics) mean.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
#[allow(missing_docs, reason = "documented on HubMetrics, field by field")]
pub struct HubSnapshot {
    pub readiness: &'static str,
    pub published: u64,
    pub duplicates: u64,
    pub persisted: u64,
    pub deleted: u64,
    pub removed: BTreeMap<&'static str, u64>,
    pub retention_pass: i64,
    pub refused: BTreeMap<&'static str, u64>,
    pub delivered: u64,
    pub replayed: u64,
    pub replays: i64,
    pub claims: u64,
    pub acks: u64,
    pub nacks: u64,
    pub released: u64,
    pub reoffered: u64,
    pub leases_over: u64,
    pub extends: u64,
    pub letters: u64,
    pub retries: u64,
    pub claims_lost: u64,
    pub outcomes: BTreeMap<&'static str, u64>,
    pub orphans: u64,
    pub pending: i64,
    pub oldest_pending: i64,
    /// Events that wait for their next attempt.
    pub retrying: BTreeMap<&'static str, i64>,
    /// Events that failed for good and weren't redriven.
    pub dead: BTreeMap<&'static str, i64>,
    /// Events without outcome that no binding of the default group wants.
    pub orphans_waiting: i64,
    /// Bytes of events that wait in memory for consumers.
    pub windows_bytes: i64,
    /// Times that a window had no room for one.
    pub windows_refused: u64,
    pub in_flight: i64,
    pub schedules_waiting: i64,
    pub schedules_executed: u64,
    pub schedule_lateness: TimesSnapshot,
    /// Events that applications had put into the database themselves, published.
    pub collected: u64,
    /// Such events that break the rules, each counted once.
    pub collect_refused: u64,
    /// Events of other hubs that this one serves since their leases are over, once for each group.
    pub adopted: u64,
    /// Hubs whose work this one goes on with.
    pub adopted_hubs: i64,
    pub recurring_runs: u64,
    /// Of these, those whose time was missed.
    pub recurring_missed: u64,
    pub recurring_left_out: u64,
    /// How far the database's clock is ahead of this machine's.
    pub clock_skew_ms: i64,
    /// Events and outcomes that links wait for.
    pub waits: i64,
    pub links: BTreeMap<&'static str, i64>,
    pub links_opened: BTreeMap<&'static str, u64>,
    pub cuts: BTreeMap<&'static str, u64>,
    pub handshakes_failed: BTreeMap<&'static str, u64>,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub npm_ignored: u64,
    pub batches: u64,
    pub batch_size: SizesSnapshot,
    pub commit_time: TimesSnapshot,
    pub journal_queue: i64,
    pub journal_queue_bytes: i64,
    pub synchronous: i64,
    pub log_dropped: u64,
    pub leaf_left: i64,
    pub renewals_failed: u64,
    pub leaves_issued: u64,
}

impl Metrics {
    /// The numbers as they are now.
    #[must_use]
    pub fn snapshot(&self) -> MetricsSnapshot {
        let actors = ActorKind::ALL.iter().map(|kind| (kind.as_str(), actor(&self.0.actors[kind.index()])));
        MetricsSnapshot { actors: actors.collect(), hub: self.hub_snapshot() }
    }

    fn hub_snapshot(&self) -> HubSnapshot {
        let hub = self.hub();
        let states = ReadyState::ALL.iter().find(|state| hub.readiness.of(**state).get() == 1);
        HubSnapshot {
            readiness: states.map_or("", |state| state.as_str()),
            published: hub.published.get(),
            duplicates: hub.duplicates.get(),
            persisted: hub.persisted.get(),
            deleted: hub.deleted.get(),
            removed: counters(&hub.removed),
            retention_pass: hub.retention_pass.get(),
            refused: counters(&hub.refused),
            delivered: hub.delivered.get(),
            replayed: hub.replayed.get(),
            replays: hub.replays.get(),
            claims: hub.claims.get(),
            acks: hub.acks.get(),
            nacks: hub.nacks.get(),
            released: hub.released.get(),
            reoffered: hub.reoffered.get(),
            leases_over: hub.leases_over.get(),
            extends: hub.extends.get(),
            letters: hub.letters.get(),
            retries: hub.retries.get(),
            claims_lost: hub.claims_lost.get(),
            outcomes: counters(&hub.outcomes),
            orphans: hub.orphans.get(),
            pending: hub.pending.get(),
            oldest_pending: hub.oldest_pending.get(),
            retrying: gauges(&hub.retrying),
            dead: gauges(&hub.dead),
            orphans_waiting: hub.orphans_waiting.get(),
            windows_bytes: hub.windows.get(),
            windows_refused: hub.windows_refused.get(),
            in_flight: hub.in_flight.get(),
            schedules_waiting: hub.schedules_waiting.get(),
            schedules_executed: hub.schedules_executed.get(),
            collected: hub.collected.get(),
            collect_refused: hub.collect_refused.get(),
            adopted: hub.adopted.get(),
            adopted_hubs: hub.adopted_hubs.get(),
            schedule_lateness: times(&hub.schedule_lateness),
            recurring_runs: hub.recurring_runs.get(),
            recurring_missed: hub.recurring_missed.get(),
            recurring_left_out: hub.recurring_left_out.get(),
            clock_skew_ms: hub.clock_skew.get(),
            waits: hub.waits.get(),
            links: gauges(&hub.links),
            links_opened: counters(&hub.links_opened),
            cuts: counters(&hub.cuts),
            handshakes_failed: counters(&hub.handshakes_failed),
            bytes_in: hub.bytes_in.get(),
            bytes_out: hub.bytes_out.get(),
            npm_ignored: hub.npm_ignored.get(),
            batches: hub.batches.get(),
            batch_size: sizes(&hub.batch_size),
            commit_time: times(&hub.commit_time),
            journal_queue: hub.journal_queue.get(),
            journal_queue_bytes: hub.journal_queue_bytes.get(),
            synchronous: hub.synchronous.get(),
            log_dropped: hub.log_dropped.get(),
            leaf_left: hub.leaf_left.get(),
            renewals_failed: hub.renewals_failed.get(),
            leaves_issued: hub.leaves_issued.get(),
        }
    }
}

fn actor(numbers: &ActorNumbers) -> ActorSnapshot {
    ActorSnapshot {
        alive: at_least_zero(numbers.alive.get()),
        restarts: numbers.restarts.get(),
        mailbox_depth: at_least_zero(numbers.depth.get()),
        mailbox_depth_peak: at_least_zero(numbers.depth_peak.get()),
        mailbox_wait: times(&numbers.waited),
        handling: times(&numbers.handling),
        messages: numbers.messages().collect(),
        refused: numbers.refused.get(),
        last_progress: numbers.last_progress(),
    }
}

/// A gauge that two threads move may be read between the halves of a step: below zero for a moment.
pub(super) fn at_least_zero(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

fn times(histogram: &Histogram) -> TimesSnapshot {
    let reading = histogram.read();
    TimesSnapshot {
        count: reading.count(),
        sum_seconds: reading.sum(),
        p50_seconds: reading.quantile(0.5),
        p99_seconds: reading.quantile(0.99),
    }
}

fn sizes(histogram: &Histogram) -> SizesSnapshot {
    let reading = histogram.read();
    SizesSnapshot {
        count: reading.count(),
        sum: reading.sum(),
        p50: reading.quantile(0.5),
        p99: reading.quantile(0.99),
    }
}

fn counters<L: Label>(counters: &Counters<L>) -> BTreeMap<&'static str, u64> {
    L::ALL.iter().map(|&label| (label.as_str(), counters.of(label).get())).collect()
}

fn gauges<L: Label>(gauges: &Gauges<L>) -> BTreeMap<&'static str, i64> {
    L::ALL.iter().map(|&label| (label.as_str(), gauges.of(label).get())).collect()
}
