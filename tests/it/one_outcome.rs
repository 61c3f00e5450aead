//! Promise: one outcome per event, recorded once; who comes late is refused.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use eventflow::spoke::{Consume, Nack, Publish, Spoke};

use crate::support::{Raw, TestHub, until};

const LOST: &str = "E_EVENTFLOW_CLAIM_LOST";

/// Publishes `id` as an event `created` of the domain `orders`.
async fn created(spoke: &Spoke, id: &str) {
    spoke.publish(Publish::new("orders", "created", "order-1").id(id.to_owned())).await.unwrap();
}

/// Consumes over a raw link, as its consumer 1.
async fn consume(raw: &mut Raw, domain: &str, name: &str, credit: u32) {
    let options = format!("{{\"credit\":{credit}}}");
    let answer = raw.ask(&["consume", "1", "1", "", domain, name, &options]).await;
    assert_eq!(answer[..3], ["ok", "1", "position"]);
}

/// The next claim: its token, its attempt and the event's id.
async fn claim(raw: &mut Raw) -> (String, String, String) {
    let claim = raw.event().await;
    assert_eq!(claim[..2], ["claim", "1"]);
    (claim[2].clone(), claim[3].clone(), claim[5].clone())
}

#[tokio::test]
async fn each_event_is_handled_by_one_of_two_consumers() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let handled = Arc::new(AtomicUsize::new(0));
    let mut consumers = Vec::new();
    for _ in 0..2 {
        let handled = handled.clone();
        let handler = move |_event| {
            handled.fetch_add(1, Ordering::Relaxed);
            async { Ok::<(), String>(()) }
        };
        consumers.push(spoke.consume(Consume::new("orders", "*"), handler).await.unwrap());
    }
    for n in 0..200 {
        let publish = Publish::new("orders", "created", format!("order-{n}"));
        spoke.publish(publish.data(&n).unwrap()).await.unwrap();
    }
    until("200 outcomes", || async { hub.handle.metrics().hub.outcomes.get("success") == Some(&200) }).await;
    assert_eq!(handled.load(Ordering::Relaxed), 200);
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn overlapping_patterns_share_the_work() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let handled = Arc::new(Mutex::new(HashMap::<String, usize>::new()));
    let mut consumers = Vec::new();
    for (domain, name) in [("orders", "*"), ("*", "created"), ("orders", "created"), (">", ">")] {
        let handled = handled.clone();
        let handler = move |event: eventflow::event::Event| {
            *handled.lock().unwrap().entry(event.id.to_string()).or_default() += 1;
            async { Ok::<(), String>(()) }
        };
        consumers.push(spoke.consume(Consume::new(domain, name).credit(3), handler).await.unwrap());
    }
    let mut pending = Vec::new();
    for n in 0..300 {
        let publish = Publish::new("orders", "created", format!("order-{n}")).id(format!("e{n}"));
        pending.push(spoke.publish_later(publish).await.unwrap());
    }
    for pending in pending {
        pending.await.unwrap();
    }
    until("300 outcomes", || async { hub.handle.metrics().hub.outcomes.get("success") == Some(&300) }).await;
    let handled = handled.lock().unwrap().clone();
    assert_eq!(handled.len(), 300);
    assert!(handled.values().all(|times| *times == 1), "{handled:?}");
    assert_eq!(hub.handle.metrics().hub.claims, 300);
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn a_late_finisher_changes_nothing() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let (mut holder, mut other) = (hub.v1().await, hub.v1().await);
    consume(&mut holder, "orders", "*", 3).await;
    for id in ["acked", "nacked", "held"] {
        created(&spoke, id).await;
    }
    let (acked, nacked, held) =
        (claim(&mut holder).await.0, claim(&mut holder).await.0, claim(&mut holder).await.0);

    assert_eq!(holder.ask(&["ack", "2", &acked]).await, ["ok", "2"]);
    assert_eq!(holder.ask(&["ack", "3", &acked]).await[2], LOST, "a second ack");
    assert_eq!(holder.ask(&["nack", "4", &acked, "{}"]).await[2], LOST, "a nack after the ack");
    assert_eq!(holder.ask(&["release", "5", &acked]).await[2], LOST, "a release after the ack");
    assert_eq!(
        holder.ask(&["nack", "6", &nacked, r#"{"reason":"no stock","final":true}"#]).await,
        ["ok", "6"]
    );
    assert_eq!(holder.ask(&["ack", "7", &nacked]).await[2], LOST, "an ack after the nack");
    assert_eq!(other.ask(&["ack", "2", &held]).await[2], LOST, "another link's claim");
    assert_eq!(other.ask(&["ack", "3", "1"]).await[2], LOST, "a token of another epoch");

    // Both in one write, before the first is committed: the first counts.
    holder
        .bytes(format!("ack\u{1f}8\u{1f}{held}\u{1e}nack\u{1f}9\u{1f}{held}\u{1f}{{}}\u{1e}").as_bytes())
        .await;
    assert_eq!(holder.reply("9").await[2], LOST);
    assert_eq!(holder.reply("8").await, ["ok", "8"]);

    for (id, state) in [("acked", "success"), ("nacked", "dead"), ("held", "success")] {
        assert_eq!(spoke.show(id).await.unwrap().1.state, state, "{id}");
    }
    let metrics = hub.handle.metrics().hub;
    assert_eq!((metrics.outcomes["success"], metrics.outcomes["dead"], metrics.claims_lost), (2, 1, 7));
    spoke.close().await;
    drop((holder, other));
    hub.stop().await;
}

#[tokio::test]
async fn an_event_that_is_given_up_is_dead_and_the_text_is_kept() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let mut claims = spoke.claims(Consume::new("orders", "created")).await.unwrap();
    created(&spoke, "bad").await;
    let claim = claims.next().await.unwrap();
    assert_eq!((claim.event().id.as_str(), claim.attempt()), ("bad", 1));
    let text = format!("no such customer{}the end", "!".repeat(2_000));
    claim.nack(Nack::new(text.clone()).give_up()).await.unwrap();
    let trace = spoke.show("bad").await.unwrap().1;
    assert_eq!(trace.state, "dead");
    assert_eq!(trace.attempts.len(), 1);
    assert_eq!((trace.attempts[0].number, &*trace.attempts[0].reason), (1, "given up"));
    assert_eq!(trace.attempts[0].error, text);
    spoke.close().await;

    // Not even a new start offers it again.
    let hub = TestHub::on(hub.stop().await, |_| {}).await;
    let spoke = hub.spoke().await;
    let mut claims = spoke.claims(Consume::new("orders", "created")).await.unwrap();
    created(&spoke, "good").await;
    let claim = claims.next().await.unwrap();
    assert_eq!(claim.event().id.as_str(), "good");
    claim.ack().await.unwrap();
    assert_eq!(spoke.show("bad").await.unwrap().1.state, "dead");
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn a_released_event_goes_to_another_and_counts_as_no_attempt() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let (mut first, mut second) = (hub.v1().await, hub.v1().await);
    consume(&mut first, "orders", "*", 1).await;
    created(&spoke, "e1").await;
    let (token, attempt, _) = claim(&mut first).await;
    assert_eq!(attempt, "1");
    consume(&mut second, "orders", "*", 1).await;
    assert_eq!(first.ask(&["release", "2", &token]).await, ["ok", "2"]);
    let (token, attempt, id) = claim(&mut second).await;
    assert_eq!((&*attempt, &*id), ("1", "e1"));

    // Nobody else has room: it comes back to the one that handed it back.
    created(&spoke, "e2").await;
    let (own, ..) = claim(&mut first).await;
    assert_eq!(first.ask(&["release", "3", &own]).await, ["ok", "3"]);
    assert_eq!(claim(&mut first).await.1, "1");

    assert_eq!(second.ask(&["ack", "2", &token]).await, ["ok", "2"]);
    let trace = spoke.show("e1").await.unwrap().1;
    assert_eq!((&*trace.state, trace.attempts.len()), ("success", 0));
    spoke.close().await;
    drop((first, second));
    hub.stop().await;
}

