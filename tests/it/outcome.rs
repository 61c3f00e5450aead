//! Promise: who asks for the outcome of an event gets it, recorded or to come.

use std::time::Instant;

use eventflow::event::code;
use sea_orm::ConnectionTrait;

use crate::support::{Raw, TestHub, engine, until};

const SOON: &str = r#"{"timeout_ms":50}"#;
const LONG: &str = r#"{"timeout_ms":30000}"#;
const NOW: &str = r#"{"timeout_ms":0}"#;

async fn publish(link: &mut Raw, id: &str) {
    let answer = link.ask(&["publish", "1", id, "orders", "created", "1", "", "{}"]).await;
    assert_eq!(answer[..3], ["ok", "1", "committed"], "{answer:?}");
}

/// A link that consumes one event at a time, and the token of its first claim.
async fn claim(hub: &TestHub) -> (Raw, String) {
    let mut link = hub.v1().await;
    link.ask(&["consume", "1", "1", "", "orders", "*", r#"{"credit":1}"#]).await;
    let claim = link.event().await;
    (link, claim[2].clone())
}

fn ended(answer: &[String]) -> serde_json::Value {
    assert_eq!((&*answer[0], &*answer[2]), ("ok", "outcome"), "{answer:?}");
    serde_json::from_str(&answer[3]).unwrap()
}

async fn waits(hub: &TestHub, number: i64) {
    until("so many wait", || async { hub.handle.metrics().hub.waits == number }).await;
}

#[tokio::test]
async fn who_waits_hears_how_it_ended_and_who_asks_later_too() {
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    publish(&mut link, "good").await;
    publish(&mut link, "bad").await;
    assert_eq!(link.ask(&["outcome", "2", "good", NOW]).await, ["ok", "2", "outcome", "pending"]);
    link.send(&["outcome", "3", "good", LONG]).await;
    link.send(&["outcome", "4", "good", LONG]).await;
    link.send(&["outcome", "5", "bad", LONG]).await;
    waits(&hub, 3).await;
    // The link serves other requests meanwhile.
    assert_eq!(link.ask(&["read", "6", "good"]).await, ["ok", "6"]);

    let (mut worker, token) = claim(&hub).await;
    worker.ask(&["ack", "2", &token]).await;
    let operator = hub.bundle().uid().unwrap();
    for req in ["3", "4"] {
        let outcome = ended(&link.reply(req).await);
        assert_eq!((&outcome["state"], &outcome["consumer"]), (&"success".into(), &operator.as_str().into()));
        assert!(outcome["ended"].as_i64().unwrap() > 0 && outcome["error"].is_null(), "{outcome}");
    }
    let token = worker.event().await[2].clone();
    worker.ask(&["nack", "3", &token, r#"{"reason":"no such customer","final":true}"#]).await;
    let outcome = ended(&link.reply("5").await);
    assert_eq!((&outcome["state"], &outcome["error"]), (&"dead".into(), &"no such customer".into()));
    waits(&hub, 0).await;
    for options in [NOW, SOON] {
        assert_eq!(ended(&link.ask(&["outcome", "7", "bad", options]).await), outcome);
    }
    drop((link, worker));
    hub.stop().await;
}

#[tokio::test]
async fn what_does_not_end_in_time_is_said_to_wait() {
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    publish(&mut link, "open").await;
    let answer = link.ask(&["outcome", "2", "open", SOON]).await;
    assert_eq!(answer[..3], ["err", "2", code::WAIT_TIMEOUT]);
    assert!(answer[3].contains("\"open\"") && answer[3].contains("50ms"), "{}", answer[3]);
    assert_eq!(answer[4], "", "final");
    for options in [NOW, SOON] {
        let answer = link.ask(&["outcome", "3", "nothing", options]).await;
        assert_eq!(answer[..3], ["err", "3", code::EVENT_NOT_FOUND]);
    }
    let answer = link.ask(&["outcome", "4", "open", r#"{"group":"mail","timeout_ms":10}"#]).await;
    assert_eq!(answer[..3], ["err", "4", code::WAIT_TIMEOUT], "no such group has ended it");
    waits(&hub, 0).await;
    drop(link);
    hub.stop().await;
}

#[tokio::test]
async fn who_waits_hears_at_once_that_the_event_is_deleted() {
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    publish(&mut link, "gone").await;
    link.send(&["outcome", "2", "gone", LONG]).await;
    waits(&hub, 1).await;
    let began = Instant::now();
    assert_eq!(link.ask(&["delete", "3", r#"{"id":"gone"}"#]).await, ["ok", "3", "deleted", "1"]);
    assert_eq!(link.reply("2").await[..3], ["err", "2", code::EVENT_NOT_FOUND]);
    println!("told after {:?}", began.elapsed());
    drop(link);
    hub.stop().await;
}

/// The npm stack writes outcomes itself: nobody tells the hub.
#[tokio::test]
async fn an_outcome_that_another_program_writes_is_seen() {
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    for id in ["claimed", "deleted"] {
        publish(&mut link, id).await;
    }
    let database = engine::open(&hub.database()).await;
    let claim = "UPDATE event_published SET consumed_spoke = '2026-11-30 12:00:00.000', consumer = 'NPM-1' \
                 WHERE event_id IN ('claimed', 'deleted')";
    database.execute_unprepared(claim).await.unwrap();
    link.send(&["outcome", "2", "claimed", LONG]).await;
    link.send(&["outcome", "3", "deleted", LONG]).await;
    waits(&hub, 2).await;
    let began = Instant::now();
    let end = "UPDATE event_published SET failed = '2026-11-30 12:00:01.500' WHERE event_id = 'claimed'";
    database.execute_unprepared(end).await.unwrap();
    database.execute_unprepared("DELETE FROM event_published WHERE event_id = 'deleted'").await.unwrap();
    database.execute_unprepared("DELETE FROM event WHERE id = 'deleted'").await.unwrap();
    let outcome = ended(&link.reply("2").await);
    assert_eq!((&outcome["state"], &outcome["consumer"]), (&"dead".into(), &"NPM-1".into()));
    assert_eq!(outcome["ended"], engine::held(1_796_040_001_500));
    assert_eq!(link.reply("3").await[..3], ["err", "3", code::EVENT_NOT_FOUND]);
    println!("seen after {:?}", began.elapsed());
    database.close().await.unwrap();
    drop(link);
    hub.stop().await;
}

/// Another program claims and ends what is waited for already: a hundred events at once, each with two who wait.
#[tokio::test]
async fn what_another_program_takes_and_ends_is_seen_in_a_moment_however_many_wait() {
    const IN_A_MOMENT: &str = r#"{"timeout_ms":4000}"#;
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    let ids: Vec<_> = (0..100).map(|number| format!("e{number}")).collect();
    for id in &ids {
        publish(&mut link, id).await;
    }
    for (number, id) in ids.iter().chain(&ids).enumerate() {
        link.send(&["outcome", &(number + 10).to_string(), id, IN_A_MOMENT]).await;
    }
    waits(&hub, 200).await;
    let database = engine::open(&hub.database()).await;
    let end = "UPDATE event_published SET consumed_spoke = '2026-11-30 12:00:00.000', consumer = 'NPM-1', \
               success = '2026-11-30 12:00:01.500'";
    database.execute_unprepared(end).await.unwrap();
    for number in 0..200 {
        let outcome = ended(&link.reply(&(number + 10).to_string()).await);
        assert_eq!((&outcome["state"], &outcome["consumer"]), (&"success".into(), &"NPM-1".into()));
    }
    database.close().await.unwrap();
    drop(link);
    hub.stop().await;
}
