//! Promise: a schedule is due by the clock of the database, wherever that stands; how far it is from the hub's is shown.
//!
//! On PostgreSQL, where a database can be told to show another time.

use std::time::Duration;

use eventflow::spoke::{Delivery, Publish, Recurrence, Schedule};
use sea_orm::{ConnectionTrait, Database};
use tokio::time::{Instant, timeout};

use crate::support::{PATIENCE, TestHub, engine, until};

const HOUR: i64 = 3_600_000;

/// A hub whose database's clock is so many milliseconds ahead; none, and it is said: there is no such server.
async fn hub_with_clock(ahead: i64) -> Option<TestHub> {
    let Some(server) = std::env::var("EVENTFLOW_TEST_POSTGRES_URL").ok().filter(|url| !url.is_empty()) else {
        eprintln!("skipped: EVENTFLOW_TEST_POSTGRES_URL isn't set");
        return None;
    };
    let url = engine::create(server);
    let db = Database::connect(&url).await.unwrap();
    let name = url.rsplit_once('/').unwrap().1;
    // What is named first is found first.
    for sql in [
        "CREATE SCHEMA elsewhen".to_owned(),
        format!(
            "CREATE FUNCTION elsewhen.statement_timestamp() RETURNS timestamptz LANGUAGE sql AS \
             $$ SELECT pg_catalog.statement_timestamp() + interval '{ahead} milliseconds' $$"
        ),
        format!("ALTER DATABASE {name} SET search_path = public, elsewhen, pg_catalog"),
    ] {
        db.execute_unprepared(&sql).await.unwrap();
    }
    db.close().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    engine::note(folder.path(), &url);
    let hub = TestHub::on(folder, |_| {}).await;
    until("the hub knows how far it is", || async { (skew(&hub) - ahead).abs() < 1_000 }).await;
    Some(hub)
}

fn skew(hub: &TestHub) -> i64 {
    hub.handle.metrics().hub.clock_skew_ms
}

fn now() -> i64 {
    chrono::Utc::now().timestamp_millis()
}

fn alarm(id: &str) -> Publish {
    Publish::new("alarms", "rang", "bell").id(id.to_owned())
}

#[tokio::test]
async fn what_is_due_by_a_clock_that_is_ahead_runs_and_nothing_earlier() {
    let Some(hub) = hub_with_clock(HOUR).await else { return };
    let spoke = hub.spoke().await;
    let mut rings = spoke.subscribe("alarms", "*").await.unwrap();
    let began = Instant::now();
    // In an hour and a second by ours: in a second by the database's.
    let due = now() + HOUR + 1_000;
    spoke.schedule(alarm("soon"), Schedule::at(due)).await.unwrap();
    spoke.schedule(alarm("later"), Schedule::at(due + 60_000)).await.unwrap();
    let rang = timeout(PATIENCE, rings.next()).await.unwrap().unwrap();
    assert!(matches!(&rang, Delivery::Event { event, .. } if &*event.id == "soon"), "{rang:?}");
    assert!(began.elapsed() >= Duration::from_millis(990), "early: {:?}", began.elapsed());
    assert_eq!(spoke.show("later").await.unwrap().1.state, "scheduled");
    // A rule counts by that clock too.
    spoke.recur(Recurrence::new("tick", "@every 1s", "alarms", "ticked")).await.unwrap();
    let next = spoke.recurring("tick", 1).await.unwrap().shown.state.next.unwrap();
    assert!((next - now() - HOUR).abs() < 10_000, "{}", next - now());
    timeout(PATIENCE, rings.next()).await.unwrap().unwrap();
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn what_is_due_by_ours_waits_for_a_clock_that_is_behind() {
    let Some(hub) = hub_with_clock(-HOUR).await else { return };
    let spoke = hub.spoke().await;
    let due = now() + 300;
    spoke.schedule(alarm("soon"), Schedule::at(due)).await.unwrap();
    until("ours has passed it by a second", || async { now() > due + 1_000 }).await;
    assert_eq!(spoke.show("soon").await.unwrap().1.state, "scheduled");
    assert!((skew(&hub) + HOUR).abs() < 1_000, "{}", skew(&hub));
    spoke.close().await;
    hub.stop().await;
}
