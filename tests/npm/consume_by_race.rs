//! Flow: consume by race. Consumers of both stacks share a domain: each event is run by one of them and has one outcome.
//! A spoke that only subscribes takes nothing from a consumer of ours that has room.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use eventflow::spoke::{Consume, Publish};

use crate::{
    scratch::until,
    stack::spoke::{Spoke, next},
    world::World,
};

/// Who ran what.
type Runs = Arc<Mutex<Vec<(String, String)>>>;

fn note(runs: &Runs, id: &str, who: &str) {
    runs.lock().unwrap().push((id.to_owned(), who.to_owned()));
}

async fn npm_consumer(world: &World, runs: &Runs) -> Spoke {
    let spoke = Spoke::connected(&world.npm).await;
    let (runs, id) = (Arc::clone(runs), spoke.id().to_owned());
    spoke
        .consume("orders", "*", move |event| {
            note(&runs, &event.id, &id);
            if event.name == "bad" { Err("it is bad".to_owned()) } else { Ok(()) }
        })
        .await;
    spoke
}

#[tokio::test]
async fn two_npm_consumers_share_the_events() {
    const EVENTS: usize = 60;
    let Some(world) = World::start().await else { return };
    let runs = Runs::default();
    let consumers = [npm_consumer(&world, &runs).await, npm_consumer(&world, &runs).await];
    world.taken("SubscribeNpm", 2).await;
    let publisher = Spoke::connected(&world.npm).await;
    for n in 0..EVENTS {
        let name = if n % 10 == 0 { "bad" } else { "good" };
        publisher.publish(("orders", name, "p1"), "{}").await;
    }
    let ended = "consumed_spoke is not null and (success is null) != (failed is null)";
    let database = &world.npm.database;
    until("all have an outcome", || async { database.published_where(ended).await == EVENTS as i64 }).await;
    assert_eq!(database.published_where("failed is not null").await, EVENTS as i64 / 10);
    assert_eq!(each_once(&runs), EVENTS);
    for (id, who) in &ran(&runs) {
        let consumer: Option<String> =
            database.get("select consumer from event_published where event_id = ?", &[id]).await;
        assert_eq!(consumer.as_ref(), Some(who));
    }
    for spoke in consumers {
        spoke.close().await;
    }
    publisher.close().await;
    world.end().await;
}

#[tokio::test]
async fn both_stacks_consume_one_domain_and_each_event_has_one_outcome() {
    const EVENTS: usize = 100;
    let Some(world) = World::start().await else { return };
    let runs = Runs::default();
    let theirs = npm_consumer(&world, &runs).await;
    world.taken("SubscribeNpm", 1).await;
    let ours = world.ours().await;
    let seen = Arc::clone(&runs);
    // Little room, so that npm's gets its share.
    let consumer = ours
        .consume(Consume::new("orders", "*").credit(2), move |event| {
            note(&seen, event.id.as_str(), "ours");
            async { Ok::<_, std::io::Error>(()) }
        })
        .await
        .unwrap();
    let publisher = Spoke::connected(&world.npm).await;
    let publishing = async {
        for _ in 0..EVENTS / 2 {
            publisher.publish(("orders", "good", "p1"), "{}").await;
        }
    };
    let publishing_ours = async {
        for _ in 0..EVENTS / 2 {
            ours.publish(Publish::new("orders", "good", "p1")).await.unwrap();
        }
    };
    tokio::join!(publishing, publishing_ours);
    let database = &world.npm.database;
    until("all have their outcome", || async {
        database.published_where("success is not null and failed is null").await == EVENTS as i64
    })
    .await;
    assert_eq!(each_once(&runs), EVENTS);
    let uid = world.hub.bundle().identity().unwrap().uid().to_string();
    let mut shares = BTreeMap::new();
    for (id, who) in &ran(&runs) {
        *shares.entry(who.clone()).or_insert(0) += 1;
        let consumer: Option<String> =
            database.get("select consumer from event_published where event_id = ?", &[id]).await;
        let expected = if who == "ours" { &uid } else { who };
        assert_eq!(consumer.as_ref(), Some(expected), "{id}");
    }
    println!("{shares:?}");
    assert_eq!(shares.len(), 2, "both had a chance: {shares:?}");
    consumer.stop().await.unwrap();
    theirs.close().await;
    publisher.close().await;
    ours.close().await;
    world.end().await;
}

#[tokio::test]
async fn a_spoke_that_only_subscribes_takes_nothing_from_a_consumer_of_ours() {
    const EVENTS: usize = 30;
    let Some(world) = World::start().await else { return };
    let runs = Runs::default();
    let subscriber = Spoke::connected(&world.npm).await;
    let mut heard = subscriber.subscribe("orders", "*").await;
    world.taken("SubscribeNpm", 1).await;
    let ours = world.ours().await;
    let seen = Arc::clone(&runs);
    let consumer = ours
        .consume(Consume::new("orders", "*").credit(64), move |event| {
            note(&seen, event.id.as_str(), "ours");
            async { Ok::<_, std::io::Error>(()) }
        })
        .await
        .unwrap();
    let publisher = Spoke::connected(&world.npm).await;
    for _ in 0..EVENTS {
        publisher.publish(("orders", "created", "p1"), "{}").await;
    }
    for _ in 0..EVENTS {
        next(&mut heard).await;
    }
    let database = &world.npm.database;
    until("all are ours", || async {
        database.published_where("success is not null").await == EVENTS as i64
    })
    .await;
    assert_eq!(each_once(&runs), EVENTS);
    let by_npm = format!("consumer = '{}'", subscriber.id());
    assert_eq!(database.published_where(&by_npm).await, 0);
    consumer.stop().await.unwrap();
    for spoke in [subscriber, publisher] {
        spoke.close().await;
    }
    ours.close().await;
    world.end().await;
}

fn ran(runs: &Runs) -> Vec<(String, String)> {
    runs.lock().unwrap().clone()
}

/// How many events were run; each by one consumer.
fn each_once(runs: &Runs) -> usize {
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for (id, _) in &ran(runs) {
        *times.entry(id.clone()).or_default() += 1;
    }
    assert!(times.values().all(|times| *times == 1), "{times:?}");
    times.len()
}

/// What the hub does when its consumer has no room is npm's after five seconds at the latest: nothing is held back.
#[tokio::test]
async fn what_our_consumer_has_no_room_for_is_npms_at_once() {
    let Some(world) = World::start().await else { return };
    let ours = world.ours().await;
    let mut claims = ours.claims(Consume::new("orders", "*").credit(1)).await.unwrap();
    let publisher = Spoke::connected(&world.npm).await;
    publisher.publish(("orders", "good", "held"), "{}").await;
    let held = claims.next().await.unwrap();
    let runs = Runs::default();
    let theirs = npm_consumer(&world, &runs).await;
    world.taken("SubscribeNpm", 1).await;
    let began = tokio::time::Instant::now();
    let id = publisher.publish(("orders", "good", "free"), "{}").await;
    let done = format!("event_id = '{id}' and success is not null and consumer = '{}'", theirs.id());
    until("npm has it", || async { world.npm.database.published_where(&done).await == 1 }).await;
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    held.ack().await.unwrap();
    for spoke in [theirs, publisher] {
        spoke.close().await;
    }
    ours.close().await;
    world.end().await;
}
