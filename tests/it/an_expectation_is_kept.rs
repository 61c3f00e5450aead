//! Promise: what a publisher expects of a log is true when its event is stored: of many who read the same end only one
//! appends to it, the others are told how the log stands. Across `kill -9`, too.
//!
//! Each event of these tests says in its data which one it was decided after.

use std::collections::BTreeSet;

use eventflow::{
    event::{Event, Expect},
    spoke::{Publish, PublishError, Schedule, Spoke},
};
use serde_json::json;

use crate::support::{TestHub, process::Home};

const CONFLICT: &str = "E_EVENTFLOW_LOG_CONFLICT";

fn moved(id: String, after: &Expect) -> Publish {
    let data = json!({ "after": after.to_string() });
    Publish::new("accounts", "moved", "account-7").id(id).data(&data).unwrap().expecting(after.clone())
}

/// Appends `count` events, each behind what was the last; begins anew when somebody was faster. Says how often.
async fn writer(spoke: Spoke, name: String, count: usize) -> usize {
    let mut lost = 0;
    let mut end = Expect::None;
    for number in 0..count {
        loop {
            let id = format!("{name}-{number}");
            match spoke.publish(moved(id.clone(), &end)).await {
                Ok(_) => {
                    end = Expect::After(id.parse().unwrap());
                    break;
                }
                Err(PublishError::LogConflict(conflict)) => {
                    lost += 1;
                    assert_eq!((&*conflict.domain, &*conflict.pid), ("accounts", "account-7"));
                    assert!(conflict.expected == end && conflict.count > 0, "{conflict:?}");
                    end = conflict.last.map_or(Expect::None, Expect::After);
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
    lost
}

/// Each event stands right behind the one that it was decided after.
fn check(log: &[Event]) {
    let mut before = Expect::None;
    for event in log {
        let data: serde_json::Value = event.data.read().unwrap();
        assert_eq!(data["after"], before.to_string(), "{}", event.id);
        before = Expect::After(event.id.clone());
    }
    let ids: BTreeSet<_> = log.iter().map(|event| event.id.as_str()).collect();
    assert_eq!(ids.len(), log.len());
}

async fn account(spoke: &Spoke) -> Vec<Event> {
    spoke.log("accounts", "account-7").collect(10_000).await.unwrap()
}

#[tokio::test]
async fn a_hundred_who_race_on_one_log_lose_no_update() {
    let hub = TestHub::start().await;
    let spokes = [hub.spoke().await, hub.spoke().await, hub.spoke().await, hub.spoke().await];
    let writers: Vec<_> = (0..100)
        .map(|number| tokio::spawn(writer(spokes[number % 4].clone(), format!("w{number}"), 2)))
        .collect();
    let mut lost = 0;
    for writer in writers {
        lost += writer.await.unwrap();
    }
    let log = account(&spokes[0]).await;
    assert_eq!(log.len(), 200);
    check(&log);
    assert!(lost > 0, "nobody raced");
    assert_eq!(hub.handle.metrics().hub.refused.get("log_conflict"), Some(&(lost as u64)));
    for spoke in spokes {
        spoke.close().await;
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_is_killed_keeps_them() {
    let home = Home::new();
    let mut hub = home.start().await;
    let spokes = [home.spoke().await, home.spoke().await];
    let writers: Vec<_> = (0..10)
        .map(|number| tokio::spawn(writer(spokes[number % 2].clone(), format!("w{number}"), 40)))
        .collect();
    for kill in 1..4 {
        let far = || async { account(&spokes[0]).await.len() >= kill * 80 };
        crate::support::until("some are stored", far).await;
        hub.kill().await;
        hub = home.start().await;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let log = account(&spokes[0]).await;
    assert_eq!(log.len(), 400, "a publish that was sent again is the same publish");
    check(&log);
    for spoke in spokes {
        spoke.close().await;
    }
    hub.kill().await;
}

#[tokio::test]
async fn the_conflict_says_how_the_log_stands_and_changes_nothing() {
    let hub = TestHub::start().await;
    let mut raw = hub.v1().await;
    let publish = |req: &str, verb: &str, id: &str, expect: &str| {
        let expect = format!(r#"{{"expect":"{expect}"}}"#);
        [verb, req, id, "orders", "created", "order-1", "", "1", &expect].map(str::to_owned)
    };
    async fn ask(raw: &mut crate::support::Raw, units: [String; 9]) -> Vec<String> {
        let units: Vec<&str> = units.iter().map(String::as_str).collect();
        raw.ask(&units).await
    }
    let early = ask(&mut raw, publish("1", "publish", "e1", "e0")).await;
    assert_eq!(early[..3], ["err", "1", CONFLICT]);
    assert_eq!(
        early[3],
        r#"the log of "orders" "order-1" has 0 events, while "e0" was expected: read it, decide anew, and expect its last event"#
    );
    assert_eq!(early[4], "", "final");
    assert_eq!(ask(&mut raw, publish("2", "publish", "e1", "none")).await[2], "committed");
    assert_eq!(ask(&mut raw, publish("3", "persist", "e2", "e1")).await[2], "committed");
    let late = ask(&mut raw, publish("4", "persist", "e3", "e1")).await;
    assert!(late[2] == CONFLICT && late[3].contains(r#"has 2 events, the last is "e2""#), "{late:?}");
    // Sent again, wherever the log ends by now.
    assert_eq!(ask(&mut raw, publish("5", "publish", "e1", "none")).await[2], "duplicate");
    // Nothing of what was refused is there.
    raw.send(&["read", "6", "e3"]).await;
    assert_eq!(raw.reply("6").await[2], "E_EVENTFLOW_DB_EVENT_NOT_FOUND");
    let odd = ["publish", "7", "e4", "orders", "created", "order-1", "", "1", r#"{"expects":"e2"}"#];
    assert_eq!(raw.ask(&odd).await[2], "E_EVENTFLOW_INVALID_RECORD");
    drop(raw);
    hub.stop().await;
}

#[tokio::test]
async fn several_are_appended_under_one_expectation_or_none() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let event = |name: &str, id: &str| Publish::new("orders", name.to_owned(), "order-1").id(id.to_owned());
    let first = vec![event("created", "e1").expecting(Expect::None), event("paid", "e2")];
    assert_eq!(spoke.publish_all(first.clone()).await.unwrap().len(), 2);
    let again = spoke.publish_all(first).await.unwrap();
    assert!(again.iter().all(|published| !published.fresh), "{again:?}");

    let stale = vec![event("packed", "e3").expecting("e1".parse().unwrap()), event("shipped", "e4")];
    let error = spoke.publish_all(stale).await.unwrap_err();
    let PublishError::LogConflict(conflict) = &error else { panic!("{error}") };
    assert_eq!((conflict.last.as_deref(), conflict.count, error.code()), (Some("e2"), 2, CONFLICT));
    assert!(!error.is_retryable());
    let log = spoke.log("orders", "order-1").collect(9).await.unwrap();
    let anew = vec![event("packed", "e3").expecting(Expect::last_of(&log)), event("shipped", "e4")];
    assert!(spoke.publish_all(anew).await.is_ok());

    // What is scheduled is in no log until it ran; how a log ends then nobody can expect.
    let reminder = event("reminded", "e5").expecting("e4".parse().unwrap());
    assert!(spoke.schedule(reminder, Schedule::after(crate::support::PATIENCE)).await.is_err());
    spoke.schedule(event("reminded", "e5"), Schedule::after(crate::support::PATIENCE)).await.unwrap();
    assert!(spoke.publish(event("closed", "e6").expecting("e4".parse().unwrap())).await.is_ok());
    let error = spoke.publish(event("closed", "e7").expecting(Expect::After("none".parse().unwrap()))).await;
    assert_eq!(error.unwrap_err().code(), "E_EVENTFLOW_INVALID_ID");
    spoke.close().await;
    hub.stop().await;
}
