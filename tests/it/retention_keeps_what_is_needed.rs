//! Promise: what was kept long enough after its end goes, and nothing else; a gap says exactly what went; a crash leaves
//! nothing half-removed.

use std::time::Duration;

use eventflow::{
    config::{DomainPolicy, HubConfig, Keep},
    event::Pattern,
    spoke::{Consume, GroupChange, Publish, Spoke},
};
use sea_orm::{ConnectionTrait, DatabaseConnection};
use serde_json::Value;

use crate::support::{TestHub, admin::Admin, engine, npm::Npm, process::Home, until};

const AT_ONCE: Keep = Keep::For(Duration::ZERO);

/// Of `short.>` everything goes as soon as it has ended, of all others nothing.
fn short_lived(config: &mut HubConfig) {
    config.retention.interval = Duration::from_millis(20);
    let mut short = DomainPolicy::new(Pattern::parse("short.>").unwrap());
    short.keep_success = Some(AT_ONCE);
    short.keep_dead = Some(AT_ONCE);
    config.domains = vec![short];
}

fn event(domain: &str, id: &str) -> Publish {
    Publish::new(domain.to_owned(), "created", "p").id(id.to_owned())
}

/// Acks the next so many claims of these domains.
async fn work(spoke: &Spoke, domain: &str, count: usize) {
    let mut claims = spoke.claims(Consume::new(domain, "*")).await.unwrap();
    for _ in 0..count {
        claims.next().await.unwrap().ack().await.unwrap();
    }
    claims.stop().await.unwrap();
}

async fn is_there(spoke: &Spoke, id: &str) -> bool {
    spoke.read(id).await.is_ok()
}

async fn until_gone(spoke: &Spoke, id: &str) {
    until("the event is gone", || async { !is_there(spoke, id).await }).await;
}

/// Passes that ended after now: two of them began after it.
async fn two_passes(hub: &TestHub) {
    let passes = || async {
        hub.handle.actors().await.actors["keeper"].state.as_ref().unwrap()["passes"].as_u64().unwrap()
    };
    let now = passes().await;
    until("two passes", || async { passes().await > now + 1 }).await;
}

