//! Groups: outcomes of their own, how they stand, and changes to them.

use std::time::Duration;

use eventflow::spoke::{BoxError, Consume, ConsumerGroup, GroupChange, StartAt};
use serde_json::json;

use super::place::Place;
use crate::support::{PATIENCE, until};

/// The group `billing`, bound to all orders, with nobody connected. What fails once is dead.
pub async fn billing(at: &Place) -> ConsumerGroup {
    let group = at.spoke.group("billing");
    group.set(GroupChange::new().max_attempts(1)).await.unwrap();
    let consume = Consume::new("orders", "*").group("billing");
    let claims = at.spoke.claims(consume).await.unwrap();
    claims.stop().await.unwrap();
    group
}

/// Works on the next events of the group; those whose id begins with `bad` fail.
async fn work(at: &Place, count: usize) {
    let mut claims = at.spoke.claims(Consume::new("orders", "*").group("billing")).await.unwrap();
    for _ in 0..count {
        let claim = claims.next().await.expect("a claim");
        match claim.event().id.starts_with("bad") {
            true => claim.nack("no stock").await.unwrap(),
            false => claim.ack().await.unwrap(),
        }
    }
    claims.stop().await.unwrap();
}

/// Waits until so many events wait in the group.
async fn pending(group: &ConsumerGroup, count: u64) {
    until("so many wait", async || group.backlog().await.unwrap().pending == Some(count)).await;
}

#[tokio::test]
async fn consume_as_a_group() {
    let at = Place::new().await;
    at.event("e1", "created", json!(null)).await;
    let consume = || Consume::new("orders", "created").group("billing").from(StartAt::All);
    let handler = |_| async { Ok::<(), BoxError>(()) };
    let consumer = at.spoke.consume(consume(), handler).await.unwrap();
    let ended = at.spoke.group("billing").outcome("e1", PATIENCE).await.unwrap();
    assert_eq!(ended.state, "success");
    consumer.stop().await.unwrap();
    assert_eq!(at.spoke.outcome_now("e1").await.unwrap(), None, "the default group's own is still to come");

    at.script("work", "echo $EVENTFLOW_EVENT_ID >>out");
    at.event("e2", "created", json!(null)).await;
    at.row("consume as a group", &[], "--count 1").await.well();
    assert_eq!(at.read("out"), "e2\n", "nobody was connected, and it waited; the first one was done");
    at.leave().await;
}

#[tokio::test]
async fn wait_for_an_outcome_in_a_group() {
    let at = Place::new().await;
    let group = billing(&at).await;
    at.event("bad1", "created", json!(null)).await;
    work(&at, 1).await;
    assert_eq!(group.outcome("bad1", PATIENCE).await.unwrap().error, "no stock");
    let said = at.row("wait for an outcome in a group", &[("ID", "bad1")], "").await.with(1).value();
    assert_eq!((&said["state"], &said["error"]), (&json!("dead"), &json!("no stock")));
    at.run("eventflow wait --outcome bad1 --now").await.with(4);
    at.leave().await;
}

#[tokio::test]
async fn publish_and_wait_for_the_outcome_in_a_group() {
    let at = Place::new().await;
    let group = billing(&at).await;
    let publish = eventflow::spoke::Publish::new("orders", "created", "order-1").id("bad1");
    let (both, ()) = tokio::join!(group.publish_and_wait(publish, PATIENCE), work(&at, 1));
    assert_eq!(both.unwrap().1.state, "dead");
    let row = at.row("publish and wait for the outcome in a group", &[], "");
    let (said, ()) = tokio::join!(row, work(&at, 1));
    assert_eq!(said.well().value()["outcome"]["state"], "success");
    at.leave().await;
}

#[tokio::test]
async fn the_groups_and_their_settings() {
    let at = Place::new().await;
    billing(&at).await;
    let groups = at.spoke.backlog().await.unwrap();
    let names: Vec<_> = groups.iter().map(|stands| stands.group.as_ref().map(|name| name.as_str())).collect();
    assert_eq!(names, [None, Some("billing")]);
    assert_eq!(groups[1].settings.max_attempts, Some(1));
    let said = at.row("the groups and their settings", &[], "").await.well();
    assert_eq!(said.each("group"), ["", "billing"]);
    assert!(said.stdout.contains("\"max_attempts\":1"), "{said:?}");
    at.leave().await;
}

