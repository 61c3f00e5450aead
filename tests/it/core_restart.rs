//! Promise: a fault inside the core costs nothing that was acked. The core restarts from the database, clients come back
//! by themselves; one that fails again and again ends the hub.
//!
//! The load is 2,000 publishes per second, with `EVENTFLOW_TEST_LONG=1` 5,000.

use std::time::Duration;

use eventflow::{
    event::code,
    hub::HubError,
    metrics::{ActorKind, Readiness},
    spoke::SpokeConfig,
};
use tokio::time::timeout;

use crate::support::{
    PATIENCE, TestHub,
    load::{self, Load},
    until,
};

const CORE: [ActorKind; 3] = [ActorKind::Journal, ActorKind::Registry, ActorKind::Deliveries];

/// A client that is quick to come back.
async fn spoke(hub: &TestHub) -> eventflow::spoke::Spoke {
    let mut config = SpokeConfig::from_bundle(hub.bundle());
    config.backoff = (Duration::from_millis(10), Duration::from_millis(200));
    config.publish_deadline = 4 * PATIENCE;
    eventflow::spoke::Spoke::connect(config).await.unwrap()
}

fn restarts(hub: &TestHub) -> Vec<u64> {
    let metrics = hub.handle.metrics();
    CORE.iter().map(|kind| metrics.actor(*kind).unwrap().restarts).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_of_any_part_of_the_core_loses_nothing_that_was_acked() {
    let hub = TestHub::start().await;
    let publishers = vec![spoke(&hub).await, spoke(&hub).await];
    let workers = vec![spoke(&hub).await, spoke(&hub).await];
    let load = Load::start(publishers, workers, load::rate()).await;
    for (at, kind) in CORE.into_iter().enumerate() {
        load.acks(500).await;
        let cuts = hub.handle.metrics().hub.cuts["restart"];
        hub.handle.inject_panic(kind);
        until("the restart is counted", || async { restarts(&hub)[at] == 1 }).await;
        until("the links are cut for it", || async { hub.handle.metrics().hub.cuts["restart"] >= cuts + 4 })
            .await;
        let mut readiness = hub.handle.readiness();
        let ready = readiness.wait_for(Readiness::is_ready);
        timeout(PATIENCE, ready).await.expect("the hub is ready again").unwrap();
    }
    load.acks(500).await;
    let alive = |kind: &ActorKind| hub.handle.metrics().actor(*kind).unwrap().alive;
    until("the old ones are gone", || async { CORE.iter().map(alive).collect::<Vec<_>>() == [1, 1, 1] })
        .await;
    let tally = load.finish().await;
    println!("3 panics\n{tally}");
    assert_eq!(tally.acked.len(), tally.published, "each publish was acked in the end");
    assert_eq!(restarts(&hub), [1, 1, 1]);
    let (database, id) = (hub.database(), hub.handle.info().id.clone());
    let _folder = hub.stop().await;
    tally.check(database, &id).await;
}

#[tokio::test]
async fn links_are_told_that_the_core_restarts() {
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    hub.handle.inject_panic(ActorKind::Registry);
    let bye = link.answer().await.unwrap();
    assert_eq!((&*bye[0], &*bye[1]), ("bye", code::HUB_RESTART), "{bye:?}");
    assert!(!bye[3].is_empty(), "it may come back: {bye:?}");
    assert!(link.record().await.is_none());
    let mut link = hub.v1().await;
    link.send(&["ping", "1"]).await;
    assert_eq!(link.answer().await.unwrap(), ["pong", "1"]);
    drop(link);
    hub.stop().await;
}

#[tokio::test]
async fn the_fourth_failure_within_a_minute_ends_the_hub() {
    let mut hub = TestHub::start().await;
    let mut readiness = hub.handle.readiness();
    for failure in 1..=4 {
        let ready = readiness.wait_for(Readiness::is_ready);
        timeout(PATIENCE, ready).await.expect("the hub is ready again").unwrap();
        hub.handle.inject_panic(ActorKind::Deliveries);
        until("it is counted", || async { restarts(&hub)[2] == failure }).await;
    }
    let ended = timeout(PATIENCE, hub.handle.end()).await.expect("the hub ends by itself");
    let error = ended.unwrap_err();
    println!("{error}");
    assert_eq!(error.code(), code::INTERNAL);
    let HubError::Failed(cause) = &error else { panic!("{error:?}") };
    assert!(matches!(**cause, HubError::GaveUp { part: "deliveries", failures: 4, .. }), "{cause:?}");

    // It has let go of everything: the next one starts, on the same folder.
    let address = hub.handle.info().address;
    assert!(hub.handle.shutdown().await.is_err(), "what ended it is told again");
    let next = TestHub::on(hub.folder, |config| config.hub.internal_port = address.port()).await;
    next.spoke().await.close().await;
    next.stop().await;
}
