//! Promise: what docs/client.md says that a spoke can do, it does, at a hub with its defaults.

use std::time::{Duration, SystemTime};

use eventflow::{
    event::Event,
    spoke::{Association, Consume, Handlers, Publish, RequestError, Schedule, Spoke, Wait, WaitError},
};
use serde_json::json;

use crate::support::{PATIENCE, TestHub};

/// Publishes `id` as an event `name` of the process `pid` in `orders`.
async fn event(spoke: &Spoke, id: &str, name: &str, pid: &str, data: serde_json::Value) {
    let publish = Publish::new("orders", name.to_owned(), pid.to_owned()).id(id.to_owned());
    spoke.publish(publish.data(&data).unwrap()).await.unwrap();
}

fn ids(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.id.as_str()).collect()
}

#[tokio::test]
async fn a_wait_sees_what_was_there_and_what_comes() {
    let hub = TestHub::start().await;
    let (spoke, other) = (hub.spoke().await, hub.spoke().await);
    event(&spoke, "e1", "created", "order-1", json!(null)).await;
    event(&spoke, "e2", "paid", "order-1", json!(null)).await;
    let wait = || Wait::new("orders", "order-1").timeout(PATIENCE);
    assert_eq!(spoke.wait(wait()).await.unwrap().id.as_str(), "e1");
    assert_eq!(spoke.wait(wait().names(["paid", "cancelled"])).await.unwrap().id.as_str(), "e2");
    let to_come = wait().name("paid").after_event("e2");
    let (waited, ()) = tokio::join!(other.wait(to_come), event(&spoke, "e3", "paid", "order-1", json!(1)));
    assert_eq!(waited.unwrap().id.as_str(), "e3");
    let never = wait().name("shipped");
    let error = spoke.wait(never.clone().timeout(Duration::from_millis(100))).await.unwrap_err();
    assert_eq!(error.code(), "E_EVENTFLOW_WAIT_TIMEOUT");
    assert_eq!(spoke.wait(never.timeout(Duration::ZERO)).await.unwrap_err().code(), error.code());
    let error = spoke.wait(wait().after_event("nobody")).await.unwrap_err();
    assert!(matches!(error, WaitError::NotFound { .. }), "{error}");
    spoke.close().await;
    other.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn an_outcome_is_waited_for_with_its_publish_or_without() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    event(&spoke, "e1", "created", "order-1", json!(null)).await;
    assert_eq!(spoke.outcome_now("e1").await.unwrap(), None);
    let handlers =
        Handlers::new().on("created", |_| async { Ok(()) }).on("paid", |_| async { Err("no funds".into()) });
    let consumer = spoke.consume_with(Consume::new("orders", "*"), handlers).await.unwrap();
    assert_eq!(spoke.outcome("e1", PATIENCE).await.unwrap().state, "success");
    assert_eq!(spoke.outcome_now("e1").await.unwrap().unwrap().state, "success");
    let paid = Publish::new("orders", "paid", "order-1").id("e2");
    let (published, ended) = spoke.publish_and_wait(paid, PATIENCE).await.unwrap();
    assert!(published.fresh);
    assert_eq!((ended.state.as_str(), ended.error.as_str()), ("dead", "no funds"));
    let shipped = Publish::new("orders", "shipped", "order-1").id("e3");
    let (_, ended) = spoke.publish_and_wait(shipped, PATIENCE).await.unwrap();
    assert!(ended.error.starts_with("no handler for events of the name \"shipped\""), "{}", ended.error);
    assert_eq!(spoke.outcome("nobody", PATIENCE).await.unwrap_err().code(), "E_EVENTFLOW_DB_EVENT_NOT_FOUND");
    consumer.stop().await.unwrap();
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn a_request_gets_the_answer_to_it() {
    let hub = TestHub::start().await;
    let (spoke, server) = (hub.spoke().await, hub.spoke().await);
    let consumer = {
        let replies = server.clone();
        let handler = move |question: Event| {
            let server = replies.clone();
            async move {
                let answer = Publish::reply_to(&question, "answered").data(&json!({ "left": 3 }))?;
                server.publish(answer).await?;
                Ok::<(), eventflow::spoke::BoxError>(())
            }
        };
        server.consume(Consume::new("stock", "asked"), handler).await.unwrap()
    };
    let question = Publish::new("stock", "asked", "article-3").id("q1");
    let answer = spoke.request(question, PATIENCE).await.unwrap();
    assert_eq!(
        (answer.name.as_str(), answer.pid.as_str(), answer.data.as_str()),
        ("answered", "article-3", r#"{"left":3}"#)
    );
    let same = spoke.wait(Wait::answer_to("q1").timeout(PATIENCE)).await.unwrap();
    assert_eq!(same, answer);
    let nobody = Publish::new("stock", "ignored", "article-3").id("q2");
    let error = spoke.request(nobody, Duration::from_millis(300)).await.unwrap_err();
    assert!(matches!(&error, RequestError::Unanswered { id, .. } if id.as_str() == "q2"), "{error}");
    consumer.stop().await.unwrap();
    spoke.close().await;
    server.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn waits_outlive_a_hub_that_restarts() {
    let hub = TestHub::start().await;
    let port = hub.handle.info().address.port();
    let spoke = hub.spoke().await;
    let waiting = tokio::spawn({
        let spoke = spoke.clone();
        async move { spoke.wait(Wait::new("orders", "order-1").name("paid").timeout(PATIENCE)).await }
    });
    let folder = hub.stop().await;
    let hub = TestHub::on(folder, |config| config.hub.internal_port = port).await;
    let other = hub.spoke().await;
    event(&other, "e1", "paid", "order-1", json!(null)).await;
    assert_eq!(waiting.await.unwrap().unwrap().id.as_str(), "e1");
    spoke.close().await;
    other.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn logs_are_narrowed_and_processes_are_listed() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    event(&spoke, "e1", "created", "order-1", json!(null)).await;
    event(&spoke, "e2", "created", "order-2", json!(null)).await;
    event(&spoke, "e3", "paid", "order-1", json!(null)).await;
    assert_eq!(ids(&spoke.log("orders", "order-1").collect(9).await.unwrap()), ["e1", "e3"]);
    assert_eq!(ids(&spoke.log("orders", "order-1").names(["paid"]).collect(9).await.unwrap()), ["e3"]);
    assert_eq!(ids(&spoke.domain_log("orders").page_size(1).collect(2).await.unwrap()), ["e3", "e2"]);
    let tomorrow = SystemTime::now() + Duration::from_secs(24 * 60 * 60);
    assert_eq!(spoke.log("orders", "order-1").from(tomorrow).collect(9).await.unwrap(), []);
    assert_eq!(spoke.log("orders", "order-1").to(tomorrow).collect(9).await.unwrap().len(), 2);
    let pids = spoke.pids("orders").page_size(1).collect(9).await.unwrap();
    assert_eq!(pids.iter().map(|pid| pid.as_str()).collect::<Vec<_>>(), ["order-1", "order-2"]);
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn a_log_has_a_state() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    assert_eq!(spoke.state("orders", "order-1").await.unwrap(), json!({}));
    event(&spoke, "e1", "created", "order-1", json!({ "total": 12, "tags": ["new"] })).await;
    event(&spoke, "e2", "seen", "order-1", json!(null)).await;
    event(&spoke, "e3", "paid", "order-1", json!({ "paid": { "by": "card" }, "tags": ["new", "web"] })).await;
    let state = json!({ "total": 12, "tags": ["new", "web"], "paid": { "by": "card" } });
    assert_eq!(spoke.state("orders", "order-1").await.unwrap(), state);
    let log = spoke.log("orders", "order-1").collect(9).await.unwrap();
    assert_eq!(eventflow::event::compose(&log).unwrap(), state);
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn a_schedule_runs_at_its_time_and_a_cancelled_one_never() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let reminder = || Publish::new("orders", "reminded", "order-1");
    let cancelled = spoke.schedule(reminder(), Schedule::after(Duration::from_secs(3600))).await.unwrap();
    let wait = Wait::new("orders", "order-1").timeout(PATIENCE);
    let scheduled =
        spoke.schedule(reminder().id("s1"), Schedule::after(Duration::from_millis(200))).await.unwrap();
    assert!(scheduled.fresh && scheduled.id.as_str() == "s1");
    let again = spoke.schedule(reminder().id("s1"), Schedule::at(scheduled.due)).await;
    assert!(again.is_ok_and(|again| !again.fresh) || SystemTime::now() > at(scheduled.due));
    spoke.cancel(&cancelled.id).await.unwrap();
    assert_eq!(spoke.cancel(&cancelled.id).await.unwrap_err().code(), "E_EVENTFLOW_SCHEDULE_NOT_FOUND");
    assert_eq!(spoke.wait(wait).await.unwrap().id.as_str(), "s1");
    assert!(SystemTime::now() >= at(scheduled.due));
    assert_eq!(spoke.cancel("s1").await.unwrap_err().code(), "E_EVENTFLOW_SCHEDULE_EXECUTED");
    spoke.close().await;
    hub.stop().await;
}

fn at(millis: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(millis.unsigned_abs())
}

#[tokio::test]
async fn events_are_stored_in_batches_or_unpublished_related_and_deleted() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let order = |id: &str| Publish::new("orders", "created", "order-1").id(id.to_owned());
    let published = spoke.publish_all(vec![order("e1"), order("e2").rid("e1")]).await.unwrap();
    assert!(published[0].seq < published[1].seq);
    let error = spoke.publish_all(vec![order("e3"), order("e4").rid("nobody")]).await.unwrap_err();
    assert_eq!(error.code(), "E_EVENTFLOW_RID_NOT_FOUND");
    assert_eq!(spoke.persist(order("e5")).await.unwrap().seq, 0);
    assert_eq!(spoke.show("e5").await.unwrap().1.state, "persisted");
    assert!(spoke.publish(order("e5")).await.unwrap().seq > 0);
    assert_eq!(ids(&spoke.log("orders", "order-1").collect(9).await.unwrap()), ["e1", "e2", "e5"]);

    let parcel = Association::child_process("parcels", "parcel-7");
    spoke.associate("e1", parcel.clone()).await.unwrap();
    spoke.associate("e2", Association::entity("customer-4")).await.unwrap();
    assert_eq!(
        spoke.associate("nobody", parcel.clone()).await.unwrap_err().code(),
        "E_EVENTFLOW_DB_EVENT_NOT_FOUND"
    );
    assert_eq!(ids(&spoke.child_log("parcels", "parcel-7").collect(9).await.unwrap()), ["e1"]);
    assert_eq!(ids(&spoke.entity_log("customer-4").domain("orders").collect(9).await.unwrap()), ["e2"]);
    spoke.dissociate("e1", parcel).await.unwrap();
    assert_eq!(spoke.child_log("parcels", "parcel-7").collect(9).await.unwrap(), []);

    spoke.delete("e1").await.unwrap();
    assert_eq!(spoke.delete("e1").await.unwrap_err().code(), "E_EVENTFLOW_DB_EVENT_NOT_FOUND");
    assert_eq!(spoke.delete_log("orders", "order-1").await.unwrap(), 2);
    assert_eq!(spoke.delete_log("orders", "order-1").await.unwrap(), 0);
    spoke.close().await;
    hub.stop().await;
}
