//! Subscribing and consuming, by handlers and by commands.

use eventflow::{
    event::Event,
    spoke::{Consume, Delivery, Handlers, Since},
};
use serde_json::json;
use tokio::sync::mpsc;

use super::place::Place;
use crate::support::PATIENCE;

/// What came of events, each with its state and its error.
async fn outcomes<const N: usize>(at: &Place, ids: [&str; N]) -> [(String, String); N] {
    let mut outcomes = Vec::new();
    for id in ids {
        let ended = at.spoke.outcome(id, PATIENCE).await.unwrap();
        outcomes.push((ended.state, ended.error));
    }
    outcomes.try_into().unwrap()
}

fn success() -> (String, String) {
    ("success".to_owned(), String::new())
}

fn dead(error: &str) -> (String, String) {
    ("dead".to_owned(), error.to_owned())
}

/// Publishes `created`, `paid` and `shipped` with these ids.
async fn three(at: &Place, ids: [&str; 3]) {
    for (id, name) in ids.into_iter().zip(["created", "paid", "shipped"]) {
        at.event(id, name, json!(null)).await;
    }
}

#[tokio::test]
async fn subscribe() {
    let at = Place::new().await;
    let mut events = at.spoke.subscribe("orders", "*").await.unwrap();
    at.event("e1", "created", json!(null)).await;
    loop {
        match events.next().await.expect("an event") {
            Delivery::Event { event, .. } => break assert_eq!(event.id.as_str(), "e1"),
            _ => continue,
        }
    }
    let said = at.while_publishing(&["created"], at.row("subscribe", &[], "--count 2")).await.well();
    assert!(said.each("name").iter().all(|name| name == "created"), "{said:?}");
    assert_eq!(said.stdout.lines().count(), 2);
    drop(events);
    at.leave().await;
}

#[tokio::test]
async fn subscribe_from_a_point_on() {
    let at = Place::new().await;
    three(&at, ["e1", "e2", "e3"]).await;
    let mut events = at.spoke.subscribe_from("orders", "*", Since::All).await.unwrap();
    for id in ["e1", "e2", "e3"] {
        let Some(Delivery::Event { event, .. }) = events.next().await else { panic!("an event") };
        assert_eq!(event.id.as_str(), id);
    }
    let behind = events.position().clone();
    at.event("e4", "created", json!(null)).await;
    let mut rest = at.spoke.subscribe_from("orders", "*", behind).await.unwrap();
    assert!(matches!(rest.next().await, Some(Delivery::Event { event, .. }) if event.id == "e4"));

    let all = at.row("subscribe from a point on", &[], "--count 4").await.well();
    assert_eq!(all.each("id"), ["e1", "e2", "e3", "e4"]);
    // Each line says how to go on.
    let second = &all.each("position")[1];
    for from in [second.as_str(), "e2", "id:e2"] {
        let said = at.run(&format!("eventflow subscribe orders '*' --from {from} --count 2")).await.well();
        assert_eq!(said.each("id"), ["e3", "e4"]);
    }
    let said = at.run("eventflow subscribe orders paid --from 1h --count 1").await.well();
    assert_eq!(said.each("id"), ["e2"]);
    let said = at.run("eventflow subscribe orders '*' --from unknown").await;
    assert!(said.exit != 0 && said.stderr.contains("unknown"), "{said:?}");
    drop((events, rest));
    at.leave().await;
}

#[tokio::test]
async fn subscribe_by_handlers_for_each_name() {
    let at = Place::new().await;
    let (told, mut heard) = mpsc::unbounded_channel();
    let tell = |what: &'static str| {
        let told = told.clone();
        move |event: eventflow::spoke::Received| {
            let told = told.clone();
            async move { Ok(told.send(format!("{what} {}", event.name))?) }
        }
    };
    let handlers = Handlers::new().on("created", tell("one")).on("paid", tell("two"));
    let subscriber = at.spoke.subscribe_with("orders", "*", handlers).await.unwrap();
    three(&at, ["e1", "e2", "e3"]).await;
    assert_eq!(heard.recv().await.as_deref(), Some("one created"));
    assert_eq!(heard.recv().await.as_deref(), Some("two paid"));
    subscriber.stop().await;

    at.script("created", "cat >>created.out");
    at.script("paid", "cat >>paid.out");
    let command = at.row("subscribe by handlers for each name", &[], "--count 4");
    let said = at.while_publishing(&["created", "shipped", "paid"], command).await.well();
    assert_eq!(said.stderr, "eventflow: done 4, failed 0\n");
    for name in ["created", "paid"] {
        let out = at.read(&format!("{name}.out"));
        assert!(
            !out.is_empty() && out.lines().all(|line| line.contains(&format!("\"name\":\"{name}\""))),
            "{out}"
        );
    }
    at.leave().await;
}

