//! Promise: consumers of ours and npm spokes share the default group: each event has one claim, whoever makes it, and
//! an event that nobody of ours is ready for is theirs first.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::{Instant, timeout};

use crate::support::{
    PATIENCE, Raw, TestHub,
    npm::{Npm, taken},
};

const NPM: &str = "NPM-2.EVENTFLOW-SPOKE";

async fn consume(hub: &TestHub, credit: u32) -> Raw {
    let mut link = hub.v1().await;
    let options = format!(r#"{{"credit":{credit}}}"#);
    let answer = link.ask(&["consume", "1", "1", "", "orders", "*", &options]).await;
    assert_eq!(answer[..3], ["ok", "1", "position"]);
    link
}

async fn npm_link(hub: &TestHub) -> Raw {
    let mut link = hub.raw().await;
    link.send(&["subscribe", "orders", "*"]).await;
    taken(hub, "SubscribeNpm", 1).await;
    link
}

async fn publish(link: &mut Raw, id: &str) {
    let answer = link.ask(&["publish", "9", id, "orders", "created", "order-1", "", "{}"]).await;
    assert_eq!(answer[..3], ["ok", "9", "committed"], "{answer:?}");
}

/// A claim's token and event.
fn claim(record: &[String]) -> (String, String) {
    assert_eq!(record[0], "claim", "{record:?}");
    (record[2].clone(), record[5].clone())
}

async fn state(link: &mut Raw, id: &str) -> (String, Option<String>) {
    let answer = link.ask(&["show", "8", id]).await;
    assert_eq!(link.event().await[0], "item");
    let trace: serde_json::Value = serde_json::from_str(&answer[3]).unwrap();
    let consumer = trace["consumer"].as_str().map(str::to_owned);
    (trace["state"].as_str().unwrap().to_owned(), consumer)
}

/// A spoke of npm's claims each event that it hears of, though it only subscribes: what a consumer of ours is ready for
/// must be claimed before.
#[tokio::test]
async fn a_spoke_that_only_subscribes_takes_no_event_from_a_consumer() {
    const GIVE_UP: &str = r#"{"final":true}"#;
    let hub = TestHub::start().await;
    let npm = Npm::of(&hub).await;
    let mut consumer = consume(&hub, 8).await;
    let (mut publisher, mut peer) = (hub.v1().await, npm_link(&hub).await);
    let own = hub.bundle().identity().unwrap().uid().to_string();
    for (id, verdict, outcome) in [("e1", "ack", "success"), ("e2", "nack", "failed")] {
        publish(&mut publisher, id).await;
        assert_eq!(peer.record().await.unwrap()[2], id, "its subscriptions run");
        assert_eq!(npm.consumer(id).await.as_ref(), Some(&own), "claimed before anybody heard of it");
        assert!(!npm.claim(id, NPM).await);
        let (token, event) = claim(&consumer.event().await);
        assert_eq!(event, id);
        assert_eq!(
            consumer.ask(&[verdict, "2", &token, GIVE_UP][..3 + usize::from(verdict == "nack")]).await[0],
            "ok"
        );
        let ended =
            format!("select consumer from event_published where event_id = '{id}' and {outcome} is not null");
        assert_eq!(npm.get::<String>(&ended, &[]).await.as_ref(), Some(&own));
    }
    drop((consumer, publisher, peer));
    hub.stop().await;
}

#[tokio::test]
async fn a_race_between_a_consumer_and_an_npm_spoke_has_one_winner() {
    const EVENTS: usize = 120;
    let hub = TestHub::start().await;
    let npm = Npm::of(&hub).await;
    let mut consumer = consume(&hub, 3).await;
    let (mut publisher, mut peer) = (hub.v1().await, npm_link(&hub).await);
    let spoke = async {
        let mut won = Vec::new();
        for _ in 0..EVENTS {
            let id = peer.record().await.unwrap()[2].clone();
            if npm.claim(&id, NPM).await {
                npm.end(&id, "success").await;
                won.push(id);
            }
        }
        won
    };
    // All at once: more than the consumer has room for.
    let burst = (0..EVENTS).map(|n| {
        let req = n + 1;
        format!("publish\u{1f}{req}\u{1f}e{n}\u{1f}orders\u{1f}created\u{1f}order-1\u{1f}\u{1f}{{}}\u{1e}")
    });
    publisher.bytes(burst.collect::<String>().as_bytes()).await;
    let mut done = Vec::new();
    let working = async {
        loop {
            let (token, event) = claim(&consumer.event().await);
            assert_eq!(consumer.ask(&["ack", "2", &token]).await, ["ok", "2"]);
            done.push(event);
        }
    };
    let watching = async {
        let won = spoke.await;
        npm.until_rows("success is not null", EVENTS as i64).await;
        won
    };
    let won = tokio::select! {
        won = timeout(PATIENCE, watching) => won.unwrap(),
        () = working => unreachable!("it works until the others are done"),
    };
    println!("npm won {} of {EVENTS}", won.len());
    assert!(!won.is_empty() && !done.is_empty(), "both had a chance");
    let mut winners: BTreeMap<String, usize> = BTreeMap::new();
    for id in won.iter().chain(&done) {
        *winners.entry(id.clone()).or_default() += 1;
    }
    assert!(winners.values().all(|count| *count == 1), "{winners:?}");
    npm.until_rows(&format!("consumer = '{NPM}'"), won.len() as i64).await;
    npm.until_rows("failed is not null or consumed_spoke is null", 0).await;
    drop((consumer, publisher, peer));
    hub.stop().await;
}

#[tokio::test]
async fn what_no_consumer_was_ready_for_is_npm_spokes_first_and_ours_after_five_seconds() {
    let hub = TestHub::start().await;
    let npm = Npm::of(&hub).await;
    let mut consumer = consume(&hub, 1).await;
    let (mut publisher, mut peer) = (hub.v1().await, npm_link(&hub).await);
    publish(&mut publisher, "held").await;
    let (token, _) = claim(&consumer.event().await);
    let began = Instant::now();
    for id in ["theirs", "left"] {
        publish(&mut publisher, id).await;
    }
    for id in ["held", "theirs", "left"] {
        assert_eq!(peer.record().await.unwrap()[2], id);
    }
    assert!(npm.claim("theirs", NPM).await, "nobody of ours had room for it");
    assert_eq!(consumer.ask(&["ack", "2", &token]).await, ["ok", "2"]);
    let (token, event) = claim(&consumer.event().await);
    assert_eq!(event, "left", "nobody claimed it");
    let waited = began.elapsed();
    assert!(waited >= Duration::from_millis(4_900), "{waited:?}");
    assert!(!npm.claim("left", NPM).await);
    assert_eq!(consumer.ask(&["ack", "3", &token]).await, ["ok", "3"]);
    drop((consumer, publisher, peer));
    hub.stop().await;
}

#[tokio::test]
async fn what_an_npm_spoke_has_claimed_is_its_own() {
    let hub = TestHub::start().await;
    let npm = Npm::of(&hub).await;
    let mut consumer = consume(&hub, 8).await;
    let mut publisher = hub.raw().await;
    npm.publish("theirs", "orders", "created", "order-1").await;
    assert!(npm.claim("theirs", NPM).await);
    npm.publish("ours", "orders", "created", "order-1").await;
    for id in ["theirs", "ours"] {
        publisher.send(&["publish", "orders", id, "created", "order-1"]).await;
    }
    let (token, event) = claim(&consumer.event().await);
    assert_eq!(event, "ours", "what is claimed isn't handed out");
    assert_eq!(state(&mut consumer, "theirs").await, ("claimed".into(), Some(NPM.into())));
    npm.end("theirs", "failed").await;
    assert_eq!(state(&mut consumer, "theirs").await, ("dead".into(), Some(NPM.into())));

    // Without npm links nothing is claimed in the database, so that one can still be taken from its holder.
    npm.until_rows("event_id = 'ours' and consumed_spoke is null", 1).await;
    assert_eq!(npm.get::<i64>("select count(*) from v1_claim", &[]).await, Some(0));
    assert!(npm.claim("ours", NPM).await);
    let answer = consumer.ask(&["ack", "2", &token]).await;
    assert_eq!(answer[2], "E_EVENTFLOW_CLAIM_LOST");
    assert_eq!(state(&mut consumer, "ours").await, ("claimed".into(), Some(NPM.into())));
    npm.end("ours", "success").await;
    assert_eq!(state(&mut consumer, "ours").await, ("success".into(), Some(NPM.into())));
    drop((consumer, publisher));
    // Nor is it offered after a restart.
    let hub = TestHub::on(hub.stop().await, |_| {}).await;
    let mut consumer = consume(&hub, 8).await;
    publish(&mut consumer, "next").await;
    assert_eq!(claim(&consumer.event().await).1, "next");
    drop(consumer);
    hub.stop().await;
}

#[tokio::test]
async fn a_claim_of_ours_in_the_database_survives_its_consumer_and_its_hub() {
    let hub = TestHub::start().await;
    let npm = Npm::of(&hub).await;
    let consumer = consume(&hub, 8).await;
    let (mut publisher, mut peer) = (hub.v1().await, npm_link(&hub).await);
    publish(&mut publisher, "e1").await;
    assert_eq!(peer.record().await.unwrap()[2], "e1");
    drop(consumer);
    let mut next = consume(&hub, 8).await;
    let record = next.event().await;
    assert_eq!((&*record[5], &*record[3]), ("e1", "2"), "offered again, by the second attempt");
    assert!(!npm.claim("e1", NPM).await, "it never was free for npm spokes");
    drop((next, publisher, peer));
    let hub = TestHub::on(hub.stop().await, |_| {}).await;
    let mut consumer = consume(&hub, 8).await;
    let (token, event) = claim(&consumer.event().await);
    assert_eq!(event, "e1");
    assert_eq!(consumer.ask(&["ack", "2", &token]).await, ["ok", "2"]);
    npm.until_rows("success is not null", 1).await;
    drop(consumer);
    hub.stop().await;
}

#[tokio::test]
async fn a_subscriber_of_npm_gets_what_nobody_wanted_a_hundred_at_a_time() {
    const EVENTS: usize = 150;
    let hub = TestHub::start().await;
    let npm = Npm::of(&hub).await;
    let mut link = hub.v1().await;
    // It sees everything, so that nothing is kept for late subscribers; and it leaves a binding behind.
    link.ask(&["subscribe", "1", "1", "*", "*"]).await;
    link.ask(&["consume", "2", "2", "", "orders", "kept", r#"{"credit":1}"#]).await;
    link.ask(&["stop", "3", "2"]).await;
    for n in 0..EVENTS {
        for (name, id) in [("created", format!("e{n}")), ("kept", format!("kept{n}"))] {
            let answer = link.ask(&["publish", "9", &id, "orders", name, "p", "", "{}"]).await;
            assert_eq!(answer[2], "committed");
        }
    }
    assert!(npm.claim("e1", NPM).await);
    let mut peer = npm_link(&hub).await;
    let mut expected = (0..EVENTS).filter(|n| *n != 1).map(|n| format!("e{n}"));
    let first: Vec<String> = expected.by_ref().take(100).collect();
    for id in &first {
        assert_eq!(peer.record().await.unwrap(), ["publish", "orders", id, "created", "p"], "oldest first");
    }
    let answer = link.ask(&["publish", "9", "live", "orders", "created", "p", "", "{}"]).await;
    assert_eq!(answer[2], "committed");
    assert_eq!(peer.record().await.unwrap()[2], "live", "no more than a hundred before those are claimed");
    let began = Instant::now();
    for id in &first {
        assert!(npm.claim(id, NPM).await);
    }
    for id in expected {
        assert_eq!(peer.record().await.unwrap()[2], id);
    }
    assert!(began.elapsed() < Duration::from_secs(9), "it didn't wait for the pause: {:?}", began.elapsed());
    // It made no binding, and what a binding of ours wants was not for it.
    assert_eq!(npm.get::<i64>("select count(*) from v1_binding", &[]).await, Some(1));
    npm.until_rows("event_id like 'kept%' and consumed_spoke is null", EVENTS as i64).await;
    drop((link, peer));
    hub.stop().await;
}
