//! Promise: a dead event can be published as an event of its own, with its outcome or not at all, and never in a circle.

use crate::support::{Raw, TestHub, until};

async fn give_up(link: &mut Raw) -> String {
    let claim = link.claim().await;
    let nacked = link.ask(&["nack", "9", &claim.token, r#"{"reason":"no stock","final":true}"#]).await;
    assert_eq!(nacked, ["ok", "9"]);
    claim.id
}

#[tokio::test]
async fn a_dead_event_is_told_of_in_the_groups_domain() {
    let hub = TestHub::start().await;
    let (mut worker, mut mourner) = (hub.v1().await, hub.v1().await);
    worker.set("billing", r#"{"dead_letter":"failures"}"#).await;
    worker.consume("billing", "orders", r#"{"credit":1}"#).await;
    mourner.consume("", "failures", r#"{"credit":1}"#).await;
    worker.publish("orders", "e1").await;
    assert_eq!(give_up(&mut worker).await, "e1");
    let letter = mourner.claim().await;
    assert!(letter.id.starts_with("dl-"), "{letter:?}");
    let data: serde_json::Value = serde_json::from_str(&letter.data).unwrap();
    let expected = serde_json::json!({
        "event": "e1", "group": "billing", "domain": "orders", "name": "created",
        "reason": "given up", "error": "no stock", "attempts": 1, "round": 1, "data": {"total": 1},
    });
    assert_eq!(data, expected);
    let spoke = hub.spoke().await;
    let (event, trace) = spoke.show(&letter.id).await.unwrap();
    assert_eq!((&*event.domain, &*event.name, &*event.pid), ("failures", "created", "p-1"));
    assert_eq!(event.rid.as_deref(), Some("e1"));
    assert_eq!(trace.publisher.as_deref(), trace.hub.as_deref(), "the hub itself published it");
    assert_eq!(hub.handle.metrics().hub.letters, 1);
    spoke.close().await;
    drop((worker, mourner));
    hub.stop().await;
}

#[tokio::test]
async fn what_fails_in_a_dead_letter_domain_is_dead_and_no_more() {
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    // Each would write letters about what fails at the other.
    link.set("", r#"{"dead_letter":"failures"}"#).await;
    link.set("mail", r#"{"dead_letter":"more"}"#).await;
    link.consume("", "orders", r#"{"credit":1}"#).await;
    let mut failing = hub.v1().await;
    failing.consume("mail", "failures", r#"{"credit":1}"#).await;
    link.publish("orders", "e1").await;
    give_up(&mut link).await;
    assert!(give_up(&mut failing).await.starts_with("dl-"));
    until("both are dead", || async { hub.handle.metrics().hub.outcomes["dead"] == 2 }).await;
    assert_eq!(hub.handle.metrics().hub.letters, 1);
    drop((link, failing));
    hub.stop().await;
}