#[tokio::test]
async fn consume() {
    let at = Place::new().await;
    at.event("e1", "created", json!(null)).await;
    let handler = |_: Event| async { Ok::<(), std::io::Error>(()) };
    let consume = Consume::new("orders", "created").concurrency(4);
    let consumer = at.spoke.consume(consume, handler).await.unwrap();
    assert_eq!(outcomes(&at, ["e1"]).await, [success()]);
    consumer.stop().await.unwrap();

    // Each waits for the other: only two at once come to an end.
    at.script(
        "work",
        "touch begun.$EVENTFLOW_EVENT_ID; until test -e begun.e2 && test -e begun.e3; do sleep 0.02; done",
    );
    at.event("e2", "created", json!(null)).await;
    at.event("e3", "created", json!(null)).await;
    let said = at.row("consume", &[], "--count 2").await.well();
    assert_eq!(said.stderr, "eventflow: done 2, failed 0\n");
    assert_eq!(outcomes(&at, ["e2", "e3"]).await, [success(), success()]);
    at.leave().await;
}

#[tokio::test]
async fn consume_by_handlers_for_each_name() {
    let at = Place::new().await;
    three(&at, ["e1", "e2", "e3"]).await;
    let handlers =
        Handlers::new().on("created", |_| async { Ok(()) }).on("paid", |_| async { Err("no funds".into()) });
    let consumer = at.spoke.consume_with(Consume::new("orders", "*"), handlers).await.unwrap();
    let [created, paid, unhandled] = outcomes(&at, ["e1", "e2", "e3"]).await;
    assert_eq!((created, paid), (success(), dead("no funds")));
    consumer.stop().await.unwrap();

    at.script("created", "exit 0");
    at.script("paid", "echo 'no funds' >&2; exit 2");
    three(&at, ["e4", "e5", "e6"]).await;
    let said = at.row("consume by handlers for each name", &[], "--count 3").await.with(1);
    assert!(said.stderr.ends_with("eventflow: done 1, failed 2\n"), "{said:?}");
    let [created, paid, other] = outcomes(&at, ["e4", "e5", "e6"]).await;
    assert_eq!((created, paid), (success(), dead("exit code 2: no funds")));
    // In the same words as the client's.
    assert_eq!(other, unhandled);
    at.leave().await;
}

#[tokio::test]
async fn a_handler_for_all_other_names() {
    let at = Place::new().await;
    three(&at, ["e1", "e2", "e3"]).await;
    let handlers = Handlers::new()
        .on("created", |_| async { Ok(()) })
        .otherwise(|event| async move { Err(format!("{} is new", event.name).into()) });
    let consumer = at.spoke.consume_with(Consume::new("orders", "*"), handlers).await.unwrap();
    let expected = [success(), dead("paid is new"), dead("shipped is new")];
    assert_eq!(outcomes(&at, ["e1", "e2", "e3"]).await, expected);
    consumer.stop().await.unwrap();

    at.script("created", "exit 0");
    at.script("other", "echo \"$EVENTFLOW_EVENT_NAME\" >>other.out");
    three(&at, ["e4", "e5", "e6"]).await;
    at.row("a handler for all other names", &[], "--count 3").await.well();
    assert_eq!(at.read("other.out"), "paid\nshipped\n");
    at.leave().await;
}

#[tokio::test]
async fn a_handler_for_errors() {
    let at = Place::new().await;
    at.event("e1", "created", json!(null)).await;
    let handlers =
        Handlers::new().on("created", |_| async { Err("no stock".into()) }).on_error(|error, _| async move {
            if error.to_string() == "no stock" { Ok(()) } else { Err(error) }
        });
    let consumer = at.spoke.consume_with(Consume::new("orders", "created"), handlers).await.unwrap();
    assert_eq!(outcomes(&at, ["e1"]).await, [success()]);
    consumer.stop().await.unwrap();

    at.script("work", "echo 'no stock' >&2; exit 1");
    at.script("forgive", "test \"$EVENTFLOW_EVENT_ID\" = e2");
    at.event("e2", "created", json!(null)).await;
    at.event("e3", "created", json!(null)).await;
    at.row("a handler for errors", &[], "--count 2").await.with(1);
    assert_eq!(outcomes(&at, ["e2", "e3"]).await, [success(), dead("exit code 1: no stock")]);
    at.leave().await;
}

#[tokio::test]
async fn ack_nack_hand_back_by_hand() {
    let at = Place::new().await;
    three(&at, ["e1", "e2", "e3"]).await;
    let mut claims = at.spoke.claims(Consume::new("orders", "*").concurrency(1)).await.unwrap();
    claims.next().await.unwrap().ack().await.unwrap();
    claims.next().await.unwrap().nack("no stock").await.unwrap();
    claims.next().await.unwrap().release().await.unwrap();
    drop(claims);
    assert_eq!(outcomes(&at, ["e1", "e2"]).await, [success(), dead("no stock")]);
    assert_eq!(at.spoke.outcome_now("e3").await.unwrap(), None);
    at.run("eventflow consume orders --count 1").await.well();

    at.script("work", "case $EVENTFLOW_EVENT_ID in e4) exit 0;; e5) exit 7;; *) exit 126;; esac");
    for id in ["e4", "e5", "e6"] {
        at.event(id, "created", json!(null)).await;
    }
    let said = at.row("ack, nack, hand back by hand", &[], "").await.with(1);
    assert!(said.stderr.contains("done 1, failed 1, handed back 1"), "{said:?}");
    assert_eq!(outcomes(&at, ["e4", "e5"]).await, [success(), dead("exit code 7")]);
    assert_eq!(at.spoke.outcome_now("e6").await.unwrap(), None);
    at.leave().await;
}
