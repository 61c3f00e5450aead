//! Publishing, storing, answering, asking.

use eventflow::{
    event::{Event, Expect},
    spoke::{Consume, Publish, PublishError},
};
use serde_json::json;

use super::place::Place;
use crate::support::PATIENCE;

#[tokio::test]
async fn publish() {
    let at = Place::new().await;
    let order = || Publish::new("orders", "created", "order-1").data(&json!({ "total": 12 })).unwrap();
    assert!(at.spoke.publish(order().id("e1")).await.unwrap().fresh);
    let answer = at.row("publish", &[], "--id e2").await.well().value();
    assert_eq!((&answer["id"], &answer["duplicate"]), (&json!("e2"), &json!(false)));
    let (by_rust, by_command) = (at.spoke.read("e1").await.unwrap(), at.spoke.read("e2").await.unwrap());
    assert_eq!((by_rust.pid, by_rust.data), (by_command.pid, by_command.data));
    at.leave().await;
}

#[tokio::test]
async fn publish_many() {
    let at = Place::new().await;
    let mut pending = Vec::new();
    for number in 0..3 {
        let event = Publish::new("orders", "created", format!("order-{number}"));
        pending.push(at.spoke.publish_later(event).await.unwrap());
    }
    for answer in pending {
        assert!(answer.await.unwrap().fresh);
    }
    at.file("events.ndjson", &"{\"domain\":\"orders\",\"name\":\"created\"}\n".repeat(5));
    let counts = at.row("publish many", &[], "--quiet").await.well().value();
    assert_eq!(counts, json!({ "published": 5, "duplicate": 0, "refused": 0 }));
    assert_eq!(at.spoke.domain_log("orders").collect(10).await.unwrap().len(), 8);
    at.leave().await;
}

