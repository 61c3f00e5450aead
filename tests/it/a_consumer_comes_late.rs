//! Promise: an event that nobody takes isn't lost. `EVENTFLOW_TEST_LONG=1` makes the backlog 200,000 events.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use eventflow::{
    config::{Durability, HubConfig, Keep},
    spoke::{Claims, Consume, Delivery, Publish, Spoke},
};

use crate::support::{TestHub, until};

const KEPT_FOR: Duration = Duration::from_millis(30);

fn kept_shortly(config: &mut HubConfig) {
    config.orphan_keep = Keep::For(KEPT_FOR);
}

/// Publishes these ids in this order.
async fn publish(spoke: &Spoke, domain: &str, ids: impl IntoIterator<Item = String>) {
    let mut pending = Vec::new();
    for id in ids {
        let publish = Publish::new(domain.to_owned(), "created", "p").id(id);
        pending.push(spoke.publish_later(publish).await.unwrap());
    }
    for pending in pending {
        pending.await.unwrap();
    }
}

/// Acks the next so many claims; their ids.
async fn take(claims: &mut Claims, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..count {
        let claim = claims.next().await.expect("a claim");
        assert_eq!(claim.attempt(), 1);
        ids.push(claim.event().id.to_string());
        claim.ack().await.unwrap();
    }
    ids
}

fn ids(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{prefix}{n}")).collect()
}

async fn state(spoke: &Spoke, id: &str) -> String {
    spoke.show(id).await.unwrap().1.state
}

/// Until an event is older than orphans are kept.
async fn grown_old(spoke: &Spoke, id: &str) {
    let stored = u128::try_from(spoke.read(id).await.unwrap().timestamp).unwrap();
    until("the event is old", || async {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() > stored + KEPT_FOR.as_millis()
    })
    .await;
}

