//! Promise: a spoke that knows one hub of a database gets and gives at all of them: each event reaches a subscriber and a group
//! once, whichever hub serves it; the events of a process are served by one; and when a hub ends, what it hadn't acknowledged
//! is published at another.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use eventflow::{
    event::Event,
    spoke::{Consume, Delivery, Publish, Since, Spoke, StartAt, Status, Subscription, Wait},
};
use sea_orm::ConnectionTrait;
use tokio::time::timeout;

use crate::support::{
    PATIENCE, TestHub, engine,
    process::{Home, Process},
    until,
};

/// Where two hubs live, and they.
async fn two_hubs() -> Option<[(Home, Process); 2]> {
    if engine::server().is_none() {
        eprintln!("skipped: SQLite has one hub");
        return None;
    }
    let one = Home::new();
    let first = one.start().await;
    let two = one.beside();
    let second = two.start().await;
    Some([(one, first), (two, second)])
}

async fn linked(spoke: &Spoke, links: usize) -> Status {
    let wanted = |status: &Status| status.links.iter().filter(|link| link.hub.is_some()).count() == links;
    timeout(PATIENCE, spoke.status_when(wanted)).await.expect("as many links in time")
}

/// Reads on until these events have come; each once.
async fn read(subscription: &mut Subscription, mut missing: HashSet<String>) {
    let reading = async {
        while !missing.is_empty() {
            match subscription.next().await.expect("it goes on") {
                Delivery::Event { event, .. } => {
                    assert!(missing.remove(event.id.as_str()), "{} came twice, or is a stranger", event.id);
                }
                other => panic!("expected an event: {other:?}"),
            }
        }
    };
    let ended = timeout(PATIENCE, reading).await;
    assert!(ended.is_ok(), "{} events are missing", missing.len());
}

/// How often each event was handled.
type Handled = Arc<Mutex<BTreeMap<String, usize>>>;

async fn consume(spoke: &Spoke, handled: &Handled) -> eventflow::spoke::Consumer {
    let handled = handled.clone();
    let handler = move |event: Event| {
        *handled.lock().unwrap().entry(event.id.to_string()).or_default() += 1;
        async { Ok::<(), std::io::Error>(()) }
    };
    spoke.consume(Consume::new("orders", "*").concurrency(4), handler).await.unwrap()
}

