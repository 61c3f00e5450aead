use std::time::{Duration, Instant};

use super::*;

fn busy() -> Metrics {
    let metrics = Metrics::new();
    let journal = metrics.meter(ActorKind::Journal);
    journal.spawned();
    journal.queued();
    journal.started(Instant::now());
    journal.message("Publish").handled(Duration::from_micros(120));
    metrics.hub().published.add(3);
    metrics.hub().refused.of(Refusal::Conflict).inc();
    metrics.hub().links.of(Dialect::V1).inc();
    metrics.hub().bytes_in.add(4_096);
    metrics.hub().batch_size.record_size(3);
    metrics.hub().commit_time.record(Duration::from_micros(900));
    metrics.set_readiness(&Readiness::Ready);
    metrics
}

#[test]
fn two_hubs_do_not_mix() {
    let (one, other) = (busy(), Metrics::new());
    assert_eq!(one.snapshot().hub.published, 3);
    assert_eq!(other.snapshot().hub.published, 0);
}

#[test]
fn clones_share_their_numbers() {
    let metrics = Metrics::new();
    metrics.clone().hub().acks.inc();
    assert_eq!(metrics.snapshot().hub.acks, 1);
}

#[test]
fn a_snapshot_says_what_the_actors_did() {
    let snapshot = busy().snapshot();
    let journal = snapshot.actor(ActorKind::Journal).unwrap();
    assert_eq!((journal.alive, journal.mailbox_depth, journal.mailbox_depth_peak), (1, 0, 1));
    assert_eq!(journal.mailbox_wait.count, 1);
    assert_eq!(journal.messages["Publish"], 1);
    assert!(journal.handling.p50_seconds.unwrap() <= 250e-6);
    assert_eq!(snapshot.hub.readiness, "ready");
    assert_eq!(snapshot.hub.refused["conflict"], 1);
    assert_eq!(snapshot.hub.batch_size.sum, 3.0);
}

#[test]
fn a_snapshot_is_json() {
    let json = serde_json::to_value(busy().snapshot()).unwrap();
    assert_eq!(json["actors"]["journal"]["messages"]["Publish"], 1);
    assert_eq!(json["hub"]["links"]["v1"], 1);
}

#[test]
fn bounds_of_buckets_are_exact_decimals() {
    let text = busy().render();
    let bounds: std::collections::BTreeSet<_> =
        text.split("le=\"").skip(1).map(|rest| rest.split_once('"').unwrap().0).collect();
    assert!(bounds.len() > 30, "{bounds:?}");
    for bound in bounds.iter().filter(|bound| **bound != "+Inf") {
        let digits = bound.trim_matches(|c| !('1'..='9').contains(&c));
        assert!(digits.len() <= 4, "{bound} in {bounds:?}");
    }
    assert!(bounds.contains("0.25") && bounds.contains("1024.0"), "{bounds:?}");
}

#[test]
fn the_text_has_help_type_unit_and_end() {
    let text = busy().render();
    for line in [
        "# HELP eventflow_actor_mailbox_wait_seconds Time that messages spent in a mailbox.",
        "# TYPE eventflow_actor_mailbox_wait_seconds histogram",
        "# UNIT eventflow_actor_mailbox_wait_seconds seconds",
        "eventflow_actor_messages_total{actor=\"journal\",message=\"Publish\"} 1",
        "eventflow_actor_mailbox_wait_seconds_bucket{le=\"+Inf\",actor=\"journal\"} 1",
        "eventflow_actors_alive{actor=\"journal\"} 1",
        "eventflow_events_published_total 3",
        "eventflow_publishes_refused_total{class=\"conflict\"} 1",
        "eventflow_links{dialect=\"v1\"} 1",
        "eventflow_link_received_bytes_total 4096",
        "eventflow_journal_batch_writes_bucket{le=\"4.0\"} 1",
        "eventflow_readiness{state=\"ready\"} 1",
        "eventflow_readiness{state=\"starting\"} 0",
    ] {
        assert!(text.lines().any(|found| found == line), "no line {line:?} in\n{text}");
    }
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn every_metric_is_written_once() {
    let text = busy().render();
    for definition in names::ALL {
        let header = format!("# TYPE {} ", definition.family());
        let written = text.lines().filter(|line| line.starts_with(&header)).count();
        assert_eq!(written, 1, "{header}");
    }
    assert_eq!(text.lines().filter(|line| line.starts_with("# TYPE ")).count(), names::ALL.len());
}

#[test]
fn the_older_format_names_counters_by_their_series() {
    let text = busy().render_plain();
    assert!(text.contains("# TYPE eventflow_link_received_bytes_total counter\n"), "{text}");
    assert!(text.contains("# HELP eventflow_link_received_bytes_total Bytes read"), "{text}");
    assert!(text.contains("\neventflow_link_received_bytes_total 4096\n"), "{text}");
    assert!(text.contains("# TYPE eventflow_links gauge\n"), "{text}");
    assert!(!text.contains("# UNIT") && !text.contains("# EOF"), "{text}");
}

/// A reading while others write is never torn: what `+Inf` says is what `_count` says.
#[test]
fn buckets_and_count_agree_under_load() {
    let metrics = Metrics::new();
    std::thread::scope(|scope| {
        let meter = metrics.meter(ActorKind::Registry);
        scope.spawn(move || {
            for turn in 0..20_000 {
                meter.handled("Route", Duration::from_nanos(turn * 37));
            }
        });
        for _ in 0..50 {
            let text = metrics.render();
            let of = |start: &str| {
                let line = text.lines().find(|line| line.starts_with(start)).unwrap();
                line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
            };
            assert_eq!(
                of("eventflow_actor_handling_seconds_count{actor=\"registry\"}"),
                of("eventflow_actor_handling_seconds_bucket{le=\"+Inf\",actor=\"registry\"}"),
            );
        }
    });
    assert_eq!(metrics.snapshot().actor(ActorKind::Registry).unwrap().handling.count, 20_000);
}