#[tokio::test]
async fn a_group_with_its_bindings_and_consumers() {
    let at = Place::new().await;
    let group = billing(&at).await;
    let consume = Consume::new("orders", "*").group("billing").credit(7);
    let _claims = at.spoke.claims(consume).await.unwrap();
    let stands = group.backlog().await.unwrap();
    assert_eq!((stands.bindings.len(), stands.connected.len()), (1, 1));
    assert_eq!((stands.bindings[0].consumers, stands.connected[0].credit), (1, 7));
    let said = at.row("a group with its bindings and consumers", &[], "").await.well().value();
    assert_eq!(said["bindings"][0]["domain"], "orders");
    assert_eq!(said["connected"][0]["credit"], 7);
    at.run("eventflow group show nobody").await.with(3);
    at.leave().await;
}

#[tokio::test]
async fn what_a_group_does_with_events_that_fail() {
    let at = Place::new().await;
    let group = at.spoke.group("shipping");
    let change = GroupChange::new().max_attempts(3).delay(Duration::from_secs(2)).key_order(true);
    let settings = group.set(change).await.unwrap();
    assert_eq!(
        (settings.max_attempts, settings.delay, settings.key_order),
        (Some(3), Some(2_000), Some(true))
    );
    let settings = at.spoke.default_group().set(GroupChange::new().max_attempts(9)).await.unwrap();
    assert_eq!((settings.max_attempts, settings.delay), (Some(9), Some(1_000)));
    let said = at.row("what a group does with events that fail", &[], "").await.well().value();
    assert_eq!(said["group"], "billing");
    assert_eq!((&said["settings"]["max_attempts"], &said["settings"]["delay"]), (&json!(8), &json!(5_000)));
    at.leave().await;
}

#[tokio::test]
async fn serve_a_group_again() {
    let at = Place::new().await;
    let group = billing(&at).await;
    at.event("e1", "created", json!(null)).await;
    work(&at, 1).await;
    group.seek(StartAt::All).await.unwrap();
    work(&at, 1).await;
    at.row("serve a group again", &[], "").await.well();
    work(&at, 1).await;
    at.leave().await;
}

#[tokio::test]
async fn pass_over_what_waits_in_a_group() {
    let at = Place::new().await;
    let group = billing(&at).await;
    at.event("e1", "created", json!(null)).await;
    at.event("e2", "created", json!(null)).await;
    pending(&group, 2).await;
    assert_eq!(group.purge().await.unwrap(), 2);
    at.event("e3", "created", json!(null)).await;
    pending(&group, 1).await;
    let said = at.row("pass over what waits in a group", &[], "").await.well().value();
    assert_eq!(said, json!({ "group": "billing", "purged": 1 }));
    pending(&group, 0).await;
    at.leave().await;
}

#[tokio::test]
async fn remove_a_binding() {
    let at = Place::new().await;
    let group = billing(&at).await;
    group.unbind("orders", "*").await.unwrap();
    assert!(group.backlog().await.unwrap().bindings.is_empty());
    let claims = at.spoke.claims(Consume::new("orders", "created").group("billing")).await.unwrap();
    claims.stop().await.unwrap();
    at.row("remove a binding", &[], "").await.well();
    assert!(group.backlog().await.unwrap().bindings.is_empty());
    at.leave().await;
}

#[tokio::test]
async fn remove_a_group() {
    let at = Place::new().await;
    let group = billing(&at).await;
    group.remove().await.unwrap();
    let gone = group.backlog().await.unwrap_err();
    assert_eq!(gone.code(), eventflow::event::code::GROUP_NOT_FOUND);
    billing(&at).await;
    let said = at.row("remove a group", &[], "").await.well().value();
    assert_eq!(said, json!({ "group": "billing", "removed": true }));
    at.row("remove a group", &[], "").await.with(3);
    at.leave().await;
}

