//! Promise: a publish with a stored id and the same content is the same publish; other content is refused.

use eventflow::spoke::{Publish, PublishError};

use crate::support::{Raw, TestHub};

const CONFLICT: &str = "E_EVENTFLOW_EVENT_CONFLICT";

/// Publishes over a raw link and returns the answer.
async fn publish(raw: &mut Raw, req: &str, [id, domain, name, pid, rid, data]: [&str; 6]) -> Vec<String> {
    raw.ask(&["publish", req, id, domain, name, pid, rid, data]).await
}

#[tokio::test]
async fn the_same_content_is_a_duplicate_and_goes_out_once() {
    let hub = TestHub::start().await;
    let (mut publisher, mut subscriber) = (hub.v1().await, hub.v1().await);
    subscriber.ask(&["subscribe", "1", "1", "*", "*"]).await;
    let content = |data| ["e1", "orders", "created", "order-1", "", data];
    let first = publish(&mut publisher, "1", content(r#"{"a":1,"b":[2,{"c":1e2}]}"#)).await;
    assert_eq!(first[..3], ["ok", "1", "committed"]);
    for (req, data) in [
        ("2", r#"{"a":1,"b":[2,{"c":1e2}]}"#),
        ("3", r#"{"b":[2,{"c":100}],"a":1.0}"#),
        ("4", r#"{ "b": [2.0, {"c": 100.0}], "a": 1 }"#),
    ] {
        let again = publish(&mut publisher, req, content(data)).await;
        assert_eq!(again[..3], ["ok", req, "duplicate"], "{data}");
        assert_eq!(again[3..5], first[3..], "time and number are the stored ones");
        assert_eq!(again[5], "pending");
    }
    publish(&mut publisher, "5", ["e2", "orders", "created", "order-1", "", "null"]).await;
    assert_eq!(subscriber.event().await[3], "e1");
    assert_eq!(subscriber.event().await[3], "e2", "nothing was dispatched in between");
    let metrics = hub.handle.metrics().hub;
    assert_eq!((metrics.published, metrics.duplicates), (2, 3));

    // The stored text stays as it was first written; there is no window, not even a restart ends it.
    drop((publisher, subscriber));
    let hub = TestHub::on(hub.stop().await, |_| {}).await;
    let mut publisher = hub.v1().await;
    let again = publish(&mut publisher, "1", content(r#"{"b":[2,{"c":100}],"a":1}"#)).await;
    assert_eq!((&*again[2], &again[3..5]), ("duplicate", &first[3..]));
    publisher.send(&["read", "2", "e1"]).await;
    assert_eq!(publisher.reply("2").await, ["ok", "2"]);
    assert_eq!(publisher.event().await[8], r#"{"a":1,"b":[2,{"c":1e2}]}"#);
    drop(publisher);
    hub.stop().await;
}

#[tokio::test]
async fn each_field_that_differs_is_named() {
    let hub = TestHub::start().await;
    let mut raw = hub.v1().await;
    for (req, id) in [("1", "before"), ("2", "other")] {
        publish(&mut raw, req, [id, "orders", "created", "order-1", "", "1"]).await;
    }
    publish(&mut raw, "3", ["e1", "orders", "created", "order-1", "before", r#"{"a":1}"#]).await;
    for (field, content) in [
        ("domain", ["e1", "Orders", "created", "order-1", "before", r#"{"a":1}"#]),
        ("name", ["e1", "orders", "paid", "order-1", "before", r#"{"a":1}"#]),
        ("pid", ["e1", "orders", "created", "order-2", "before", r#"{"a":1}"#]),
        ("rid", ["e1", "orders", "created", "order-1", "other", r#"{"a":1}"#]),
        ("rid", ["e1", "orders", "created", "order-1", "", r#"{"a":1}"#]),
        ("data", ["e1", "orders", "created", "order-1", "before", r#"{"a":"1"}"#]),
        ("data", ["e1", "orders", "created", "order-1", "before", r#"{"a":1,"b":null}"#]),
    ] {
        let answer = publish(&mut raw, "4", content).await;
        assert_eq!(answer[..3], ["err", "4", CONFLICT], "{field}");
        assert!(answer[3].contains(field) && answer[3].contains("e1"), "{field}: {}", answer[3]);
        assert_eq!(answer[4], "", "final");
    }
    // The link goes on, and what was refused changed nothing.
    let same = publish(&mut raw, "5", ["e1", "orders", "created", "order-1", "before", r#"{"a":1}"#]).await;
    assert_eq!(same[2], "duplicate");
    assert_eq!(hub.handle.metrics().hub.refused.get("conflict"), Some(&7));

    let spoke = hub.spoke().await;
    let error = spoke.publish(Publish::new("orders", "created", "order-9").id("e1")).await.unwrap_err();
    assert!(matches!(error, PublishError::Refused(_)) && !error.is_retryable());
    assert_eq!(error.code(), CONFLICT);
    spoke.close().await;
    drop(raw);
    hub.stop().await;
}

#[tokio::test]
async fn duplicates_at_the_same_time_are_one_event() {
    let hub = TestHub::start().await;
    let (mut one, mut two) = (hub.v1().await, hub.v1().await);
    let mut subscriber = hub.v1().await;
    subscriber.ask(&["subscribe", "1", "1", "orders", "*"]).await;
    // Both links send all of them at once, each id twice; data differs in form only.
    let burst = |data: &str| -> Vec<u8> {
        let record = |req: usize, n: usize| {
            format!("publish\u{1f}{req}\u{1f}e{n}\u{1f}orders\u{1f}created\u{1f}p\u{1f}\u{1f}{data}\u{1e}")
        };
        (0..100).map(|at| record(at + 1, at / 2)).collect::<String>().into_bytes()
    };
    let (left, right) = (burst("{\"a\":1}"), burst("{\"a\":1.0}"));
    tokio::join!(one.bytes(&left), two.bytes(&right));
    let mut committed = 0;
    let mut places = vec![std::collections::HashSet::new(); 50];
    for at in 0..100 {
        for raw in [&mut one, &mut two] {
            let answer = raw.reply(&(at + 1).to_string()).await;
            assert_eq!(answer[0], "ok", "{answer:?}");
            committed += usize::from(answer[2] == "committed");
            places[at / 2].insert((answer[3].clone(), answer[4].clone()));
        }
    }
    assert_eq!(committed, 50);
    assert!(places.iter().all(|places| places.len() == 1), "all four hear of the same time and number");
    one.ask(&["publish", "101", "end", "orders", "created", "p", "", "1"]).await;
    let mut seen = std::collections::HashSet::new();
    loop {
        let id = subscriber.event().await[3].clone();
        assert!(seen.insert(id.clone()), "{id} came twice");
        if id == "end" {
            break;
        }
    }
    assert_eq!(seen.len(), 51);
    drop((one, two, subscriber));
    hub.stop().await;
}

/// How an event stands that is published again: the last unit of the answer.
async fn state(raw: &mut Raw, verb: &str, req: &str) -> [String; 2] {
    let answer = raw.ask(&[verb, req, "e1", "orders", "created", "order-1", "", "1"]).await;
    assert_eq!(answer[0], "ok", "{answer:?}");
    [answer[2].clone(), answer.get(5).cloned().unwrap_or_default()]
}

#[tokio::test]
async fn a_duplicate_says_how_its_event_stands() {
    let hub = TestHub::start().await;
    let (mut raw, mut subscriber) = (hub.v1().await, hub.v1().await);
    subscriber.ask(&["subscribe", "1", "1", "*", "*"]).await;
    assert_eq!(state(&mut raw, "persist", "1").await, ["committed", ""]);
    assert_eq!(state(&mut raw, "persist", "2").await, ["duplicate", "persisted"]);
    // Persisted only: it is published now.
    assert_eq!(state(&mut raw, "publish", "3").await, ["committed", ""]);
    assert_eq!(subscriber.event().await[3], "e1");
    for (verb, req) in [("publish", "4"), ("persist", "5")] {
        assert_eq!(state(&mut raw, verb, req).await, ["duplicate", "pending"]);
    }
    let consume = ["consume", "6", "1", "", "orders", "created", r#"{"credit":1}"#];
    raw.ask(&consume).await;
    let token = raw.event().await[2].clone();
    assert_eq!(state(&mut raw, "publish", "7").await, ["duplicate", "pending"], "somebody works on it");
    raw.ask(&["ack", "8", &token]).await;
    assert_eq!(state(&mut raw, "publish", "9").await, ["duplicate", "success"]);

    // Deleted: a new event, with a new outcome.
    raw.ask(&["delete", "10", r#"{"id":"e1"}"#]).await;
    assert_eq!(state(&mut raw, "publish", "11").await, ["committed", ""]);
    let token = raw.event().await[2].clone();
    raw.ask(&["nack", "12", &token, r#"{"reason":"no stock"}"#]).await;
    assert_eq!(state(&mut raw, "publish", "13").await[0], "duplicate");
    assert_eq!(subscriber.event().await[3], "e1", "as often as it was published");

    // Scheduled and not due: it stays so.
    raw.ask(&["delete", "14", r#"{"id":"e1"}"#]).await;
    let due = (std::time::SystemTime::now() + crate::support::PATIENCE * 100)
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_millis()
        .to_string();
    raw.ask(&["schedule", "15", &due, "e1", "orders", "created", "order-1", "", "1"]).await;
    for (verb, req) in [("publish", "16"), ("persist", "17")] {
        assert_eq!(state(&mut raw, verb, req).await, ["duplicate", "scheduled"]);
    }
    let other = publish(&mut raw, "18", ["e1", "orders", "created", "order-1", "", "2"]).await;
    assert_eq!(other[..3], ["err", "18", CONFLICT]);
    publish(&mut raw, "19", ["end", "orders", "paid", "order-1", "", "1"]).await;
    assert_eq!(subscriber.event().await[3], "end", "nothing was dispatched in between");
    // In a batch, too.
    let batch = r#"[{"id":"e1","domain":"orders","name":"created","pid":"order-1","data":1}]"#;
    assert!(raw.ask(&["batch", "20", batch]).await[3].contains(r#""state":"scheduled""#));
    drop((raw, subscriber));
    hub.stop().await;
}