#[tokio::test]
async fn orphans_go_to_the_first_consumer_that_matches_oldest_first() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let early = ids("early", 5);
    publish(&spoke, "orders", early.clone()).await;
    publish(&spoke, "users", ids("user", 1)).await;
    assert_eq!(state(&spoke, "early0").await, "orphan");
    assert_eq!(hub.handle.metrics().hub.orphans, 6);

    let mut claims = spoke.claims(Consume::new("orders", "*").credit(1)).await.unwrap();
    publish(&spoke, "orders", ids("later", 2)).await;
    assert_eq!(take(&mut claims, 7).await, [early, ids("later", 2)].concat());
    assert_eq!(state(&spoke, "early0").await, "success");
    assert_eq!(state(&spoke, "user0").await, "orphan", "of another domain");

    // Another pair of patterns finds only what is left.
    let mut all = spoke.claims(Consume::new("*", "*")).await.unwrap();
    assert_eq!(take(&mut all, 1).await, ["user0"]);
    assert_eq!(hub.handle.metrics().hub.claims, 8);
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn orphans_that_are_too_old_stay_in_the_log_only() {
    let hub = TestHub::with(kept_shortly).await;
    let spoke = hub.spoke().await;
    publish(&spoke, "orders", ids("old", 2)).await;
    grown_old(&spoke, "old1").await;
    let mut claims = spoke.claims(Consume::new("orders", "*")).await.unwrap();
    publish(&spoke, "orders", ids("new", 2)).await;
    assert_eq!(take(&mut claims, 2).await, ids("new", 2));
    assert_eq!(state(&spoke, "old0").await, "orphan");
    assert_eq!(spoke.log("orders", "p").collect(10).await.unwrap().len(), 4);
    spoke.close().await;

    // Nor does a new start offer them.
    let hub = TestHub::on(hub.stop().await, kept_shortly).await;
    let spoke = hub.spoke().await;
    let mut claims = spoke.claims(Consume::new("orders", "*")).await.unwrap();
    publish(&spoke, "orders", ids("newer", 1)).await;
    assert_eq!(take(&mut claims, 1).await, ["newer0"]);
    spoke.close().await;

    // For ever means all of them, for a pair of patterns that is new.
    let hub = TestHub::on(hub.stop().await, |config| config.orphan_keep = Keep::Forever).await;
    let spoke = hub.spoke().await;
    let mut claims = spoke.claims(Consume::new(">", ">")).await.unwrap();
    assert_eq!(take(&mut claims, 2).await, ids("old", 2));
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn a_binding_waits_for_its_consumers_without_limit() {
    let hub = TestHub::with(kept_shortly).await;
    let spoke = hub.spoke().await;
    let mut claims = spoke.claims(Consume::new("orders", "*")).await.unwrap();
    publish(&spoke, "orders", ids("first", 1)).await;
    assert_eq!(take(&mut claims, 1).await, ["first0"]);
    claims.stop().await.unwrap();
    drop(claims);
    publish(&spoke, "orders", ids("while-stopped", 3)).await;
    assert_eq!(state(&spoke, "while-stopped0").await, "pending");
    spoke.close().await;

    let hub = TestHub::on(hub.stop().await, kept_shortly).await;
    let spoke = hub.spoke().await;
    publish(&spoke, "orders", ids("after-start", 3)).await;
    grown_old(&spoke, "after-start2").await;
    let mut claims = spoke.claims(Consume::new("orders", "*").credit(1)).await.unwrap();
    assert_eq!(take(&mut claims, 6).await, [ids("while-stopped", 3), ids("after-start", 3)].concat());
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn a_restart_between_event_and_binding_passes_nothing_over() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    publish(&spoke, "orders", ids("order", 3)).await;
    // The position up to which all is done moves past the orphans.
    let mut users = spoke.claims(Consume::new("users", "*")).await.unwrap();
    publish(&spoke, "users", ids("user", 3)).await;
    take(&mut users, 3).await;
    spoke.close().await;

    // The binding that wants them is made, but its consumer takes nothing before the next start.
    let hub = TestHub::on(hub.stop().await, |_| {}).await;
    let mut raw = hub.v1().await;
    raw.ask(&["consume", "1", "1", "", "orders", "*", r#"{"credit":1}"#]).await;
    assert_eq!(raw.event().await[5], "order0");
    drop(raw);
    // A link that ends before the drain counts, one that ends by it doesn't.
    let spoke = hub.spoke().await;
    let counted = || async { spoke.show("order0").await.unwrap().1.attempts.len() == 1 };
    until("the lost link is on record", counted).await;
    spoke.close().await;

    let hub = TestHub::on(hub.stop().await, |_| {}).await;
    let spoke = hub.spoke().await;
    let mut orders = spoke.claims(Consume::new("orders", "*")).await.unwrap();
    let first = orders.next().await.unwrap();
    assert_eq!((first.event().id.as_str(), first.attempt()), ("order0", 2), "the lost link counts as one");
    first.ack().await.unwrap();
    assert_eq!(take(&mut orders, 2).await, ["order1", "order2"]);
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn subscribers_take_nothing_from_consumers() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let mut seen = spoke.subscribe("orders", "*").await.unwrap();
    publish(&spoke, "orders", ids("e", 3)).await;
    for id in ids("e", 3) {
        let Some(Delivery::Event { event, .. }) = seen.next().await else { panic!("an event") };
        assert_eq!(event.id.as_str(), id);
    }
    assert_eq!(state(&spoke, "e0").await, "orphan");
    let mut claims = spoke.claims(Consume::new("orders", "*")).await.unwrap();
    assert_eq!(take(&mut claims, 3).await, ids("e", 3));
    spoke.close().await;
    hub.stop().await;
}

/// What the consumers of a backlog saw.
#[derive(Default)]
struct Seen {
    times: Mutex<HashMap<String, usize>>,
    count: AtomicUsize,
}

impl Seen {
    /// In steps, so that the patience is for each of them and not for all.
    async fn reach(&self, total: usize) {
        while self.count.load(Ordering::Relaxed) < total {
            let next = total.min(self.count.load(Ordering::Relaxed) + 1_000);
            until("the backlog shrinks", || async { self.count.load(Ordering::Relaxed) >= next }).await;
        }
    }
}

/// Consumers with room for one event, each of which must see rising numbers.
async fn consumers(spoke: &Spoke, domain: &str, name: &str, count: usize, seen: &Arc<Seen>) {
    for _ in 0..count {
        let mut claims = spoke.claims(Consume::new(domain, name).credit(1)).await.unwrap();
        let seen = seen.clone();
        tokio::spawn(async move {
            let mut last = 0;
            while let Some(claim) = claims.next().await {
                assert!(claim.seq() > last, "{} came after {last}", claim.seq());
                last = claim.seq();
                let id = claim.event().id.to_string();
                claim.ack().await.unwrap();
                *seen.times.lock().unwrap().entry(id).or_default() += 1;
                seen.count.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
}

/// More than a binding keeps in memory: what doesn't fit is read from the database, while more is published and
/// a binding that overlaps joins.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backlog_larger_than_memory_is_delivered_once_and_in_order() {
    let total = if std::env::var_os("EVENTFLOW_TEST_LONG").is_some() { 200_000 } else { 20_000 };
    let hub = TestHub::with(|config| config.store.durability = Durability::Relaxed).await;
    let spoke = hub.spoke().await;
    let publisher = hub.spoke().await;
    publish(&publisher, "orders", ids("backlog", total / 2)).await;
    let seen = Arc::new(Seen::default());
    consumers(&spoke, "orders", "*", 8, &seen).await;
    let more = tokio::spawn(async move {
        publish(&publisher, "orders", ids("more", total / 2)).await;
        publisher.close().await;
    });
    seen.reach(total / 4).await;
    let late = hub.spoke().await;
    consumers(&late, "*", "created", 8, &seen).await;
    more.await.unwrap();
    seen.reach(total).await;
    let times = seen.times.lock().unwrap().clone();
    assert_eq!(times.len(), total);
    assert!(times.values().all(|times| *times == 1));
    let metrics = hub.handle.metrics().hub;
    assert_eq!((metrics.claims, metrics.outcomes["success"]), (total as u64, total as u64));
    assert_eq!((metrics.pending, metrics.in_flight), (0, 0));
    assert!(late.close().await.is_clean() && spoke.close().await.is_clean());
    hub.stop().await;
}
