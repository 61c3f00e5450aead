//! Promise: a handler may take as long as it likes, for its claim is extended while its program lives. A program that
//! stands still loses its claims when their leases are over: somebody else gets the events, and what it says of them
//! later is refused.

use std::{
    path::Path,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use eventflow::{
    event::Event,
    spoke::{BoxError, Consume, Publish, Spoke},
};
use tokio::process::{Child, Command};

use crate::support::{PATIENCE, TestHub, process, until};

/// The shortest that hubs take.
const LEASE: Duration = Duration::from_secs(1);

fn consume() -> Consume {
    Consume::new("orders", "created").lease(LEASE)
}

async fn publish(spoke: &Spoke, id: &str) {
    spoke.publish(Publish::new("orders", "created", "order-1").id(id.to_owned())).await.unwrap();
}

/// A program that works on events by `work`, in this folder.
fn program(hub: &TestHub, folder: &Path, work: &str) -> Child {
    let words = ["consume", "orders", "created", "--lease", "1s", "--count", "1", "--exec", work];
    Command::new(env!("CARGO_BIN_EXE_eventflow"))
        .args(words)
        .current_dir(folder)
        .env("EVENTFLOW_DATA", hub.data())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn a_handler_that_takes_more_than_three_leases_keeps_its_claim() {
    let hub = TestHub::start().await;
    let begun = Arc::new(AtomicUsize::new(0));
    // Somebody else waits for what is given away.
    let (spoke, other) = (hub.spoke().await, hub.spoke().await);
    let mut consumers = Vec::new();
    for spoke in [&spoke, &other] {
        let begun = begun.clone();
        let handler = move |_: Event| {
            begun.fetch_add(1, Ordering::Relaxed);
            async {
                tokio::time::sleep(LEASE * 7 / 2).await;
                Ok::<(), BoxError>(())
            }
        };
        consumers.push(spoke.consume(consume(), handler).await.unwrap());
    }
    publish(&spoke, "e1").await;
    assert_eq!(spoke.outcome("e1", PATIENCE).await.unwrap().state, "success");
    assert_eq!(begun.load(Ordering::Relaxed), 1);
    let (_, trace) = spoke.show("e1").await.unwrap();
    assert!(trace.attempts.is_empty(), "no attempt failed: {trace:?}");
    for (consumer, spoke) in consumers.into_iter().zip([spoke, other]) {
        assert_eq!(consumer.stop().await.unwrap().lost, 0);
        spoke.close().await;
    }
    hub.stop().await;
}

#[tokio::test]
async fn claims_that_wait_in_the_client_are_held_too() {
    let hub = TestHub::start().await;
    let (spoke, other) = (hub.spoke().await, hub.spoke().await);
    for n in 0..3 {
        publish(&spoke, &format!("e{n}")).await;
    }
    let mut claims = spoke.claims(consume()).await.unwrap();
    let first = claims.next().await.expect("a claim");
    let taken = Arc::new(AtomicUsize::new(0));
    let handler = {
        let taken = taken.clone();
        move |_: Event| {
            taken.fetch_add(1, Ordering::Relaxed);
            async { Ok::<(), BoxError>(()) }
        }
    };
    let consumer = other.consume(consume(), handler).await.unwrap();
    tokio::time::sleep(2 * LEASE).await;
    assert_eq!(taken.load(Ordering::Relaxed), 0);
    first.ack().await.unwrap();
    for _ in 0..2 {
        let claim = claims.next().await.expect("a claim");
        assert_eq!(claim.attempt(), 1);
        claim.ack().await.unwrap();
    }
    assert_eq!(consumer.stop().await.unwrap().acked, 0);
    spoke.close().await;
    other.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn a_program_that_stands_still_loses_its_claim_and_goes_on_with_the_next_event() {
    let hub = TestHub::start().await;
    let folder = tempfile::tempdir().unwrap();
    let work = "touch begun.$EVENTFLOW_EVENT_ID; until test -e go; do sleep 0.05; done";
    let program = program(&hub, folder.path(), work);
    let pid = program.id().unwrap();
    let spoke = hub.spoke().await;
    publish(&spoke, "e1").await;
    until("the command has begun", async || folder.path().join("begun.e1").exists()).await;

    process::signal(pid, "STOP");
    let mut claims = spoke.claims(consume()).await.unwrap();
    let claim = tokio::time::timeout(PATIENCE, claims.next()).await.expect("it is given away").unwrap();
    assert_eq!((claim.event().id.as_str(), claim.attempt()), ("e1", 2));
    claim.ack().await.unwrap();
    claims.stop().await.unwrap();

    process::signal(pid, "CONT");
    std::fs::write(folder.path().join("go"), "").unwrap();
    publish(&spoke, "e2").await;
    let said = tokio::time::timeout(PATIENCE, program.wait_with_output()).await.expect("it ends").unwrap();
    let stderr = String::from_utf8(said.stderr).unwrap();
    assert!(said.status.success(), "{stderr}");
    assert!(stderr.contains("e1: ") && stderr.contains("(E_EVENTFLOW_CLAIM_LOST)"), "{stderr}");
    assert!(stderr.ends_with("eventflow: done 1, failed 0, came too late 1\n"), "{stderr}");
    assert_eq!(spoke.outcome("e2", PATIENCE).await.unwrap().state, "success");

    let (_, trace) = spoke.show("e1").await.unwrap();
    assert_eq!(trace.state, "success");
    assert_eq!(trace.attempts.len(), 1, "that of the one that stood still: {trace:?}");
    spoke.close().await;
    hub.stop().await;
}
