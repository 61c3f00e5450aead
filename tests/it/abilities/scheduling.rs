//! Schedules.

use std::time::{Duration, SystemTime};

use eventflow::spoke::{Publish, Schedule};
use serde_json::json;

use super::place::Place;
use crate::support::PATIENCE;

#[tokio::test]
async fn schedule() {
    let at = Place::new().await;
    let reminder = |id: &str| Publish::new("orders", "reminded", "order-1").id(id.to_owned());
    let soon = Schedule::after(Duration::from_millis(300));
    assert!(at.spoke.schedule(reminder("e1"), soon).await.unwrap().fresh);
    let then = SystemTime::now() + Duration::from_secs(3_600);
    at.spoke.schedule(reminder("e2"), Schedule::at(then)).await.unwrap();
    let answer = at.row("schedule", &[("1h", "300ms")], "--id e3").await.well().value();
    assert_eq!((&answer["id"], &answer["duplicate"]), (&json!("e3"), &json!(false)));
    let line = "eventflow schedule orders reminded --pid order-1 --id e4 --at 2100-01-31T12:00:00+01:00";
    assert_eq!(at.run(line).await.well().value()["due"], json!(4_105_076_400_000_i64));

    // What is due is published, what isn't is not.
    let said = at.run("eventflow consume orders reminded --count 2 --timeout 30s").await.well();
    let mut ids = said.each("id");
    ids.sort();
    assert_eq!(ids, ["e1", "e3"]);
    for id in ["e1", "e3"] {
        assert_eq!(at.spoke.outcome(id, PATIENCE).await.unwrap().state, "success");
    }
    for id in ["e2", "e4"] {
        let shown = at.run(&format!("eventflow show {id}")).await.well().value();
        assert!(shown["trace"]["scheduled"].is_i64() && shown["trace"]["published"].is_null(), "{shown}");
    }
    at.leave().await;
}

#[tokio::test]
async fn all_that_is_scheduled() {
    let at = Place::new().await;
    at.run("eventflow schedules").await.with(3);
    let hour = Duration::from_secs(3_600);
    for (id, domain, hours) in
        [("e2", "orders", 2), ("e1", "orders", 1), ("e3", "mail", 3), ("e9", "orders", 999)]
    {
        let reminder = Publish::new(domain, "reminded", "order-1").id(id.to_owned());
        at.spoke.schedule(reminder, Schedule::after(hour * hours)).await.unwrap();
    }
    let ids = |events: Vec<eventflow::wire::ScheduledEvent>| {
        events.into_iter().map(|event| event.id.to_string()).collect::<Vec<_>>()
    };
    let all = at.spoke.schedules().page_size(3).collect(10).await.unwrap();
    assert_eq!(ids(all), ["e1", "e2", "e3", "e9"]);
    let week = SystemTime::now() + hour * 24 * 7;
    let soon = at.spoke.schedules().domain("orders").to(week).collect(10).await.unwrap();
    assert_eq!(ids(soon), ["e1", "e2"]);
    let mut wrong = at.spoke.schedules().name("").from(week);
    assert_eq!(wrong.collect(10).await.unwrap_err().code(), "E_EVENTFLOW_INVALID_PATTERN");
    assert_eq!(ids(at.spoke.schedules().name("*").from(week).collect(10).await.unwrap()), ["e9"]);

    assert_eq!(at.row("all that is scheduled", &[], "").await.well().each("id"), ["e1", "e2", "e3", "e9"]);
    assert_eq!(at.run("eventflow schedules --domain orders --to 7d").await.well().each("id"), ["e1", "e2"]);
    assert!(at.run("eventflow schedules --limit 1").await.well().value()["due"].is_i64());

    // To move one: cancel it, schedule it again.
    let again = || Publish::new("orders", "reminded", "order-1").id("e1".to_owned());
    let conflict = at.spoke.schedule(again(), Schedule::after(hour * 5)).await.unwrap_err();
    assert_eq!(conflict.code(), "E_EVENTFLOW_EVENT_CONFLICT");
    at.spoke.cancel("e1").await.unwrap();
    assert!(at.spoke.schedule(again(), Schedule::after(hour * 5)).await.unwrap().fresh);
    assert_eq!(ids(at.spoke.schedules().collect(10).await.unwrap()), ["e2", "e3", "e1", "e9"]);
    at.leave().await;
}

#[tokio::test]
async fn replace_a_schedule() {
    let at = Place::new().await;
    let reminder = |id: &str| Publish::new("orders", "reminded", "order-1").id(id.to_owned());
    let hour = Duration::from_secs(3_600);
    at.spoke.schedule(reminder("e1"), Schedule::after(hour)).await.unwrap();
    let moved = at.spoke.reschedule("e1", reminder("e1"), Schedule::after(3 * hour)).await.unwrap();
    assert_eq!((&*moved.id, moved.fresh), ("e1", true));
    let answer = at.row("replace a schedule", &[("ID", "e1")], "").await.well().value();
    let waiting = at.spoke.schedules().collect(9).await.unwrap();
    let ids: Vec<_> = waiting.iter().map(|event| (&*event.id, event.due)).collect();
    assert_eq!(ids, [(answer["id"].as_str().unwrap(), answer["due"].as_i64().unwrap())]);
    let error = at.spoke.reschedule("e1", reminder("e2"), Schedule::after(hour)).await.unwrap_err();
    assert_eq!(error.code(), "E_EVENTFLOW_SCHEDULE_NOT_FOUND");
    assert_eq!(at.spoke.schedules().collect(9).await.unwrap(), waiting, "nothing was done");
    at.leave().await;
}

#[tokio::test]
async fn cancel_a_schedule() {
    let at = Place::new().await;
    for id in ["e1", "e2"] {
        let reminder = Publish::new("orders", "reminded", "order-1").id(id.to_owned());
        at.spoke.schedule(reminder, Schedule::after(Duration::from_secs(3_600))).await.unwrap();
    }
    at.spoke.cancel("e1").await.unwrap();
    let answer = at.row("cancel a schedule", &[("ID", "e2")], "").await.well().value();
    assert_eq!(answer, json!({ "id": "e2", "cancelled": true }));
    for id in ["e1", "e2"] {
        assert_eq!(at.spoke.read(id).await.unwrap_err().code(), "E_EVENTFLOW_DB_EVENT_NOT_FOUND");
    }
    at.leave().await;
}
