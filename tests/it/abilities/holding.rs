//! Claims: held for long, for a bounded time, tried again or given up.

use std::time::Duration;

use eventflow::{
    event::Event,
    spoke::{BoxError, Consume, GroupChange, Handlers, Nack, Received, SettleError},
};
use serde_json::json;

use super::place::Place;
use crate::support::PATIENCE;

/// Retries that a test needn't wait for long.
async fn soon(at: &Place, attempts: u32) {
    let change = GroupChange::new()
        .max_attempts(attempts)
        .delay(Duration::from_millis(50))
        .max_delay(Duration::from_millis(50));
    at.spoke.default_group().set(change).await.unwrap();
}

async fn outcome(at: &Place, id: &str) -> (String, String) {
    let ended = at.spoke.outcome(id, PATIENCE).await.unwrap();
    (ended.state, ended.error)
}

#[tokio::test]
async fn hold_a_claim_for_long_or_see_it_lost() {
    let at = Place::new().await;
    at.event("e1", "created", json!(null)).await;
    let consume = Consume::new("orders", "created").lease(Duration::from_secs(1));
    let handlers = Handlers::new().on("created", |event: Received| async move {
        // More than three leases.
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(3_200)) => Ok(()),
            () = event.hold.lost() => Err("it was given away".into()),
        }
    });
    let consumer = at.spoke.consume_with(consume.clone(), handlers).await.unwrap();
    assert_eq!(outcome(&at, "e1").await.0, "success");
    assert_eq!(consumer.stop().await.unwrap().acked, 1);

    let mut claims = at.spoke.claims(consume.group("short")).await.unwrap();
    at.event("e2", "created", json!(null)).await;
    let claim = claims.next().await.expect("a claim");
    assert_eq!(claim.attempt(), 1);
    claim.extend(Duration::from_secs(60)).await.unwrap();
    at.spoke.group("short").remove().await.unwrap();
    let refused = claim.extend(Duration::from_secs(60)).await;
    assert_eq!(refused, Err(SettleError::ClaimLost));
    tokio::time::timeout(PATIENCE, claim.lost()).await.expect("it is told");
    drop((claim, claims));
    // The default group has it still.
    at.run("eventflow consume orders --count 1").await.well();

    at.script("work", "sleep 1.5");
    at.event("e3", "created", json!(null)).await;
    let row = "hold a claim for long, or see it lost";
    at.row(row, &[("60s", "1s")], "--count 1").await.well();
    assert_eq!(outcome(&at, "e3").await.0, "success");
    at.leave().await;
}

#[tokio::test]
async fn a_time_limit_for_handlers() {
    let at = Place::new().await;
    soon(&at, 1).await;
    at.event("e1", "created", json!(null)).await;
    let handler = |_: Event| std::future::pending::<Result<(), BoxError>>();
    let consume = Consume::new("orders", "created").handler_timeout(Duration::from_millis(100));
    let consumer = at.spoke.consume(consume, handler).await.unwrap();
    let (state, error) = outcome(&at, "e1").await;
    assert!(state == "dead" && error.starts_with("the handler didn't end within 100ms"), "{state}: {error}");
    consumer.stop().await.unwrap();

    at.script("work", "sleep 60");
    at.event("e2", "created", json!(null)).await;
    at.row("a time limit for handlers", &[("5m", "300ms")], "--count 1").await.with(1);
    let (state, error) = outcome(&at, "e2").await;
    assert!(state == "dead" && error.contains("didn't end within 300ms"), "{state}: {error}");
    at.leave().await;
}

#[tokio::test]
async fn retry_later_or_give_up() {
    let at = Place::new().await;
    soon(&at, 3).await;
    for id in ["e1", "e2", "e3"] {
        at.event(id, "created", json!(null)).await;
    }
    let handlers = Handlers::new().on("created", |event: Received| async move {
        match (event.id.as_str(), event.attempt) {
            ("e1", 1) => Err(Nack::new("later").after(Duration::from_millis(200)).into()),
            ("e1", _) => Ok(()),
            ("e2", _) => Err(Nack::new("never").give_up().into()),
            (_, attempt) => Err(format!("attempt {attempt}").into()),
        }
    });
    let consumer = at.spoke.consume_with(Consume::new("orders", "created"), handlers).await.unwrap();
    assert_eq!(outcome(&at, "e1").await.0, "success");
    assert_eq!(outcome(&at, "e2").await, ("dead".to_owned(), "never".to_owned()));
    assert_eq!(outcome(&at, "e3").await, ("dead".to_owned(), "attempt 3".to_owned()));
    consumer.stop().await.unwrap();
    let (_, trace) = at.spoke.show("e2").await.unwrap();
    assert_eq!(trace.attempts.len(), 1);

    at.script(
        "work",
        "case $EVENTFLOW_EVENT_ID$EVENTFLOW_EVENT_ATTEMPT in e42) exit 0;; e4*) exit 7;; *) exit 100;; esac",
    );
    at.event("e4", "created", json!(null)).await;
    at.event("e5", "created", json!(null)).await;
    let said = at.row("retry later, or give up", &[], "--count 3").await.with(1);
    assert!(said.stderr.contains("done 1, failed 2"), "{said:?}");
    assert_eq!(outcome(&at, "e4").await.0, "success");
    assert_eq!(outcome(&at, "e5").await, ("dead".to_owned(), "exit code 100".to_owned()));
    at.leave().await;
}
