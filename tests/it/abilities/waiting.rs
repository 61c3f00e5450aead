//! Waiting for events, answers and outcomes.

use std::time::{Duration, SystemTime};

use eventflow::{
    event::Event,
    spoke::{Consume, Publish, Wait},
};
use serde_json::json;

use super::place::Place;
use crate::support::PATIENCE;

#[tokio::test]
async fn wait_for_an_event_of_a_process() {
    let at = Place::new().await;
    let wait = || Wait::new("orders", "order-1").names(["paid", "cancelled"]).timeout(PATIENCE);
    let ability = "wait for an event of a process";
    let (waited, said, ()) =
        tokio::join!(at.spoke.wait(wait()), at.row(ability, &[], ""), at.event("e1", "cancelled", json!(1)));
    assert_eq!(waited.unwrap().id.as_str(), "e1");
    assert_eq!(said.well().each("id"), ["e1"]);
    // What is there already counts.
    assert_eq!(at.row(ability, &[], "").await.well().each("id"), ["e1"]);
    at.leave().await;
}

#[tokio::test]
async fn wait_as_npm_does() {
    let at = Place::new().await;
    at.event("e1", "created", json!(null)).await;
    at.event("e2", "failed", json!(null)).await;
    let waited = at.spoke.wait(Wait::success_or_failed("orders", "order-1")).await.unwrap();
    assert_eq!(waited.id.as_str(), "e2");
    assert_eq!(at.row("wait as npm does", &[], "").await.well().each("id"), ["e2"]);
    at.leave().await;
}

#[tokio::test]
async fn wait_for_what_comes_after_something() {
    let at = Place::new().await;
    at.event("e1", "paid", json!(null)).await;
    at.event("e2", "paid", json!(null)).await;
    let wait = Wait::new("orders", "order-1").timeout(PATIENCE);
    assert_eq!(at.spoke.wait(wait.clone().after_event("e1")).await.unwrap().id.as_str(), "e2");
    let hour_ago = SystemTime::now() - Duration::from_secs(3_600);
    assert_eq!(at.spoke.wait(wait.after(hour_ago)).await.unwrap().id.as_str(), "e1");
    let ability = "wait for what comes after something";
    assert_eq!(at.row(ability, &[("ID", "e1")], "").await.well().each("id"), ["e2"]);
    let said = at.run("eventflow wait orders order-1 --since 1h").await.well();
    assert_eq!(said.each("id"), ["e1"]);
    let said = at.run("eventflow wait orders order-1 --since 0s --now").await.with(4);
    assert!(said.stderr.contains("(E_EVENTFLOW_WAIT_TIMEOUT)"), "{said:?}");
    at.leave().await;
}

#[tokio::test]
async fn wait_for_an_answer() {
    let at = Place::new().await;
    at.event("e1", "asked", json!(null)).await;
    let answer = async {
        let asked = at.spoke.read("e1").await.unwrap();
        at.spoke.publish(Publish::reply_to(&asked, "answered").id("e2")).await.unwrap();
    };
    let wait = Wait::answer_to("e1").timeout(PATIENCE);
    let (waited, said, ()) =
        tokio::join!(at.spoke.wait(wait), at.row("wait for an answer", &[("ID", "e1")], ""), answer);
    assert_eq!(waited.unwrap().id.as_str(), "e2");
    assert_eq!(said.well().each("id"), ["e2"]);
    at.leave().await;
}

#[tokio::test]
async fn wait_for_an_outcome() {
    let at = Place::new().await;
    at.event("e1", "created", json!(null)).await;
    let consuming = async {
        let handler = |_: Event| async { Ok::<(), std::io::Error>(()) };
        at.spoke.consume(Consume::new("orders", "created"), handler).await.unwrap()
    };
    let (ended, said, consumer) = tokio::join!(
        at.spoke.outcome("e1", PATIENCE),
        at.row("wait for an outcome", &[("ID", "e1")], ""),
        consuming
    );
    assert_eq!(ended.unwrap().state, "success");
    assert_eq!((said.each("id"), said.well().each("state")), (vec!["e1".into()], vec!["success".into()]));
    consumer.stop().await.unwrap();
    at.leave().await;
}

#[tokio::test]
async fn the_outcome_if_there_is_one() {
    let at = Place::new().await;
    at.event("e1", "created", json!(null)).await;
    assert_eq!(at.spoke.outcome_now("e1").await.unwrap(), None);
    let ability = "the outcome, if there is one";
    let said = at.row(ability, &[("ID", "e1")], "").await.with(4);
    assert!(said.stderr.contains("(E_EVENTFLOW_WAIT_TIMEOUT)") && said.stdout.is_empty(), "{said:?}");
    at.run("eventflow consume orders --exec false --count 1").await.with(1);
    assert_eq!(at.spoke.outcome_now("e1").await.unwrap().unwrap().state, "dead");
    assert_eq!(at.row(ability, &[("ID", "e1")], "").await.with(1).each("state"), ["dead"]);
    at.leave().await;
}
