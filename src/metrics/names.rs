//! The name, unit, type and meaning of every metric. `docs/operations.md` lists them too; a test keeps the
//! two equal.

/// What kind of metric it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// One metric. `name` stands without the unit and without `_total`: both are added where it is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Definition {
    pub(super) name: &'static str,
    pub(super) unit: Option<&'static str>,
    pub(super) kind: Kind,
    /// The label that tells its series apart.
    pub(super) label: Option<&'static str>,
    pub(super) help: &'static str,
}

impl Definition {
    /// The name with its unit, as HELP and TYPE bear it in OpenMetrics.
    pub(super) fn family(&self) -> String {
        let unit = self.unit.map(|unit| format!("_{unit}")).unwrap_or_default();
        format!("{}{unit}", self.name)
    }

    /// The name of its series as Prometheus keeps it; for a histogram, what precedes `_bucket`.
    #[cfg(test)]
    pub(super) fn series(&self) -> String {
        let total = if self.kind == Kind::Counter { "_total" } else { "" };
        format!("{}{total}", self.family())
    }
}

macro_rules! definitions {
    ($($id:ident: $kind:ident $name:literal $([$unit:literal])? $({$label:literal})? $help:literal;)*) => {
        $(pub(super) const $id: Definition = Definition {
            name: $name,
            unit: definitions!(@option $($unit)?),
            kind: Kind::$kind,
            label: definitions!(@option $($label)?),
            help: $help,
        };)*

        /// All of them.
        pub(super) const ALL: &[Definition] = &[$($id,)*];
    };
    (@option) => { None };
    (@option $value:literal) => { Some($value) };
}

