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
