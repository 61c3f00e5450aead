//! Promise: whoever doesn't hold a claim any more changes nothing, and is told so.

use eventflow::event::code;

use crate::support::{Raw, TestHub, claims::Claimed, until};

/// Ack, nack, extend and release of a claim are all refused.
async fn assert_lost(link: &mut Raw, claim: &Claimed) {
    for verb in [&["ack"][..], &["nack", "{}"], &["extend", "{}"], &["release"]] {
        let units = [&[verb[0], "50", &claim.token], &verb[1..]].concat();
        assert_eq!(link.ask(&units).await[..3], ["err", "50", code::CLAIM_LOST], "{verb:?}");
    }
}

#[tokio::test]
async fn after_its_lease_a_claim_is_somebody_elses_whatever_its_holder_says() {
    let hub = TestHub::start().await;
    let (mut slow, mut other) = (hub.v1().await, hub.v1().await);
    slow.set("", r#"{"delay":10}"#).await;
    slow.consume("", "orders", r#"{"credit":1,"lease":1000}"#).await;
    slow.publish("orders", "e1").await;
    let late = slow.claim().await;
    other.consume("", "orders", r#"{"credit":1}"#).await;
    let again = other.claim().await;
    assert_eq!((late.attempt, again.attempt, &*again.id), (1, 2, "e1"));
    assert_lost(&mut slow, &late).await;
    // That of the other one is nobody else's either.
    assert_lost(&mut slow, &again).await;
    assert_eq!(other.ask(&["ack", "9", &again.token]).await, ["ok", "9"]);
    assert_lost(&mut other, &again).await;

    let spoke = hub.spoke().await;
    let trace = spoke.show("e1").await.unwrap().1;
    assert_eq!((&*trace.state, trace.attempts.len()), ("success", 1));
    assert_eq!((trace.attempts[0].number, &*trace.attempts[0].reason), (1, "lease over"));
    let metrics = hub.handle.metrics().hub;
    assert_eq!((metrics.leases_over, metrics.retries, metrics.claims_lost), (1, 1, 12));
    spoke.close().await;
    drop((slow, other));
    hub.stop().await;
}

#[tokio::test]
async fn a_nack_ends_a_claim_and_a_restart_ends_all() {
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    link.set("", r#"{"delay":10}"#).await;
    link.consume("", "orders", r#"{"credit":1}"#).await;
    link.publish("orders", "e1").await;
    let first = link.claim().await;
    assert_eq!(link.ask(&["nack", "4", &first.token, "{}"]).await, ["ok", "4"]);
    assert_lost(&mut link, &first).await;
    let second = link.claim().await;
    assert_lost(&mut link, &first).await;
    drop(link);
    until("its end is recorded", || async { hub.handle.metrics().hub.in_flight == 0 }).await;

    let hub = TestHub::on(hub.stop().await, |_| {}).await;
    let mut link = hub.v1().await;
    link.consume("", "orders", r#"{"credit":1}"#).await;
    let third = link.claim().await;
    assert_eq!((second.attempt, third.attempt), (2, 3), "the link's end counts");
    assert_lost(&mut link, &second).await;
    assert_eq!(link.ask(&["ack", "9", &third.token]).await, ["ok", "9"]);
    drop(link);
    hub.stop().await;
}
