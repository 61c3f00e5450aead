//! Recurring schedules.

use std::time::Duration;

use eventflow::{
    spoke::Recurrence,
    wire::{Made, Missed},
};
use serde_json::json;

use super::place::Place;

async fn with_nightly() -> Place {
    let at = Place::new().await;
    let nightly = Recurrence::new("nightly", "30 2 * * *", "reports", "due").zone("Europe/Berlin");
    assert_eq!(at.spoke.recur(nightly).await.unwrap().made, Made::New);
    at
}

#[tokio::test]
async fn make_a_recurring_schedule() {
    let at = with_nightly().await;
    let answer = at.row("make a recurring schedule", &[], "").await.well().value();
    assert_eq!((&answer["name"], &answer["made"]), (&json!("nightly"), &json!("duplicate")));
    let more = Recurrence::new("pulse", "@every 90s", "monitoring", "asked")
        .pid("pump-1")
        .data(&json!({ "a": 1 }))
        .unwrap();
    let more = more.missed(Missed::All).window(Duration::from_secs(3_600)).paused();
    let recurred = at.spoke.recur(more).await.unwrap();
    assert_eq!((recurred.made, recurred.next), (Made::New, None));
    let line = "eventflow recur create pulse '@every 90s' monitoring asked --pid pump-1 --data '{\"a\":1}' \
                --missed all --window 1h --paused";
    assert_eq!(at.run(line).await.well().value()["made"], "duplicate");
    let said = at.run("eventflow recur create nightly '30 3 32 * *' reports due").await.with(2);
    assert!(said.stderr.contains("the day of month \"32\" at character 6"), "{said:?}");
    at.leave().await;
}

#[tokio::test]
async fn replace_a_recurring_schedule() {
    let at = with_nightly().await;
    let other = |rule: &str| Recurrence::new("nightly", rule.to_owned(), "reports", "due");
    assert_eq!(at.spoke.recur(other("@daily")).await.unwrap_err().code(), "E_EVENTFLOW_RECURRING_CONFLICT");
    assert_eq!(at.spoke.recur(other("@daily").replace()).await.unwrap().made, Made::Replaced);
    let answer = at.row("replace a recurring schedule", &[], "").await.well().value();
    assert_eq!(answer["made"], "replaced");
    assert_eq!(at.spoke.recurring("nightly", 1).await.unwrap().shown.state.what.rule, "@hourly");
    at.leave().await;
}

#[tokio::test]
async fn all_recurring_schedules() {
    let at = with_nightly().await;
    let all = at.spoke.recurring_schedules().collect().await.unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!(at.row("all recurring schedules", &[], "").await.well().each("name"), ["nightly"]);
    at.leave().await;
}

#[tokio::test]
async fn a_recurring_schedule_and_its_next_runs() {
    let at = with_nightly().await;
    let runs = at.spoke.recurring("nightly", 3).await.unwrap().shown.runs;
    let shown = at.row("a recurring schedule and its next runs", &[], "").await.well().value();
    let listed = shown["runs"].as_array().unwrap();
    assert_eq!((runs.len(), listed.len()), (3, 3));
    for (run, listed) in runs.iter().zip(listed) {
        assert_eq!(listed, &serde_json::to_value(run).unwrap());
        assert!(run.local.contains("T02:30:00+0") && run.utc.ends_with("+00:00"), "{run:?}");
    }
    assert_eq!((&shown["zone"], &shown["data"]), (&json!("Europe/Berlin"), &json!(null)));
    at.run("eventflow recur show none").await.with(3);
    at.leave().await;
}

#[tokio::test]
async fn pause_a_recurring_schedule() {
    let at = with_nightly().await;
    at.spoke.pause_recurring("nightly").await.unwrap();
    let answer = at.row("pause a recurring schedule", &[], "").await.well().value();
    assert_eq!(answer, json!({ "name": "nightly", "paused": true }));
    assert!(at.spoke.recurring("nightly", 1).await.unwrap().shown.state.what.paused);
    at.leave().await;
}

#[tokio::test]
async fn resume_it() {
    let at = with_nightly().await;
    at.spoke.pause_recurring("nightly").await.unwrap();
    at.spoke.resume_recurring("nightly").await.unwrap();
    at.spoke.pause_recurring("nightly").await.unwrap();
    let answer = at.row("resume it", &[], "").await.well().value();
    assert_eq!(answer, json!({ "name": "nightly", "resumed": true }));
    assert!(at.spoke.recurring("nightly", 1).await.unwrap().shown.state.next.is_some());
    at.leave().await;
}

#[tokio::test]
async fn have_it_run_now() {
    let at = with_nightly().await;
    let ran = at.spoke.run_recurring("nightly").await.unwrap();
    let answer = at.row("have it run now", &[], "").await.well().value();
    for id in [ran.id.as_str(), answer["id"].as_str().unwrap()] {
        let shown = at.run(&format!("eventflow show {id}")).await.well().value();
        assert_eq!(shown["trace"]["recurring"], "nightly");
    }
    assert_eq!(at.spoke.recurring("nightly", 1).await.unwrap().shown.state.ran, 2);
    at.leave().await;
}

#[tokio::test]
async fn remove_a_recurring_schedule() {
    let at = with_nightly().await;
    let answer = at.row("remove a recurring schedule", &[], "").await.well().value();
    assert_eq!(answer, json!({ "name": "nightly", "removed": true }));
    let gone = at.spoke.remove_recurring("nightly").await.unwrap_err();
    assert_eq!(gone.code(), "E_EVENTFLOW_RECURRING_NOT_FOUND");
    at.leave().await;
}