definitions! {
    ACTORS: Gauge "eventflow_actors_alive" {"actor"} "Actors that run.";
    RESTARTS: Counter "eventflow_actor_restarts" {"actor"} "Restarts after a failure.";
    DEPTH: Gauge "eventflow_actor_mailbox_depth" {"actor"} "Messages in mailboxes.";
    DEPTH_PEAK: Gauge "eventflow_actor_mailbox_depth_peak" {"actor"} "Most messages in mailboxes at once since the start.";
    WAITED: Histogram "eventflow_actor_mailbox_wait" ["seconds"] {"actor"} "Time that messages spent in a mailbox.";
    HANDLING: Histogram "eventflow_actor_handling" ["seconds"] {"actor"} "Time that handling a message took.";
    MESSAGES: Counter "eventflow_actor_messages" {"actor,message"} "Messages handled, by type.";
    ACTOR_REFUSED: Counter "eventflow_actor_messages_refused" {"actor"} "Messages turned away by a full or closed mailbox.";
    PROGRESS: Gauge "eventflow_actor_last_progress_timestamp" ["seconds"] {"actor"} "When a message was last handled, since 1970.";

    PUBLISHED: Counter "eventflow_events_published" "Events published and committed.";
    DUPLICATES: Counter "eventflow_events_duplicate" "Publishes of an event that was there already.";
    PERSISTED: Counter "eventflow_events_persisted" "Events stored without being published.";
    DELETED: Counter "eventflow_events_deleted" "Events deleted.";
    REMOVED: Counter "eventflow_events_removed" {"stood"} "Events that retention removed, by how they stood.";
    RETENTION: Gauge "eventflow_retention_last_pass_timestamp" ["seconds"] "When the last pass of retention ended, since 1970; 0: there was none.";
    REFUSED: Counter "eventflow_publishes_refused" {"class"} "Publishes refused.";
    DELIVERED: Counter "eventflow_events_delivered" "Events sent to subscribers, once per subscriber.";
    REPLAYED: Counter "eventflow_events_replayed" "Events sent to subscriptions that replay, before they were live; among those delivered.";
    REPLAYS: Gauge "eventflow_replays" "Subscriptions that replay stored events and aren't live yet.";
    CLAIMS: Counter "eventflow_claims" "Claims handed out to consumers.";
    ACKS: Counter "eventflow_acks" "Acks taken.";
    NACKS: Counter "eventflow_nacks" "Nacks taken.";
    RELEASED: Counter "eventflow_claims_released" "Claims handed back unstarted.";
    REOFFERED: Counter "eventflow_claims_reoffered" "Claims that ended with their link.";
    LEASES_OVER: Counter "eventflow_leases_over" "Claims that ended by their leases: nothing was heard of their holders in time.";
    EXTENDS: Counter "eventflow_leases_extended" "Requests to hold a claim for longer.";
    LETTERS: Counter "eventflow_dead_letters" "Dead events that were published as events of their own.";
    RETRIES: Counter "eventflow_retries" "Attempts that failed, after which the event waits for the next one.";
    CLAIMS_LOST: Counter "eventflow_claims_lost" "Acks and nacks that came after the claim was lost.";
    OUTCOMES: Counter "eventflow_outcomes" {"outcome"} "Outcomes recorded.";
    ORPHANS: Counter "eventflow_events_orphaned" "Events that matched no binding of the default group when dispatched.";
    PENDING: Gauge "eventflow_events_pending" "Events that wait for a consumer, once for each group.";
    OLDEST_PENDING: Gauge "eventflow_oldest_pending_seconds" "Since when the oldest event waits, for a consumer or a retry, or is in a consumer's hands, in any group; 0: none does.";
    RETRYING: Gauge "eventflow_events_retrying" {"group"} "Events that wait for their next attempt, once for each group, up to 100,000.";
    DEAD: Gauge "eventflow_events_dead" {"group"} "Events that failed for good and weren't redriven, once for each group, up to 100,000.";
    ORPHANS_WAITING: Gauge "eventflow_orphans" "Events without outcome that no binding of the default group wants, among the oldest 50,000.";
    WINDOWS: Gauge "eventflow_pending_memory" ["bytes"] "Bytes of events that wait in memory for consumers, in all bindings together.";
    WINDOWS_REFUSED: Counter "eventflow_pending_memory_refused" "Times that such an event found no room in memory and was left in the database.";
    IN_FLIGHT: Gauge "eventflow_events_in_flight" "Events that consumers hold, once for each group.";
    WAITS: Gauge "eventflow_waits" "Events and outcomes that links wait for.";

    SCHEDULES: Gauge "eventflow_schedules_waiting" "Scheduled events whose time is yet to come.";
    SCHEDULES_EXECUTED: Counter "eventflow_schedules_executed" "Scheduled events that were published.";
    COLLECTED: Counter "eventflow_events_collected" "Events that applications had put into the database themselves, published.";
    COLLECT_REFUSED: Counter "eventflow_events_not_collected" "Such events that break the rules, and are not published.";
    ADOPTED: Counter "eventflow_events_adopted" "Events of hubs whose leases were over that this hub serves instead, once for each group.";
    ADOPTED_HUBS: Gauge "eventflow_hubs_adopted" "Hubs whose leases are over and whose work this one goes on with.";
    LATENESS: Histogram "eventflow_schedule_lateness" ["seconds"] "Time from when an event was due to its dispatch.";
    RECURRING_RUNS: Counter "eventflow_recurring_runs" "Events that recurring schedules have published.";
    RECURRING_MISSED: Counter "eventflow_recurring_runs_missed" "Events that recurring schedules have published for times that were missed.";
    RECURRING_LEFT_OUT: Counter "eventflow_recurring_runs_left_out" "Times of recurring schedules that were missed and left out.";
    CLOCK_SKEW: Gauge "eventflow_clock_skew" ["seconds"] "How far the database's clock is ahead of the hub's; below zero: behind.";

    LINKS: Gauge "eventflow_links" {"dialect"} "Links that are up.";
    LINKS_OPENED: Counter "eventflow_links_opened" {"dialect"} "Links that came up.";
    CUTS: Counter "eventflow_links_cut" {"reason"} "Links that the hub ended.";
    HANDSHAKES_FAILED: Counter "eventflow_handshakes_failed" {"reason"} "Links that never came up.";
    BYTES_IN: Counter "eventflow_link_received" ["bytes"] "Bytes read from links, without TLS.";
    BYTES_OUT: Counter "eventflow_link_sent" ["bytes"] "Bytes written to links, without TLS.";
    NPM_IGNORED: Counter "eventflow_npm_records_ignored" "Records of npm links that were ignored or refused.";

    BATCHES: Counter "eventflow_journal_batches" "Transactions committed by the journal.";
    BATCH_SIZE: Histogram "eventflow_journal_batch_writes" "Writes per transaction.";
    COMMIT_TIME: Histogram "eventflow_journal_commit" ["seconds"] "Time from the begin of a transaction to the end of its commit.";
    QUEUE: Gauge "eventflow_journal_queue_writes" "Writes that wait for the journal.";
    QUEUE_BYTES: Gauge "eventflow_journal_queue" ["bytes"] "Bytes of the writes that wait for the journal.";
    SYNCHRONOUS: Gauge "eventflow_store_synchronous" "2: an ack waits for the disk, as the database at work says; 1: a power cut may take the last moments.";
    LOG_DROPPED: Counter "eventflow_log_rows_dropped" "Rows for the log table that were dropped because too many waited.";

    LEAF_LEFT: Gauge "eventflow_hub_certificate_left" ["seconds"] "Time until the hub's own leaf certificate expires; below zero: since then; 0 if it doesn't hold yet.";
    RENEWALS_FAILED: Counter "eventflow_hub_certificate_renewals_failed" "Renewals of the hub's own certificates that failed.";
    LEAVES_ISSUED: Counter "eventflow_spoke_certificates_issued" "Leaf certificates issued or renewed for spokes.";

    READINESS: Gauge "eventflow_readiness" {"state"} "1 for the state that the hub is in.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_well_formed() {
        let mut seen = std::collections::BTreeSet::new();
        for definition in ALL {
            let series = definition.series();
            assert!(series.starts_with("eventflow_"), "{series}");
            assert!(series.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{series}");
            assert!(definition.help.ends_with('.'), "{series}: the help is a sentence");
            assert!(seen.insert(series.clone()), "{series} stands twice");
        }
    }

    /// All queries of the dashboard.
    fn queries(value: &serde_json::Value, found: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(fields) => {
                for (name, value) in fields {
                    match value.as_str() {
                        Some(text) if ["expr", "query"].contains(&name.as_str()) => {
                            found.push(text.to_owned())
                        }
                        _ => queries(value, found),
                    }
                }
            }
            serde_json::Value::Array(values) => values.iter().for_each(|value| queries(value, found)),
            _ => {}
        }
    }

    #[test]
    fn the_dashboard_asks_for_what_there_is_and_for_all_of_it() {
        let dashboard: serde_json::Value =
            serde_json::from_str(include_str!("../../docs/grafana.json")).unwrap();
        let mut found = Vec::new();
        queries(&dashboard, &mut found);
        let word = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
        let words = found.iter().flat_map(|query| query.split(word));
        let asked: std::collections::BTreeSet<_> =
            words.filter(|word| word.starts_with("eventflow_")).collect();
        let mut known = std::collections::BTreeSet::new();
        for definition in ALL {
            let series = definition.series();
            let all = match definition.kind {
                Kind::Histogram => ["_bucket", "_sum", "_count"].map(|part| format!("{series}{part}")).into(),
                _ => vec![series.clone()],
            };
            assert!(
                all.iter().any(|name| asked.contains(&**name)),
                "no panel of docs/grafana.json shows {series}"
            );
            known.extend(all);
        }
        let unknown: Vec<_> = asked.iter().filter(|series| !known.contains(**series)).collect();
        assert!(unknown.is_empty(), "docs/grafana.json asks for metrics that don't exist: {unknown:?}");
        for panel in dashboard["panels"].as_array().unwrap().iter().filter(|panel| panel["type"] != "row") {
            assert_eq!(panel["datasource"]["uid"], "${datasource}", "{}", panel["title"]);
        }
    }

    #[test]
    fn the_manual_lists_every_metric() {
        let manual = include_str!("../../docs/operations.md");
        for definition in ALL {
            let series = definition.series();
            let row = manual.lines().find(|line| line.starts_with(&format!("| `{series}` |")));
            let row = row.unwrap_or_else(|| panic!("docs/operations.md has no row for {series}"));
            assert!(row.contains(definition.help), "{series}: the manual says {row:?}");
            let labels = definition.label.unwrap_or("");
            assert!(row.contains(&format!("| {labels} |")), "{series}: the manual says {row:?}");
        }
        let rows = manual.lines().filter(|line| line.starts_with("| `eventflow_")).count();
        assert_eq!(rows, ALL.len(), "docs/operations.md lists a metric that doesn't exist");
    }
}
