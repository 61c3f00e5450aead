//! Events, logs, processes and states.

use std::time::{Duration, SystemTime};

use eventflow::{
    event::{Event, compose},
    spoke::{Association, LogReader},
};
use serde_json::json;

use super::place::Place;
use crate::support::until;

async fn ids(mut log: LogReader) -> Vec<String> {
    log.collect(100).await.unwrap().iter().map(|event: &Event| event.id.to_string()).collect()
}

/// Milliseconds since 1970.
fn millis(moment: SystemTime) -> i64 {
    i64::try_from(moment.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// Four events of `order-1` in `orders`, and one of another.
async fn shop() -> Place {
    let at = Place::new().await;
    for (id, name, data) in [
        ("e1", "created", json!({ "total": 12, "items": ["bread"] })),
        ("e2", "paid", json!({ "paid": { "by": "card" } })),
        ("e3", "packed", json!(null)),
        ("e4", "shipped", json!({ "items": ["milk", "bread"], "paid": { "sum": 12 } })),
    ] {
        at.event(id, name, data).await;
    }
    at.event_of("orders", "order-2", "other", "created", json!(null)).await;
    at
}

#[tokio::test]
async fn read_an_event() {
    let at = shop().await;
    let event = at.spoke.read("e1").await.unwrap();
    let shown = at.row("read an event", &[("ID", "e1")], "").await.well().value();
    assert_eq!(shown["event"], serde_json::to_value(event).unwrap());
    at.leave().await;
}

#[tokio::test]
async fn what_became_of_an_event() {
    let at = shop().await;
    let (_, trace) = at.spoke.show("e1").await.unwrap();
    let shown = at.row("what became of an event", &[("ID", "e1")], "").await.well().value();
    assert_eq!(shown["trace"], serde_json::to_value(trace).unwrap());
    at.leave().await;
}

#[tokio::test]
async fn the_log_of_a_process() {
    let at = shop().await;
    let expected = ["e1", "e2", "e3", "e4"];
    assert_eq!(ids(at.spoke.log("orders", "order-1")).await, expected);
    assert_eq!(at.row("the log of a process", &[], "").await.well().each("id"), expected);
    at.leave().await;
}

#[tokio::test]
async fn between_two_moments() {
    let at = Place::new().await;
    at.event("e1", "created", json!(null)).await;
    let first = at.spoke.read("e1").await.unwrap().timestamp;
    until("the next millisecond", || async { millis(SystemTime::now()) > first }).await;
    at.event("e2", "paid", json!(null)).await;
    let second = at.spoke.read("e2").await.unwrap().timestamp;
    assert!(first < second, "{first} {second}");
    let log = || at.spoke.log("orders", "order-1");
    let before = SystemTime::now() - Duration::from_secs(3_600);
    assert_eq!(ids(log().from(before).to(second)).await, ["e1"]);
    assert_eq!(ids(log().from(second).to(before + Duration::from_secs(7_200))).await, ["e2"]);

    let shown = super::table::command("between two moments");
    let (second, later) = (second.to_string(), "2100-01-31T12:00:00Z");
    for (from, to, expected) in
        [("1h", &*second, &["e1"][..]), (&*second, later, &["e2"]), ("1h", later, &["e1", "e2"])]
    {
        // The row has two words TIME.
        let command = shown.replacen("TIME", from, 1).replacen("TIME", to, 1);
        assert_eq!(at.run(&command).await.well().each("id"), expected, "{command}");
    }
    at.leave().await;
}

#[tokio::test]
async fn of_some_names() {
    let at = shop().await;
    assert_eq!(ids(at.spoke.log("orders", "order-1").names(["paid", "shipped"])).await, ["e2", "e4"]);
    assert_eq!(at.row("of some names", &[], "").await.well().each("id"), ["e2", "e4"]);
    at.leave().await;
}

#[tokio::test]
async fn of_a_child_process() {
    let at = shop().await;
    for id in ["e3", "e4"] {
        at.spoke.associate(id, Association::child_process("parcels", "parcel-7")).await.unwrap();
    }
    assert_eq!(ids(at.spoke.child_log("parcels", "parcel-7")).await, ["e3", "e4"]);
    assert_eq!(at.row("of a child process", &[], "").await.well().each("id"), ["e3", "e4"]);
    at.leave().await;
}

/// The customer has an order and a bill.
async fn customer() -> Place {
    let at = shop().await;
    at.event_of("bills", "bill-1", "b1", "drawn", json!(null)).await;
    for id in ["e1", "b1"] {
        at.spoke.associate(id, Association::entity("customer-4")).await.unwrap();
    }
    at
}

#[tokio::test]
async fn of_an_entity() {
    let at = customer().await;
    assert_eq!(ids(at.spoke.entity_log("customer-4")).await, ["e1", "b1"]);
    assert_eq!(at.row("of an entity", &[], "").await.well().each("id"), ["e1", "b1"]);
    at.leave().await;
}

#[tokio::test]
async fn of_an_entity_in_a_domain() {
    let at = customer().await;
    assert_eq!(ids(at.spoke.entity_log("customer-4").domain("orders")).await, ["e1"]);
    assert_eq!(at.row("of an entity in a domain", &[], "").await.well().each("id"), ["e1"]);
    at.leave().await;
}

#[tokio::test]
async fn a_domain_newest_first() {
    let at = shop().await;
    let expected = ["other", "e4", "e3", "e2", "e1"];
    assert_eq!(ids(at.spoke.domain_log("orders")).await, expected);
    assert_eq!(at.row("a domain, newest first", &[], "").await.well().each("id"), expected);
    let said = at.row("a domain, newest first", &[("20", "2")], "").await.well();
    assert_eq!(said.each("id"), expected[..2]);
    at.leave().await;
}

#[tokio::test]
async fn page_by_page() {
    let at = shop().await;
    let mut log = at.spoke.log("orders", "order-1").page_size(3);
    assert_eq!(log.next_page().await.unwrap().unwrap().len(), 3);
    assert_eq!(log.collect(9).await.unwrap().len(), 1);
    assert_eq!(log.next_page().await.unwrap(), None);
    assert_eq!(at.row("page by page", &[("N", "3")], "").await.well().each("id"), ["e1", "e2", "e3"]);
    at.leave().await;
}

#[tokio::test]
async fn the_processes_of_a_domain() {
    let at = shop().await;
    let pids = at.spoke.pids("orders").collect(9).await.unwrap();
    assert_eq!(pids.iter().map(|pid| pid.as_str()).collect::<Vec<_>>(), ["order-1", "order-2"]);
    let said = at.row("the processes of a domain", &[], "").await.well();
    assert_eq!(said.each("pid"), ["order-1", "order-2"]);
    at.leave().await;
}

#[tokio::test]
async fn the_state_of_a_process() {
    let at = shop().await;
    let state = at.spoke.state("orders", "order-1").await.unwrap();
    let expected = json!({ "total": 12, "items": ["bread", "milk"], "paid": { "by": "card", "sum": 12 } });
    assert_eq!(state, expected);
    assert_eq!(at.row("the state of a process", &[], "").await.well().value(), expected);
    at.leave().await;
}

#[tokio::test]
async fn the_state_of_given_events() {
    let at = shop().await;
    let events = at.spoke.log("orders", "order-1").collect(2).await.unwrap();
    let expected = compose(&events).unwrap();
    let lines: Vec<_> = events.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
    at.file("events.ndjson", &lines.join("\n"));
    assert_eq!(at.row("the state of given events", &[], "").await.well().value(), expected);
    // What one command prints, the other takes.
    let said = at.run("eventflow log orders order-1 --limit 2 | eventflow state -").await.well();
    assert_eq!(said.value(), expected);
    at.leave().await;
}
