//! Promise: what the npm stack left unfinished before a hub of ours first served its database is left alone, and counted;
//! `eventflow adopt` has it dispatched, once.

use std::{collections::BTreeSet, path::Path, time::Duration};

use eventflow::{
    config::Keep,
    spoke::{Claims, Consume, Publish},
};
use sea_orm::ConnectionTrait;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{process::Command, time::timeout};

use crate::support::{PATIENCE, TestHub, engine, until};

/// The rows of a database that npm has served: made before any hub of ours has.
async fn served_by_npm() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data/eventflow.db");
    engine::store(&file).await.close().await;
    let db = engine::open(&file).await;
    // When it was published, and what else npm wrote of it.
    let events = [
        ("done", "2026-11-01 10:00:00", "success", "'2026-11-01 10:00:01'"),
        ("old-1", "2026-11-01 10:00:00", "success", "null"),
        ("old-2", "2026-11-01 10:00:00", "success", "null"),
        // An npm hub has taken it up, and nobody was there.
        ("left", "2026-11-02 10:00:00", "consumed_hub", "'2026-11-02 10:00:00'"),
        ("claimed", "2026-11-02 10:00:00", "consumed_spoke", "'2026-11-02 10:00:00'"),
        ("newer", "2026-11-20 10:00:00", "success", "null"),
        ("overdue", "2026-10-01 10:00:00", "success", "null"),
    ];
    for (id, published, column, value) in events {
        for sql in [
            format!(
                "insert into event (id, domain, pid, name, data) values ('{id}', 'orders', 'order-1', 'created', '{{}}')"
            ),
            format!(
                "insert into event_published (event_id, publisher, published, {column}) \
                 values ('{id}', 'NPM-1.EVENTFLOW-SPOKE', '{published}', {value})"
            ),
        ] {
            db.execute_unprepared(&sql).await.unwrap();
        }
    }
    let sql = "insert into event_scheduled (event_id, scheduled) values ('overdue', '2026-11-03 10:00:00')";
    db.execute_unprepared(sql).await.unwrap();
    db.close().await.unwrap();
    folder
}

/// What `eventflow adopt` prints.
async fn adopt(data: &Path, arguments: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_eventflow"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("EVENTFLOW_"))
    {
        command.env_remove(name);
    }
    let output = command.arg("adopt").args(arguments).arg("--data-folder").arg(data).output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The next events that the consumer gets, acked.
async fn next(claims: &mut Claims, count: usize) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for _ in 0..count {
        let claim = timeout(PATIENCE, claims.next()).await.expect("a claim in time").unwrap();
        assert!(ids.insert(claim.event().id.to_string()), "{:?} came twice", claim.event().id);
        claim.ack().await.unwrap();
    }
    ids
}

fn set(ids: &[&str]) -> BTreeSet<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

#[tokio::test]
async fn it_is_left_counted_and_dispatched_when_somebody_asks() {
    let hub = TestHub::on(served_by_npm().await, |config| {
        config.collect.interval = Duration::from_millis(50);
        config.collect.age = Duration::ZERO;
    })
    .await;
    let data = hub.data();
    let spoke = hub.spoke().await;
    let mut claims = spoke.claims(Consume::new("orders", "created").credit(16)).await.unwrap();
    // Some passes over what nobody has take nothing of it.
    let passes = |hub: &TestHub| hub.handle.metrics().hub.published;
    spoke.publish(Publish::new("orders", "created", "order-1").id("fresh")).await.unwrap();
    assert_eq!(next(&mut claims, 1).await, set(&["fresh"]));
    assert_eq!(passes(&hub), 1);

    let counted = adopt(&data, &["--dry-run"]).await;
    let expected = json!({ "orders": { "published": 4, "claimed": 1, "overdue": 1 } });
    assert_eq!(counted["domains"], expected);
    assert_eq!(counted["taken"], 0);
    let counted = adopt(&data, &["--dry-run", "--since", "2026-11-15"]).await;
    assert_eq!(counted["domains"], json!({ "orders": { "published": 1 } }));

    assert_eq!(adopt(&data, &["--since", "2026-11-15"]).await["taken"], 1);
    assert_eq!(next(&mut claims, 1).await, set(&["newer"]));
    assert_eq!(adopt(&data, &["--since", "all"]).await["taken"], 3);
    assert_eq!(next(&mut claims, 3).await, set(&["old-1", "old-2", "left"]));
    assert_eq!(adopt(&data, &["--since", "all", "--schedules"]).await["taken"], 1);
    assert_eq!(next(&mut claims, 1).await, set(&["overdue"]));
    let again = adopt(&data, &["--since", "all", "--schedules"]).await;
    assert_eq!((&again["taken"], &again["domains"]), (&json!(0), &json!({ "orders": { "claimed": 1 } })));

    claims.stop().await.unwrap();
    spoke.close().await;
    let folder = hub.stop().await;
    // After a restart nothing comes twice.
    let hub = TestHub::on(folder, |_| {}).await;
    assert_eq!(adopt(&hub.data(), &["--dry-run"]).await["domains"], json!({ "orders": { "claimed": 1 } }));
    hub.stop().await;
}

#[tokio::test]
async fn overdue_schedules_run_as_far_as_the_setting_says() {
    for (overdue, runs) in [(Keep::Forever, true), (Keep::For(Duration::ZERO), false)] {
        let hub = TestHub::on(served_by_npm().await, |config| {
            config.schedules.npm_overdue = overdue;
            config.schedules.poll = Duration::from_millis(50);
        })
        .await;
        let spoke = hub.spoke().await;
        let mut claims = spoke.claims(Consume::new("orders", "created")).await.unwrap();
        if runs {
            assert_eq!(next(&mut claims, 1).await, set(&["overdue"]));
        } else {
            // It is looked at every 50 ms: what was due after it has run meanwhile.
            let soon = eventflow::spoke::Schedule::after(Duration::from_millis(200));
            spoke.schedule(Publish::new("orders", "created", "order-1").id("soon"), soon).await.unwrap();
            assert_eq!(next(&mut claims, 1).await, set(&["soon"]));
        }
        let left = adopt(&hub.data(), &["--dry-run"]).await;
        assert_eq!(left["domains"]["orders"].get("overdue").is_some(), !runs, "{left}");
        until("one was run", || async { hub.handle.metrics().hub.schedules_executed == 1 }).await;
        claims.stop().await.unwrap();
        spoke.close().await;
        hub.stop().await;
    }
}