#[tokio::test]
async fn a_number_that_is_used_again_serves_the_new_patterns_only() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let (mut changed, mut stays) = (hub.v1().await, hub.v1().await);
    consume(&mut changed, "orders", "*", 8).await;
    assert_eq!(changed.ask(&["stop", "2", "1"]).await, ["ok", "2"]);
    consume(&mut changed, "users", "*", 8).await;
    consume(&mut stays, "orders", "*", 8).await;
    for n in 0..4 {
        created(&spoke, &format!("e{n}")).await;
    }
    for n in 0..4 {
        let (token, _, id) = claim(&mut stays).await;
        assert_eq!(id, format!("e{n}"));
        assert_eq!(stays.ask(&["ack", &format!("1{n}"), &token]).await[0], "ok");
    }
    spoke.publish(Publish::new("users", "created", "user-1").id("u1")).await.unwrap();
    assert_eq!(claim(&mut changed).await.2, "u1");

    // While it holds something the number is in use; settled, it is free again, also after that refusal.
    let (token, ..) = {
        spoke.publish(Publish::new("users", "created", "user-2").id("u2")).await.unwrap();
        claim(&mut changed).await
    };
    assert_eq!(changed.ask(&["stop", "3", "1"]).await, ["ok", "3"]);
    let again = ["consume", "4", "1", "", "orders", "*", "{\"credit\":1}"];
    assert_eq!(changed.ask(&again).await[2], "E_EVENTFLOW_SUBSCRIPTION_EXISTS");
    let refused = changed.ask(&["stop", "5", "1"]).await;
    assert_eq!(refused[2], "E_EVENTFLOW_UNKNOWN_SUBSCRIPTION");
    assert_eq!(changed.ask(&["ack", "6", &token]).await, ["ok", "6"]);
    drop((changed, stays));
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn a_consumer_that_is_stopped_before_its_binding_is_made_gets_nothing() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let mut raw = hub.v1().await;
    let consume = |req: u32, domain: &str| {
        format!("consume\u{1f}{req}\u{1f}1\u{1f}\u{1f}{domain}\u{1f}*\u{1f}{{\"credit\":8}}\u{1e}")
    };
    // In one write: the first binding is under way when the number is given back and taken again.
    let records = [consume(1, "orders"), "stop\u{1f}2\u{1f}1\u{1e}".to_owned(), consume(3, "users")].concat();
    raw.bytes(records.as_bytes()).await;
    for req in ["1", "2", "3"] {
        assert_eq!(raw.reply(req).await[0], "ok", "each is answered");
    }
    created(&spoke, "order").await;
    spoke.publish(Publish::new("users", "created", "user-1").id("user")).await.unwrap();
    let (token, _, id) = claim(&mut raw).await;
    assert_eq!(id, "user");
    assert_eq!(raw.ask(&["ack", "4", &token]).await, ["ok", "4"]);
    assert_eq!(spoke.show("order").await.unwrap().1.state, "pending", "its binding was made all the same");
    drop(raw);
    spoke.close().await;
    hub.stop().await;
}
