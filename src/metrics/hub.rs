//! What the hub as a whole counts.

use super::{
    instrument::{Counter, Gauge, Histogram},
    label::{
        Counters, CutReason, Dialect, Ended, Gauges, GroupKind, HandshakeFault, ReadyState, Refusal, Removed,
    },
};

/// The hub's own numbers. Actors write to the fields, each of which is a few atomics.
#[derive(Debug)]
pub struct HubMetrics {
    /// Events published and committed, each once.
    pub published: Counter,
    /// Publishes of an event that was there already.
    pub duplicates: Counter,
    /// Events stored without being published.
    pub persisted: Counter,
    /// Events deleted.
    pub deleted: Counter,
    /// Events that retention removed, by how they stood.
    pub removed: Counters<Removed>,
    /// When the last pass of retention ended, in seconds since 1970; 0: there was none.
    pub retention_pass: Gauge,
    /// Publishes refused, by class.
    pub refused: Counters<Refusal>,
    /// Events sent to subscribers; one that goes to three counts three times.
    pub delivered: Counter,
    /// Of these, those that went to subscriptions with a `from` before they were live.
    pub replayed: Counter,
    /// Subscriptions that replay and aren't live yet.
    pub replays: Gauge,
    /// Claims handed out.
    pub claims: Counter,
    /// Acks taken.
    pub acks: Counter,
    /// Nacks taken.
    pub nacks: Counter,
    /// Claims handed back unstarted.
    pub released: Counter,
    /// Claims that ended with their link.
    pub reoffered: Counter,
    /// Claims that ended by their leases.
    pub leases_over: Counter,
    /// Leases that were extended, or asked to be.
    pub extends: Counter,
    /// Dead-letter events published.
    pub letters: Counter,
    /// Failed attempts after which an event waits for the next one.
    pub retries: Counter,
    /// Acks and nacks that came too late: the claim was no longer held.
    pub claims_lost: Counter,
    /// Outcomes recorded.
    pub outcomes: Counters<Ended>,
    /// Events that matched no binding of the default group when they were dispatched.
    pub orphans: Counter,
    /// Events that wait, once for each group, for a consumer, in memory or in the database: as of the last count and what
    /// happened since.
    pub pending: Gauge,
    /// How long the oldest event of any group has been waiting or in somebody's hands, in seconds.
    pub oldest_pending: Gauge,
    /// Events that wait for their next attempt, once for each group: as of the last count.
    pub retrying: Gauges<GroupKind>,
    /// Events that failed for good and weren't redriven, once for each group: as of the last count.
    pub dead: Gauges<GroupKind>,
    /// Events without outcome that no binding of the default group wants: as of the last count.
    pub orphans_waiting: Gauge,
    /// Bytes of events that wait in memory for consumers.
    pub windows: Gauge,
    /// Times that such an event found no room.
    pub windows_refused: Counter,
    /// Events that consumers hold, once for each group.
    pub in_flight: Gauge,
    /// Scheduled events whose time is yet to come, as of the last count and what happened since.
    pub schedules_waiting: Gauge,
    /// Scheduled events that were published.
    pub schedules_executed: Counter,
    /// Events that applications had put into the database themselves, published.
    pub collected: Counter,
    /// Such events that break the rules, each counted once.
    pub collect_refused: Counter,
    /// Events of other hubs that this one serves since their leases are over, once for each group.
    pub adopted: Counter,
    /// Hubs whose work this one goes on with, and that didn't come back.
    pub adopted_hubs: Gauge,
    /// From when an event was due to its dispatch.
    pub schedule_lateness: Histogram,
    /// Events that recurring schedules have published.
    pub recurring_runs: Counter,
    /// Those of them that were missed: due for more than ten seconds.
    pub recurring_missed: Counter,
    /// Times of recurring schedules that were missed and left out.
    pub recurring_left_out: Counter,
    /// How far the database's clock is ahead of this machine's, in milliseconds; negative: behind.
    pub clock_skew: Gauge,
    /// Events and outcomes that links wait for.
    pub waits: Gauge,