fn publish(n: usize) -> Publish {
    Publish::new("orders", "created", format!("order-{}", n % 20)).id(format!("e{n}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_knows_one_hub_gets_and_gives_at_both() {
    let Some([(one, _first), (two, _second)]) = two_hubs().await else { return };
    let (spoke, other) = (one.spoke().await, two.spoke().await);
    let links = linked(&spoke, 2).await.links;
    let hubs: Vec<_> = links.iter().map(|link| link.hub.as_deref().unwrap().to_owned()).collect();
    assert_eq!(hubs, [one.hub_id(), two.hub_id()]);
    linked(&other, 2).await;
    let mut subscription = spoke.subscribe("orders", "*").await.unwrap();
    assert_eq!(subscription.position().hubs().count(), 2);
    let handled = Handled::default();
    let consumers = [consume(&spoke, &handled).await, consume(&other, &handled).await];
    // Whoever publishes: the events of a process go to the same hub.
    for n in 0..100 {
        let publisher = if n % 2 == 0 { &spoke } else { &other };
        publisher.publish(publish(n)).await.unwrap();
    }
    read(&mut subscription, (0..100).map(|n| format!("e{n}")).collect()).await;
    until("all are handled", || async { handled.lock().unwrap().len() == 100 }).await;
    let ended = spoke.outcome("e99", PATIENCE).await.unwrap();
    assert_eq!(ended.state.to_string(), "success");
    assert!(handled.lock().unwrap().values().all(|times| *times == 1), "once each: {handled:?}");

    let rows = engine::open(&one.database()).await;
    let sql = "SELECT e.pid, p.v1_hub FROM event e JOIN event_published p ON p.event_id = e.id";
    let mut homes: BTreeMap<String, HashSet<String>> = BTreeMap::new();
    for row in rows.query_all_raw(engine::statement(&rows, sql, [])).await.unwrap() {
        let hub = row.try_get_by_index::<String>(1).unwrap();
        homes.entry(row.try_get_by_index(0).unwrap()).or_default().insert(hub);
    }
    rows.close().await.unwrap();
    assert_eq!(homes.len(), 20);
    assert!(homes.values().all(|hubs| hubs.len() == 1), "a process has one hub: {homes:?}");
    assert_eq!(homes.values().flatten().collect::<HashSet<_>>().len(), 2, "both hubs have their part");

    // A wait sees what comes at either hub.
    for pid in ["waited-1", "waited-2", "waited-3", "waited-4"] {
        let waiting = spoke.wait(Wait::new("parcels", pid).timeout(PATIENCE));
        let (seen, published) = tokio::join!(waiting, other.publish(Publish::new("parcels", "sent", pid)));
        assert!(published.is_ok());
        assert_eq!(seen.unwrap().pid.as_str(), pid);
    }
    for consumer in consumers {
        consumer.stop().await.unwrap();
    }
    assert!(spoke.close().await.is_clean() && other.close().await.is_clean());
}

/// Each hub has its part of a group: a change of it is done at all of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_is_looked_at_and_served_again_at_both() {
    let Some([(one, _first), (_two, _second)]) = two_hubs().await else { return };
    let spoke = one.spoke().await;
    linked(&spoke, 2).await;
    let billing = || Consume::new("orders", "*").group("billing");
    drop(spoke.claims(billing()).await.unwrap());
    for n in 0..20 {
        spoke.publish(publish(n)).await.unwrap();
    }
    let group = spoke.group("billing");
    let waits = async || group.backlog().await.unwrap().pending;
    until("all of it is counted", || async { waits().await == Some(20) }).await;
    assert_eq!(group.purge().await.unwrap(), 20);
    group.seek(StartAt::All).await.unwrap();
    let mut claims = spoke.claims(billing()).await.unwrap();
    let mut seen = HashSet::new();
    while seen.len() < 20 {
        let claim = timeout(PATIENCE, claims.next()).await.expect("all are served again").unwrap();
        assert!(seen.insert(claim.event().id.to_string()), "{} came twice", claim.event().id);
        claim.ack().await.unwrap();
    }
    claims.stop().await.unwrap();
    group.remove().await.unwrap();
    spoke.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_hub_is_killed_and_comes_back_and_nothing_that_was_acknowledged_is_missing() {
    let Some([(one, _first), (two, second)]) = two_hubs().await else { return };
    let spoke = one.spoke().await;
    linked(&spoke, 2).await;
    let mut subscription = spoke.subscribe_from("orders", "*", Since::All).await.unwrap();
    let handled = Handled::default();
    let consumer = consume(&spoke, &handled).await;
    let mut pending = Vec::new();
    for n in 0..1_000 {
        pending.push(spoke.publish_later(publish(n)).await.unwrap());
        if n == 500 {
            second.signal("KILL");
        }
    }
    for published in pending {
        published.await.expect("the other hub takes it");
    }
    second.kill().await;
    let status = spoke.status();
    assert!(status.hub.is_some() && status.links_lost == 1, "{status:?}");

    // What the killed hub had acknowledged it serves when it is back.
    let _again = two.start().await;
    linked(&spoke, 2).await;
    read(&mut subscription, (0..1_000).map(|n| format!("e{n}")).collect()).await;
    until("all are handled", || async { handled.lock().unwrap().len() == 1_000 }).await;
    consumer.stop().await.unwrap();
    assert!(spoke.close().await.is_clean());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_tells_its_links_which_others_live() {
    if engine::server().is_none() {
        eprintln!("skipped: SQLite has one hub");
        return;
    }
    let one = TestHub::start().await;
    let mut link = one.v1().await;
    let folder = tempfile::tempdir().unwrap();
    engine::note(folder.path(), &engine::url(one.folder.path()).unwrap());
    std::fs::create_dir_all(folder.path().join("data")).unwrap();
    std::fs::copy(one.data().join("key-phrase"), folder.path().join("data/key-phrase")).unwrap();
    let two = TestHub::on(folder, |_| {}).await;
    let id = two.handle.info().id.clone();
    let port = two.handle.info().address.port().to_string();
    let told = link.answer().await.expect("it is told");
    assert_eq!(told, ["online", &id, "127.0.0.1", &port]);

    // Each names both from then on, itself first.
    let ids = async |hub: &TestHub| {
        let mut link = hub.raw().await;
        link.send(&["hello", "1", "{}"]).await;
        let welcome = link.record().await.unwrap();
        let welcome: serde_json::Value = serde_json::from_str(&welcome[2]).unwrap();
        let hubs = welcome["hubs"].as_array().unwrap().iter();
        hubs.map(|hub| hub["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&two).await, [id.clone(), one.handle.info().id.clone()]);
    until("the one knows of the other", || async { ids(&one).await.len() == 2 }).await;

    // One that stops is named no more.
    two.stop().await;
    until("it is forgotten", || async { ids(&one).await == [one.handle.info().id.clone()] }).await;
    drop(link);
    one.stop().await;
}

/// A spoke that is told so keeps to the hubs that it knows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_discovery_a_spoke_keeps_to_its_own_hubs() {
    let Some([(one, _first), (two, _second)]) = two_hubs().await else { return };
    let mut config = one.spoke_config();
    config.discover = false;
    let (spoke, other) = (Spoke::connect(config).await.unwrap(), two.spoke().await);
    linked(&other, 2).await;
    spoke.publish(publish(1)).await.unwrap();
    assert_eq!(spoke.status().links.len(), 1);
    tokio::time::timeout(Duration::from_secs(10), spoke.close()).await.unwrap();
}