#[tokio::test]
async fn how_much_waits() {
    let at = Place::new().await;
    let group = billing(&at).await;
    at.event("bad1", "created", json!(null)).await;
    work(&at, 1).await;
    at.event("e1", "created", json!(null)).await;
    at.event("e2", "created", json!(null)).await;
    let mut claims = at.spoke.claims(Consume::new("orders", "*").group("billing").credit(1)).await.unwrap();
    let claim = claims.next().await.expect("a claim");
    pending(&group, 1).await;
    let stands = group.backlog().await.unwrap();
    assert_eq!((stands.in_flight, stands.dead, stands.connected[0].holds), (1, 1, 1));
    assert_eq!(at.spoke.backlog().await.unwrap().len(), 2);
    let said = at.row("how much waits", &[], "").await.well();
    let billing: serde_json::Value = serde_json::from_str(said.stdout.lines().nth(1).unwrap()).unwrap();
    assert_eq!((&billing["pending"], &billing["in_flight"]), (&json!(1), &json!(1)));
    let one = at.run("eventflow backlog billing").await.well().value();
    assert_eq!((&one["dead"], &one["connected"][0]["holds"]), (&json!(1), &json!(1)));
    claim.ack().await.unwrap();
    at.leave().await;
}

/// Three dead events in the group.
async fn three_dead(at: &Place) -> ConsumerGroup {
    let group = billing(at).await;
    for id in ["bad1", "bad2", "bad3"] {
        at.event(id, "created", json!(null)).await;
    }
    work(at, 3).await;
    group
}

#[tokio::test]
async fn the_dead_events_of_a_group() {
    let at = Place::new().await;
    let group = three_dead(&at).await;
    let dead = group.dead().domain("orders").page_size(2).collect(9).await.unwrap();
    assert_eq!(dead.iter().map(|dead| dead.id.as_str()).collect::<Vec<_>>(), ["bad1", "bad2", "bad3"]);
    assert_eq!((dead[0].attempts, dead[0].round, dead[0].error.as_str()), (1, 1, "no stock"));
    assert!(at.spoke.default_group().dead().collect(9).await.unwrap().is_empty());
    let said = at.row("the dead events of a group", &[], "").await.well();
    assert_eq!(said.each("id"), ["bad1", "bad2", "bad3"]);
    at.run("eventflow dead list").await.with(3);
    at.leave().await;
}

#[tokio::test]
async fn a_dead_event_with_its_attempts() {
    let at = Place::new().await;
    three_dead(&at).await;
    let (_, trace) = at.spoke.show("bad1").await.unwrap();
    let stands = trace.groups.iter().find(|stands| stands.group.is_some()).expect("the named group");
    assert_eq!((stands.state.as_str(), stands.attempts), ("dead", 1));
    let said = at.row("a dead event with its attempts", &[("ID", "bad1")], "").await.well().value();
    assert_eq!((&said["dead"]["state"], &said["attempts"][0]["error"]), (&json!("dead"), &json!("no stock")));
    at.event("e1", "created", json!(null)).await;
    at.row("a dead event with its attempts", &[("ID", "e1")], "").await.with(3);
    at.leave().await;
}

#[tokio::test]
async fn try_a_dead_event_again() {
    let at = Place::new().await;
    let group = three_dead(&at).await;
    group.redrive("bad1").await.unwrap();
    work(&at, 1).await;
    until("it is dead again", async || {
        let dead = group.dead().collect(9).await.unwrap();
        dead.iter().any(|dead| dead.id.as_str() == "bad1" && dead.round == 2)
    })
    .await;
    let said = at.row("try a dead event again", &[("ID", "bad2")], "").await.well().value();
    assert_eq!(said, json!({ "id": "bad2", "redriven": true }));
    at.row("try a dead event again", &[("ID", "bad2")], "").await.with(3);
    at.leave().await;
}

#[tokio::test]
async fn try_all_dead_events_again() {
    let at = Place::new().await;
    let group = three_dead(&at).await;
    assert_eq!(group.redrive_all("shop", "*").await.unwrap(), 0);
    assert_eq!(group.redrive_all("orders", "*").await.unwrap(), 3);
    work(&at, 3).await;
    let said = at.row("try all dead events again", &[], "").await.well().value();
    assert_eq!(said, json!({ "redriven": 3 }));
    at.row("try all dead events again", &[], "").await.with(3);
    at.leave().await;
}

#[tokio::test]
async fn delete_dead_events() {
    let at = Place::new().await;
    let group = three_dead(&at).await;
    at.spoke.delete("bad1").await.unwrap();
    assert_eq!(group.dead().collect(9).await.unwrap().len(), 2);
    at.event("e1", "created", json!(null)).await;
    at.run("eventflow dead delete e1 --group billing").await.with(3);
    let said = at.row("delete dead events", &[], "").await.well();
    assert_eq!(said.each("id"), ["bad2", "bad3"]);
    at.run("eventflow show e1").await.well();
    at.run("eventflow show bad2").await.with(3);
    at.leave().await;
}