#[tokio::test]
async fn publish_several_or_none() {
    let at = Place::new().await;
    let event = |id: &str| Publish::new("orders", "created", "order-1").id(id.to_owned());
    let answers = at.spoke.publish_all(vec![event("e1"), event("e2")]).await.unwrap();
    assert!(answers[0].seq < answers[1].seq);
    let bad = vec![event("e3"), event("e4").rid("nobody")];
    assert_eq!(at.spoke.publish_all(bad).await.unwrap_err().code(), "E_EVENTFLOW_RID_NOT_FOUND");

    let line = |id: &str, more: &str| {
        format!("{{\"domain\":\"orders\",\"name\":\"created\",\"pid\":\"order-1\",\"id\":\"{id}\"{more}}}\n")
    };
    at.file("events.ndjson", &(line("e5", "") + &line("e6", "")));
    let counts = at.row("publish several or none", &[], "").await.well().value();
    assert_eq!(counts, json!({ "published": 2, "duplicate": 0, "refused": 0 }));
    at.file("events.ndjson", &(line("e7", "") + &line("e8", r#","rid":"nobody""#)));
    let said = at.row("publish several or none", &[], "").await.with(1);
    assert!(said.stderr.contains("(E_EVENTFLOW_RID_NOT_FOUND)") && said.stdout.is_empty(), "{said:?}");
    at.file("events.ndjson", &(line("e9", "") + "no event\n"));
    let said = at.row("publish several or none", &[], "").await.with(1);
    assert!(
        said.stderr.contains("line 2: ") && said.stderr.contains("(E_EVENTFLOW_INVALID_BATCH)"),
        "{said:?}"
    );

    let stored = at.spoke.log("orders", "order-1").collect(20).await.unwrap();
    let ids: Vec<_> = stored.iter().map(|event| event.id.as_str()).collect();
    assert_eq!(ids, ["e1", "e2", "e5", "e6"]);
    at.leave().await;
}

#[tokio::test]
async fn publish_and_wait_for_the_outcome() {
    let at = Place::new().await;
    let handler =
        |event: Event| async move { if event.id.as_str() == "bad" { Err("no stock") } else { Ok(()) } };
    let consumer = at.spoke.consume(Consume::new("orders", "created"), handler).await.unwrap();
    let order = Publish::new("orders", "created", "order-1");
    let (published, ended) = at.spoke.publish_and_wait(order, PATIENCE).await.unwrap();
    assert!(published.fresh && ended.state == "success");
    let answer = at.row("publish and wait for the outcome", &[], "").await.well().value();
    assert_eq!((&answer["duplicate"], &answer["outcome"]["state"]), (&json!(false), &json!("success")));
    let answer = at.row("publish and wait for the outcome", &[], "--id bad").await.with(1).value();
    assert_eq!((&answer["id"], &answer["outcome"]["error"]), (&json!("bad"), &json!("no stock")));
    consumer.stop().await.unwrap();
    at.leave().await;
}

#[tokio::test]
async fn store_without_publishing() {
    let at = Place::new().await;
    at.spoke.persist(Publish::new("orders", "created", "order-1").id("e1")).await.unwrap();
    at.row("store without publishing", &[("ID", "e2")], "").await.well();
    for id in ["e1", "e2"] {
        assert_eq!(at.spoke.show(id).await.unwrap().1.state, "persisted", "{id}");
    }
    at.leave().await;
}

#[tokio::test]
async fn publish_what_is_stored() {
    let at = Place::new().await;
    let draft = Publish::new("orders", "created", "order-1").id("e1");
    at.spoke.persist(draft.clone()).await.unwrap();
    assert!(at.spoke.publish(draft).await.unwrap().seq > 0);
    at.row("store without publishing", &[("ID", "e2")], "").await.well();
    let answer = at.row("publish what is stored", &[("ID", "e2")], "").await.well().value();
    assert!(answer["seq"].as_u64() > Some(0), "{answer}");
    for id in ["e1", "e2"] {
        assert_ne!(at.spoke.show(id).await.unwrap().1.state, "persisted", "{id}");
    }
    at.leave().await;
}

#[tokio::test]
async fn answer_an_event() {
    let at = Place::new().await;
    at.event("e1", "created", json!(null)).await;
    let created = at.spoke.read("e1").await.unwrap();
    at.spoke.publish(Publish::reply_to(&created, "shipped").id("e2")).await.unwrap();
    at.spoke.reply(&created, Publish::new("parcels", "packed", "parcel-7").id("e3")).await.unwrap();
    at.row("answer an event", &[("ID", "e1")], "--id e4").await.well();
    for id in ["e2", "e3", "e4"] {
        assert_eq!(at.spoke.read(id).await.unwrap().rid.as_deref(), Some("e1"), "{id}");
    }
    at.leave().await;
}

#[tokio::test]
async fn ask_and_get_the_answer() {
    let at = Place::new().await;
    let replies = at.spoke.clone();
    let handler = move |question: Event| {
        let spoke = replies.clone();
        async move { spoke.publish(Publish::reply_to(&question, "answered")).await.map(drop) }
    };
    let consumer = at.spoke.consume(Consume::new("stock", "asked"), handler).await.unwrap();
    let question = Publish::new("stock", "asked", "article-3");
    assert_eq!(at.spoke.request(question, PATIENCE).await.unwrap().name.as_str(), "answered");
    let answer = at.row("ask and get the answer", &[], "--id q1").await.well().value();
    assert_eq!((&answer["name"], &answer["rid"]), (&json!("answered"), &json!("q1")));
    consumer.stop().await.unwrap();
    at.leave().await;
}

#[tokio::test]
async fn publish_only_if_a_log_ends_so() {
    let at = Place::new().await;
    let order = |id: &str| Publish::new("orders", "created", "order-1").id(id.to_owned());
    at.row("publish only if a log ends so", &[], "--id e1").await.well();
    let late = at.row("publish only if a log ends so", &[], "--id e2").await.with(1);
    assert!(
        late.stderr.contains(r#"the last is "e1""#) && late.stderr.contains("E_EVENTFLOW_LOG_CONFLICT"),
        "{late:?}"
    );
    let late = at.spoke.publish(order("e2").expecting(Expect::None)).await.unwrap_err();
    assert!(matches!(late, PublishError::LogConflict(conflict) if conflict.count == 1));
    at.spoke.publish(order("e2").expecting("e1".parse().unwrap())).await.unwrap();
    at.run("eventflow publish orders created --pid order-1 --id e3 --expect e2").await.well();
    let again =
        at.run("eventflow publish orders created --pid order-1 --id e3 --expect e2").await.well().value();
    assert_eq!((&again["duplicate"], &again["state"]), (&json!(true), &json!("pending")));
    let log = at.spoke.log("orders", "order-1").collect(9).await.unwrap();
    assert_eq!(Expect::last_of(&log).to_string(), "e3");
    at.run("eventflow publish orders created --pid order-1 --id e4 --persist --expect e2").await.with(1);
    at.run("eventflow publish orders created --pid order-1 --expect ''").await.with(2);
    at.leave().await;
}

#[tokio::test]
async fn publish_what_is_in_the_database() {
    let at = Place::new().await;
    for id in ["order-1-created", "e2"] {
        at.committed(id).await;
    }
    let nudged = at.spoke.nudge(["order-1-created"]).await.unwrap();
    assert_eq!((nudged.len(), nudged[0].state.as_str()), (1, "taken"));
    let answer = at.row("publish what is in the database", &[("ID", "e2")], "").await.well().value();
    assert_eq!(answer, json!({ "id": "e2", "state": "taken" }));
    let answer = at.run("eventflow nudge e2").await.well().value();
    assert_eq!(answer, json!({ "id": "e2", "state": "published" }));
    at.run("eventflow nudge e2 nobody").await.with(3);
    assert_eq!(at.spoke.nudge([""; 0]).await.unwrap(), []);
    at.leave().await;
}

#[tokio::test]
async fn publish_whatever_is_in_the_database() {
    let at = Place::new().await;
    // Younger than the hub's `collect.age`: it is left to the next look, or to a nudge by its id.
    at.committed("e1").await;
    assert_eq!(at.spoke.nudge_all().await, Ok(0));
    let answer = at.row("publish whatever is in the database", &[], "").await.well().value();
    assert_eq!(answer, json!({ "taken": 0 }));
    at.run("eventflow nudge e1").await.well();
    at.leave().await;
}
