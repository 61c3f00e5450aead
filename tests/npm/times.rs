//! Times: what npm leaves to the server's clock is read as the time that it was, and npm reads ours, whatever the
//! server's zone is.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use eventflow::spoke::{Publish, Schedule};

use crate::{scratch::until, stack::spoke::Spoke, world::World};

/// Milliseconds since 1970.
fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

fn is_now(ms: i64) -> bool {
    (now() - ms).abs() < 60_000
}

#[tokio::test]
async fn what_npm_wrote_is_logged_with_the_time_that_it_was() {
    let Some(world) = World::start().await else { return };
    let spoke = Spoke::connected(&world.npm).await;
    let ours = world.ours().await;
    let began = SystemTime::now() - Duration::from_secs(60);
    let id = spoke.persist_published(("orders", "created", "order-1"), "{}").await;

    let log = ours.log("orders", "order-1").collect(10).await.unwrap();
    assert_eq!(log.len(), 1);
    assert!(is_now(log[0].timestamp), "{} at {}", log[0].timestamp, now());
    let mut since = ours.log("orders", "order-1").from(began).to(SystemTime::now() + Duration::from_secs(60));
    assert_eq!(since.collect(10).await.unwrap(), log, "it is found by its time");
    let before = ours.log("orders", "order-1").to(began).collect(10).await.unwrap();
    assert!(before.is_empty(), "{before:?}");
    let mut after = ours.log("orders", "order-1").from(SystemTime::now() + Duration::from_secs(60));
    assert!(after.collect(10).await.unwrap().is_empty());

    let (event, trace) = ours.show(&id).await.unwrap();
    assert!(is_now(event.timestamp) && trace.published.is_some_and(is_now), "{trace:?}");
    // Each page begins behind the last event of the one before, by its time.
    for number in 0..5 {
        spoke.persist_published(("orders", "created", "order-1"), &format!("{{\"n\":{number}}}")).await;
    }
    let mut reader = ours.log("orders", "order-1").page_size(2);
    let mut pages = Vec::new();
    while let Some(page) = reader.next_page().await.unwrap() {
        pages.extend(page.into_iter().map(|event| event.id));
    }
    pages.sort();
    pages.dedup();
    assert_eq!(pages.len(), 6, "each once");
    spoke.close().await;
    ours.close().await;
    world.end().await;
}

#[tokio::test]
async fn what_we_write_is_what_npm_would_have_written() {
    let Some(world) = World::start().await else { return };
    let ours = world.ours().await;
    ours.publish(Publish::new("orders", "created", "order-1")).await.unwrap();
    let later = Publish::new("orders", "due", "order-2");
    ours.schedule(later, Schedule::after(Duration::from_secs(1))).await.unwrap();
    let database = &world.npm.database;
    // npm's sessions are in the server's zone, and so is what it leaves to the server.
    for (what, sql) in [
        ("an event", "select max(abs(timestampdiff(second, timestamp, now()))) from event"),
        ("a publication", "select max(abs(timestampdiff(second, published, now()))) from event_published"),
        (
            "its claim",
            "select max(abs(timestampdiff(second, consumed_hub, utc_timestamp()))) from event_published",
        ),
        ("a schedule", "select max(abs(timestampdiff(second, timestamp, now()))) from event_scheduled"),
        (
            "its time",
            "select max(abs(timestampdiff(second, scheduled, utc_timestamp()))) from event_scheduled",
        ),
        ("a hub", "select max(abs(timestampdiff(second, timestamp, now()))) from hub"),
        ("a certificate", "select max(abs(timestampdiff(second, created, now()))) from certificate"),
        ("its change", "select max(abs(timestampdiff(second, updated, now()))) from certificate"),
    ] {
        let apart: i64 = database.get(sql, &[]).await.unwrap_or_else(|| panic!("{what} is there"));
        assert!(apart < 60, "{what}: {apart} s apart");
    }
    // What runs is published when it runs.
    let ran = "select count(*) from event_scheduled where executed is not null";
    until("it runs", || async { database.get::<i64>(ran, &[]).await == Some(1) }).await;
    let apart = "select max(abs(timestampdiff(second, published, now())) \
                 + abs(timestampdiff(second, timestamp, now()))) from event_published p join event e on e.id = p.event_id";
    assert!(database.get::<i64>(apart, &[]).await < Some(60));
    let log = ours.log("orders", "order-2").collect(10).await.unwrap();
    assert!(is_now(log[0].timestamp), "{log:?}");
    ours.close().await;
    world.end().await;
}
