//! Promise: a claim of which nothing is heard ends, and the event goes to somebody else; one that is extended doesn't.

use tokio::time::{Duration, Instant};

use crate::support::{TestHub, claims::Claimed};

#[tokio::test]
async fn what_a_hanging_consumer_holds_goes_to_another_and_it_gets_no_more() {
    let hub = TestHub::start().await;
    let (mut hanging, mut good) = (hub.v1().await, hub.v1().await);
    hanging.set("", r#"{"delay":10,"max_delay":10}"#).await;
    hanging.consume("", "orders", r#"{"credit":3,"lease":1000}"#).await;
    let began = Instant::now();
    for id in ["e1", "e2", "e3"] {
        hanging.publish("orders", id).await;
    }
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(hanging.claim().await);
    }
    good.consume("", "orders", r#"{"credit":1}"#).await;
    let mut again = Vec::new();
    for _ in 0..3 {
        let claim: Claimed = good.claim().await;
        assert_eq!(good.ask(&["ack", "9", &claim.token]).await, ["ok", "9"]);
        again.push((claim.id, claim.attempt));
    }
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
    again.sort();
    assert_eq!(again, [("e1".to_owned(), 2), ("e2".to_owned(), 2), ("e3".to_owned(), 2)]);

    // It holds three still, for all that the hub knows. Each word of one makes room for another.
    good.publish("orders", "e4").await;
    assert_eq!(good.claim().await.id, "e4");
    good.publish("orders", "e5").await;
    assert_eq!(hanging.ask(&["ack", "9", &held[0].token]).await[0], "err");
    assert_eq!(hanging.claim().await.id, "e5");
    drop((hanging, good));
    hub.stop().await;
}

#[tokio::test]
async fn a_claim_that_is_extended_stays_and_a_long_lease_too() {
    let hub = TestHub::start().await;
    let (mut link, mut other) = (hub.v1().await, hub.v1().await);
    link.consume("", "orders", r#"{"credit":2,"lease":1000}"#).await;
    link.publish("orders", "e1").await;
    link.publish("orders", "e2").await;
    let (first, second) = (link.claim().await, link.claim().await);
    other.consume("", "orders", r#"{"credit":1}"#).await;
    assert_eq!(link.ask(&["extend", "8", &second.token, r#"{"lease":60000}"#]).await, ["ok", "8"]);
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(2_500) {
        assert_eq!(link.ask(&["extend", "9", &first.token, "{}"]).await, ["ok", "9"]);
        // As a client does, well before its lease is over.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(hub.handle.metrics().hub.leases_over, 0);
    for claim in [&first, &second] {
        assert_eq!(link.ask(&["ack", "10", &claim.token]).await, ["ok", "10"]);
    }
    assert!(other.put_aside().is_none());
    drop((link, other));
    hub.stop().await;
}

#[tokio::test]
async fn without_a_wish_the_hubs_own_lease_holds() {
    let hub = TestHub::with(|config| config.limits.lease = Duration::from_secs(1)).await;
    let mut link = hub.v1().await;
    link.set("", r#"{"delay":10}"#).await;
    link.consume("", "orders", r#"{"credit":2}"#).await;
    let began = Instant::now();
    link.publish("orders", "e1").await;
    assert_eq!(link.claim().await.attempt, 1);
    // It has said nothing: its other place isn't for the event that it let go.
    let mut other = hub.v1().await;
    other.consume("", "orders", r#"{"credit":1}"#).await;
    assert_eq!(other.claim().await.attempt, 2);
    assert!(began.elapsed() >= Duration::from_secs(1) && began.elapsed() < Duration::from_secs(10));
    drop((link, other));
    hub.stop().await;
}

#[tokio::test]
async fn of_two_consumers_the_one_that_lives_gets_what_the_other_lets_lie() {
    let hub = TestHub::start().await;
    let (mut hanging, mut good) = (hub.v1().await, hub.v1().await);
    hanging.set("", r#"{"delay":1,"max_delay":1,"max_attempts":3}"#).await;
    hanging.consume("", "orders", r#"{"credit":64,"lease":1000}"#).await;
    good.consume("", "orders", r#"{"credit":64}"#).await;
    let ids: Vec<String> = (0..6).map(|number| format!("e{number}")).collect();
    for id in &ids {
        good.publish("orders", id).await;
    }
    // One half went to each; then the other half comes too, at its second attempt.
    let mut came = Vec::new();
    while came.len() < ids.len() {
        let claim = good.claim().await;
        assert!(claim.attempt <= 2, "{claim:?}");
        assert_eq!(good.ask(&["ack", "9", &claim.token]).await, ["ok", "9"]);
        came.push(claim.id);
    }
    came.sort();
    assert_eq!(came, ids);
    drop((hanging, good));
    hub.stop().await;
}
