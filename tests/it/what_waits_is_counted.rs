//! Promise: the number of events that wait for a consumer is true, wherever they wait: with no consumer there, beyond what
//! is kept in memory, and after a restart. Metrics, `GET /status` and `GET /actors` tell the same.

use eventflow::{
    config::Durability,
    spoke::{Claims, Consume, Publish, Spoke},
};
use serde_json::Value;
use tokio::time::timeout;

use crate::support::{PATIENCE, TestHub, http::get, until};

async fn publish(spoke: &Spoke, ids: &[&str]) {
    for id in ids {
        spoke.publish(Publish::new("orders", "created", "p").id((*id).to_owned())).await.unwrap();
    }
}

async fn consume(spoke: &Spoke, credit: u32) -> Claims {
    spoke.claims(Consume::new("orders", "*").credit(credit)).await.unwrap()
}

/// Takes so many and acks them.
async fn take(claims: &mut Claims, count: usize) {
    for _ in 0..count {
        timeout(PATIENCE, claims.next()).await.expect("an event in time").unwrap().ack().await.unwrap();
    }
}

/// What each of them tells.
async fn told(hub: &TestHub) -> [Option<u64>; 3] {
    let json = async |path| serde_json::from_str::<Value>(&get(hub, path).await.body).unwrap();
    let metrics = get(hub, "/metrics").await.body;
    let gauge = metrics.lines().find_map(|line| line.strip_prefix("eventflow_events_pending "));
    let actors = json("/actors").await;
    let deliveries = &actors["actors"]["deliveries"]["state"];
    [
        gauge.and_then(|number| number.parse().ok()),
        json("/status").await["pending"].as_u64(),
        deliveries["pending"].as_u64(),
    ]
}

async fn all_tell(hub: &TestHub, count: u64) {
    until("everybody tells the same", || async { told(hub).await == [Some(count); 3] }).await;
}

#[tokio::test]
async fn what_waits_for_a_consumer_that_left_is_counted_over_a_restart_to_its_end() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    all_tell(&hub, 0).await;
    publish(&spoke, &["old"]).await;
    all_tell(&hub, 0).await;
    let mut claims = consume(&spoke, 1).await;
    take(&mut claims, 1).await;
    claims.stop().await.unwrap();
    drop(claims);
    publish(&spoke, &["e1", "e2", "e3"]).await;
    all_tell(&hub, 3).await;
    spoke.close().await;

    let hub = TestHub::on(hub.stop().await, |_| {}).await;
    let spoke = hub.spoke().await;
    all_tell(&hub, 3).await;
    publish(&spoke, &["e4", "e5"]).await;
    spoke.delete("e2").await.unwrap();
    spoke.delete("old").await.unwrap();
    all_tell(&hub, 4).await;
    let mut claims = consume(&spoke, 1).await;
    let held = timeout(PATIENCE, claims.next()).await.unwrap().unwrap();
    all_tell(&hub, 3).await;
    drop(claims);
    held.ack().await.unwrap();
    all_tell(&hub, 3).await;
    let mut claims = consume(&spoke, 1).await;
    take(&mut claims, 3).await;
    all_tell(&hub, 0).await;
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn a_binding_that_comes_counts_what_it_finds_once_with_all_others() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    publish(&spoke, &["e1", "e2", "e3", "e4"]).await;
    let mut held = Vec::new();
    for pattern in ["orders", "*", ">"] {
        let mut claims = spoke.claims(Consume::new(pattern, "*").credit(1)).await.unwrap();
        held.push(timeout(PATIENCE, claims.next()).await.unwrap().unwrap());
        // Each holds one; what is left waits for all of them.
        all_tell(&hub, 4 - held.len() as u64).await;
        claims.stop().await.unwrap();
    }
    assert_eq!(hub.handle.metrics().hub.in_flight, 3);
    drop(held);
    spoke.close().await;
    all_tell(&hub, 4).await;
    hub.stop().await;
}

/// More than a window, and more than a page of the count.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backlog_that_memory_cannot_hold_is_counted_while_more_comes() {
    let hub = TestHub::with(|config| config.store.durability = Durability::Relaxed).await;
    let spoke = hub.spoke().await;
    let claims = consume(&spoke, 1).await;
    let mut answers = Vec::new();
    for _ in 0..6_000 {
        answers.push(spoke.publish_later(Publish::new("orders", "created", "p")).await.unwrap());
    }
    for answer in answers {
        answer.await.unwrap();
    }
    all_tell(&hub, 5_999).await;
    drop(claims);
    spoke.close().await;
    all_tell(&hub, 6_000).await;

    let hub = TestHub::on(hub.stop().await, |_| {}).await;
    let spoke = hub.spoke().await;
    for _ in 0..20 {
        spoke.publish(Publish::new("orders", "created", "p")).await.unwrap();
    }
    all_tell(&hub, 6_020).await;
    spoke.close().await;
    hub.stop().await;
}