#[tokio::test]
async fn what_has_ended_goes_and_what_somebody_needs_stays() {
    let hub = TestHub::with(short_lived).await;
    let spoke = hub.spoke().await;
    for id in ["a", "b", "c"] {
        spoke.publish(event("short.a", id)).await.unwrap();
    }
    spoke.publish(event("long.a", "elsewhere")).await.unwrap();
    spoke.publish(event("short.orphans", "orphan")).await.unwrap();
    spoke.persist(event("short.stored", "stored")).await.unwrap();
    work(&spoke, "long.a", 1).await;
    work(&spoke, "short.a", 3).await;
    for id in ["a", "b", "c"] {
        until_gone(&spoke, id).await;
    }
    // A consumer of it may come: its binding is there.
    spoke.publish(event("short.a", "pending")).await.unwrap();
    two_passes(&hub).await;
    for id in ["elsewhere", "orphan", "stored", "pending"] {
        assert!(is_there(&spoke, id).await, "{id}");
    }
    let metrics = hub.handle.metrics().hub;
    assert_eq!((metrics.removed["success"], metrics.deleted), (3, 0));
    assert!(metrics.retention_pass > 0);
    assert!(spoke.read("a").await.unwrap_err().code().contains("EVENT_NOT_FOUND"));

    let db = Npm::of(&hub).await;
    let gap = "SELECT concat(count(*), ' ', sum(events), ' ', min(domain)) FROM v1_removed";
    assert!(db.get::<String>(gap, &[]).await.unwrap().ends_with(" 3 short.a"));
    let line = "SELECT count(*) FROM log WHERE message LIKE 'retention:%success)%'";
    until("the log tells", || async { db.get::<i64>(line, &[]).await > Some(0) }).await;
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn an_event_stays_while_one_that_answers_it_stays() {
    let hub = TestHub::with(short_lived).await;
    let spoke = hub.spoke().await;
    spoke.publish(event("short.a", "question")).await.unwrap();
    spoke.publish(event("long.a", "answer").rid("question")).await.unwrap();
    spoke.publish(event("short.a", "alone")).await.unwrap();
    work(&spoke, "short.a", 2).await;
    work(&spoke, "long.a", 1).await;
    until_gone(&spoke, "alone").await;
    two_passes(&hub).await;
    assert_eq!(spoke.read("answer").await.unwrap().rid.as_deref(), Some("question"));
    assert!(is_there(&spoke, "question").await);
    let (status, outlook) = Admin::of(&hub).json("GET", "/retention", Value::Null).await;
    assert_eq!(status, 200);
    assert_eq!(outlook["policies"][0]["answered"], 1, "{outlook}");
    spoke.delete("answer").await.unwrap();
    until_gone(&spoke, "question").await;
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn a_named_group_that_wants_an_event_keeps_it() {
    let hub = TestHub::with(short_lived).await;
    let (spoke, db) = (hub.spoke().await, Npm::of(&hub).await);
    spoke.group("billing").set(GroupChange::new().max_attempts(3)).await.unwrap();
    db.run(
        "INSERT INTO v1_binding (grp, domain, name, start_seq) VALUES ('billing', 'short.a', '*', 1)",
        &[],
    )
    .await;
    for id in ["wanted", "other"] {
        spoke.publish(event(if id == "wanted" { "short.a" } else { "short.b" }, id)).await.unwrap();
    }
    work(&spoke, "short.>", 2).await;
    until_gone(&spoke, "other").await;
    two_passes(&hub).await;
    assert!(is_there(&spoke, "wanted").await);
    let end = "INSERT INTO v1_outcome (event_id, grp, round, hub, seq, outcome, consumer, ended) \
               VALUES ('wanted', 'billing', 1, '', 1, 'success', '', '2026-01-01 00:00:00.000')";
    db.run(end, &[]).await;
    until_gone(&spoke, "wanted").await;
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn an_operator_sees_what_would_go() {
    let hub = TestHub::with(|config| {
        short_lived(config);
        config.retention.interval = Duration::from_secs(3_600);
        config.keep.expire_after = AT_ONCE;
    })
    .await;
    let spoke = hub.spoke().await;
    for id in ["a", "b"] {
        spoke.publish(event("short.a", id)).await.unwrap();
    }
    spoke.publish(event("long.a", "orphan")).await.unwrap();
    work(&spoke, "short.a", 2).await;
    spoke.publish(event("short.a", "waits")).await.unwrap();
    let (status, outlook) = Admin::of(&hub).json("GET", "/retention", Value::Null).await;
    assert_eq!((status, &outlook["complete"]), (200, &true.into()));
    let [short, others] = [&outlook["policies"][0], &outlook["policies"][1]];
    assert_eq!((&short["pattern"], &short["settings"]["keep_success"]), (&"short.>".into(), &"0s".into()));
    assert_eq!(
        (&short["goes"]["success"], &short["waits"], &short["expires"]),
        (&2.into(), &1.into(), &0.into())
    );
    assert_eq!((&others["pattern"], &others["expires"]), (&"*".into(), &1.into()), "{outlook}");
    assert!(is_there(&spoke, "a").await, "a look changes nothing");
    spoke.close().await;
    hub.stop().await;
}

async fn open(home: &Home) -> DatabaseConnection {
    engine::open(&home.database()).await
}

async fn number(db: &DatabaseConnection, sql: &str) -> i64 {
    let row = db.query_one_raw(engine::statement(db, sql, [])).await.unwrap().unwrap();
    row.try_get_by_index::<Option<i64>>(0).unwrap().unwrap_or_default()
}

#[tokio::test]
async fn a_crash_in_the_midst_leaves_nothing_half_removed() {
    if engine::is_only_for_sqlite("rows that it inserts are written in SQLite's words") {
        return;
    }
    const EVENTS: i64 = 4_000;
    let home = Home::new();
    home.start().await.kill().await;
    let db = open(&home).await;
    for sql in [
        format!(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {EVENTS}) \
             INSERT INTO event (id, timestamp, domain, pid, name, data) \
             SELECT 'e' || i, strftime('%Y-%m-%d %H:%M:%f', 1700000000 + i, 'unixepoch'), 'd' || (i % 3), 'p', 'n', '{{}}' FROM n"
        ),
        "INSERT INTO event_published (event_id, published, publisher, success, v1_hub, seq) \
         SELECT id, timestamp, 'P', timestamp, (SELECT id FROM hub), 1700000000000000 + rowid FROM event"
            .to_owned(),
        "INSERT INTO event_eid (event_id, eid) SELECT id, 'entity' FROM event".to_owned(),
        "INSERT INTO v1_attempt (event_id, grp, round, number, consumer, reason, error) \
         SELECT id, '', 1, 1, 'C', 'nack', '' FROM event"
            .to_owned(),
    ] {
        db.execute_unprepared(&sql).await.unwrap();
    }
    db.close().await.unwrap();
    let flags = ["--keep-success=1h", "--retention-interval=10ms", "--retention-batch=37"];
    let mut left = EVENTS;
    for round in 0..4 {
        let mut hub = home.spawn(&[], &flags);
        hub.ready().await;
        let went = || async {
            home.metric("eventflow_events_removed_total{stood=\"success\"}").await.unwrap_or(0.0)
        };
        until("some went", || async { went().await > f64::from(40 * (round + 1)) }).await;
        hub.kill().await;
        let db = open(&home).await;
        let events = number(&db, "SELECT count(*) FROM event").await;
        assert!(events < left && (events > 0 || round == 3), "{events} of {left} are left");
        left = events;
        for table in ["event_published", "event_eid", "v1_attempt"] {
            assert_eq!(number(&db, &format!("SELECT count(*) FROM {table}")).await, events, "{table}");
        }
        assert_eq!(number(&db, "SELECT sum(events) FROM v1_removed").await, EVENTS - events);
        // Each that is left stands outside of the gaps, or between two others that are gone: they were removed oldest first.
        let within = "SELECT count(*) FROM event e JOIN event_published p ON p.event_id = e.id JOIN v1_removed r \
                      ON r.domain = e.domain AND p.seq BETWEEN r.first_seq AND r.last_seq";
        assert_eq!(number(&db, within).await, 0);
        db.close().await.unwrap();
    }
}
