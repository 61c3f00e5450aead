//! Promise: an event that kills its consumers ends dead, and the consumers survive it.

use std::process::Stdio;

use tokio::process::{Child, Command};

use crate::support::{TestHub, until};

/// Handlers that end their own program at the poison, and do all else.
const WORK: &str = r#"case "$EVENTFLOW_EVENT_ID" in poison) kill -KILL $PPID; sleep 5;; esac"#;

fn start(hub: &TestHub) -> Child {
    Command::new(env!("CARGO_BIN_EXE_eventflow"))
        .args(["consume", "orders", "--exec", WORK])
        .env("EVENTFLOW_DATA", hub.data())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn what_kills_its_consumers_is_dead_after_so_many_and_the_rest_is_done() {
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    link.set("", r#"{"delay":10,"max_delay":50}"#).await;
    for id in ["e1", "e2", "poison", "e3", "e4"] {
        link.publish("orders", id).await;
    }
    let mut worker = start(&hub);
    let mut killed = 0;
    until("all have their outcomes", || {
        // As whatever runs programs does: one that died is started again.
        if worker.try_wait().unwrap().is_some() {
            killed += 1;
            worker = start(&hub);
        }
        let outcomes = hub.handle.metrics().hub.outcomes;
        async move { (outcomes["success"], outcomes["dead"]) == (4, 1) }
    })
    .await;
    assert!((4..=5).contains(&killed), "{killed}");
    let spoke = hub.spoke().await;
    let trace = spoke.show("poison").await.unwrap().1;
    assert_eq!(trace.state, "dead");
    let reasons: Vec<&str> = trace.attempts.iter().map(|attempt| &*attempt.reason).collect();
    assert_eq!(reasons, ["link lost"; 5]);

    // The last one lives and works.
    if worker.try_wait().unwrap().is_some() {
        worker = start(&hub);
    }
    link.publish("orders", "e5").await;
    until("the next one is done", || async { hub.handle.metrics().hub.outcomes["success"] == 5 }).await;
    assert!(worker.try_wait().unwrap().is_none());
    worker.kill().await.unwrap();
    spoke.close().await;
    drop(link);
    hub.stop().await;
}