    /// Links that are up.
    pub links: Gauges<Dialect>,
    /// Links that came up.
    pub links_opened: Counters<Dialect>,
    /// Links that the hub ended.
    pub cuts: Counters<CutReason>,
    /// Links that never came up.
    pub handshakes_failed: Counters<HandshakeFault>,
    /// Bytes read from links, after TLS.
    pub bytes_in: Counter,
    /// Bytes written to links, before TLS.
    pub bytes_out: Counter,
    /// Records of npm links that were ignored or refused.
    pub npm_ignored: Counter,

    /// Transactions of the journal that were committed.
    pub batches: Counter,
    /// Writes per transaction.
    pub batch_size: Histogram,
    /// From the begin of a transaction to the end of its commit.
    pub commit_time: Histogram,
    /// Writes that wait for the journal.
    pub journal_queue: Gauge,
    /// Their bytes.
    pub journal_queue_bytes: Gauge,
    /// What `PRAGMA synchronous` says on the live writer: 2 is FULL.
    pub synchronous: Gauge,
    /// Rows for the `log` table that were dropped because too many waited.
    pub log_dropped: Counter,

    /// Seconds until the hub's own leaf ends to hold.
    pub leaf_left: Gauge,
    /// Renewals of the hub's own certificates that failed.
    pub renewals_failed: Counter,
    /// Leaves issued or renewed for spokes.
    pub leaves_issued: Counter,

    /// 1 for the state that the hub is in.
    pub readiness: Gauges<ReadyState>,
}

impl HubMetrics {
    pub(super) fn new() -> Self {
        let metrics = Self {
            published: Counter::default(),
            duplicates: Counter::default(),
            persisted: Counter::default(),
            deleted: Counter::default(),
            removed: Counters::default(),
            retention_pass: Gauge::default(),
            refused: Counters::default(),
            delivered: Counter::default(),
            replayed: Counter::default(),
            replays: Gauge::default(),
            claims: Counter::default(),
            acks: Counter::default(),
            nacks: Counter::default(),
            released: Counter::default(),
            reoffered: Counter::default(),
            leases_over: Counter::default(),
            extends: Counter::default(),
            letters: Counter::default(),
            retries: Counter::default(),
            claims_lost: Counter::default(),
            outcomes: Counters::default(),
            orphans: Counter::default(),
            pending: Gauge::default(),
            oldest_pending: Gauge::default(),
            retrying: Gauges::default(),
            dead: Gauges::default(),
            orphans_waiting: Gauge::default(),
            windows: Gauge::default(),
            windows_refused: Counter::default(),
            in_flight: Gauge::default(),
            schedules_waiting: Gauge::default(),
            schedules_executed: Counter::default(),
            collected: Counter::default(),
            adopted: Counter::default(),
            adopted_hubs: Gauge::default(),
            collect_refused: Counter::default(),
            schedule_lateness: Histogram::times(),
            recurring_runs: Counter::default(),
            recurring_missed: Counter::default(),
            recurring_left_out: Counter::default(),
            clock_skew: Gauge::default(),
            waits: Gauge::default(),
            links: Gauges::default(),
            links_opened: Counters::default(),
            cuts: Counters::default(),
            handshakes_failed: Counters::default(),
            bytes_in: Counter::default(),
            bytes_out: Counter::default(),
            npm_ignored: Counter::default(),
            batches: Counter::default(),
            batch_size: Histogram::sizes(),
            commit_time: Histogram::times(),
            journal_queue: Gauge::default(),
            journal_queue_bytes: Gauge::default(),
            synchronous: Gauge::default(),
            log_dropped: Counter::default(),
            leaf_left: Gauge::default(),
            renewals_failed: Counter::default(),
            leaves_issued: Counter::default(),
            readiness: Gauges::default(),
        };
        metrics.readiness.of(ReadyState::Starting).set(1);
        metrics
    }
}
