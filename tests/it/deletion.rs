//! Promise: what is deleted is gone, with all that hangs on it, and is handed out to nobody; who holds it hears so at the
//! end of its claim.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use eventflow::{
    event::code,
    spoke::{Consume, Publish},
};
use sea_orm::ConnectionTrait;

use crate::support::{Raw, TestHub, engine, until};

async fn publish(link: &mut Raw, id: &str) -> Vec<String> {
    let req = format!("1{}", fastrand::u32(..));
    link.ask(&["publish", &req, id, "orders", "created", "order-1", "", "{}"]).await
}

async fn delete(link: &mut Raw, what: &str) -> Vec<String> {
    let req = format!("2{}", fastrand::u32(..));
    let answer = link.ask(&["delete", &req, what]).await;
    [&answer[..1], &answer[2..]].concat()
}

async fn delete_event(link: &mut Raw, id: &str) {
    assert_eq!(delete(link, &format!(r#"{{"id":"{id}"}}"#)).await, ["ok", "deleted", "1"]);
}

async fn consume(link: &mut Raw, credit: u32) {
    let options = format!("{{\"credit\":{credit}}}");
    assert_eq!(link.ask(&["consume", "1", "1", "", "orders", "*", &options]).await[0], "ok");
}

/// The next claim: its token and the event's id.
async fn claim(link: &mut Raw) -> (String, String) {
    let claim = link.event().await;
    assert_eq!(claim[0], "claim", "{claim:?}");
    (claim[2].clone(), claim[5].clone())
}

/// The first number that a query gives.
async fn number(hub: &TestHub, sql: &str) -> i64 {
    let database = engine::open(&hub.database()).await;
    let query = engine::statement(&database, sql, []);
    let row = database.query_one_raw(query).await.unwrap().unwrap();
    let number = row.try_get_by_index(0).unwrap();
    database.close().await.unwrap();
    number
}

/// What the table `log` remembers of deletions.
async fn remembered(hub: &TestHub) -> Vec<serde_json::Value> {
    let database = engine::open(&hub.database()).await;
    let sql = format!("SELECT {} FROM log WHERE message LIKE 'deleted:%'", engine::text(&database, "error"));
    let rows = database.query_all_raw(engine::statement(&database, sql, [])).await.unwrap();
    database.close().await.unwrap();
    let line = |row: &sea_orm::QueryResult| row.try_get_by_index::<String>(0).unwrap();
    rows.iter().map(|row| serde_json::from_str(&line(row)).unwrap()).collect()
}

fn count_of(lines: &[serde_json::Value]) -> i64 {
    lines.iter().map(|line| line["count"].as_i64().unwrap()).sum()
}

#[tokio::test]
async fn what_is_deleted_while_it_waits_is_handed_out_to_nobody() {
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    let mut consumer = hub.v1().await;
    consume(&mut consumer, 1).await;
    for id in ["e1", "e2", "e3", "e4"] {
        publish(&mut link, id).await;
    }
    let (token, id) = claim(&mut consumer).await;
    assert_eq!(id, "e1");
    delete_event(&mut link, "e2").await;
    delete_event(&mut link, "e3").await;
    assert_eq!(hub.handle.metrics().hub.pending, 1, "with the answer nobody will hand them out");
    assert_eq!(consumer.ask(&["ack", "2", &token]).await[0], "ok");
    let (token, id) = claim(&mut consumer).await;
    assert_eq!(id, "e4");
    assert_eq!(consumer.ask(&["ack", "3", &token]).await[0], "ok");

    // Nor to one that comes later, from the database or from the window for late subscribers.
    publish(&mut link, "e5").await;
    let other = ["publish", "1", "u1", "users", "created", "user-1", "", "{}"];
    assert_eq!(link.ask(&other).await[2], "committed");
    drop(consumer);
    until("the consumer to be gone", || async { hub.handle.metrics().hub.in_flight == 0 }).await;
    delete_event(&mut link, "e5").await;
    delete_event(&mut link, "u1").await;
    let mut late = hub.v1().await;
    late.ask(&["subscribe", "1", "1", "users", "*"]).await;
    let mut consumer = hub.v1().await;
    consume(&mut consumer, 9).await;
    publish(&mut link, "e6").await;
    assert_eq!(claim(&mut consumer).await.1, "e6");
    let other = ["publish", "2", "u2", "users", "created", "user-1", "", "{}"];
    assert_eq!(link.ask(&other).await[2], "committed");
    assert_eq!(late.event().await[3], "u2");
    assert_eq!(hub.handle.metrics().hub.deleted, 4);
    drop((consumer, late));
    hub.stop().await;
}

#[tokio::test]
async fn who_holds_a_deleted_event_hears_so_and_goes_on() {
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    let (mut consumer, mut other) = (hub.v1().await, hub.v1().await);
    consume(&mut consumer, 3).await;
    for id in ["e1", "e2", "e3"] {
        publish(&mut link, id).await;
    }
    let mut tokens = Vec::new();
    for _ in 0..3 {
        tokens.push(claim(&mut consumer).await.0);
    }
    assert_eq!(delete(&mut link, r#"{"domain":"orders","pid":"order-1"}"#).await, ["ok", "deleted", "3"]);
    assert_eq!(consumer.ask(&["ack", "2", &tokens[0]]).await[2], code::EVENT_NOT_FOUND);
    assert_eq!(
        consumer.ask(&["nack", "3", &tokens[1], r#"{"reason":"no"}"#]).await[2],
        code::EVENT_NOT_FOUND
    );
    assert_eq!(consumer.ask(&["ack", "4", &tokens[1]]).await[2], code::CLAIM_LOST, "its claim has ended");
    assert_eq!(consumer.ask(&["release", "5", &tokens[2]]).await[0], "ok");
    for (n, id) in ["f1", "f2", "f3"].iter().enumerate() {
        publish(&mut link, id).await;
        let (token, got) = claim(&mut consumer).await;
        assert_eq!(got, *id, "nothing that was deleted is handed out again");
        if n < 2 {
            assert_eq!(consumer.ask(&["ack", &format!("1{n}"), &token]).await[0], "ok");
        }
    }
    // The link of who holds one is lost: nobody gets it.
    delete_event(&mut link, "f3").await;
    consume(&mut other, 9).await;
    drop(consumer);
    until("the claim to end", || async { hub.handle.metrics().hub.in_flight == 0 }).await;
    publish(&mut link, "g").await;
    assert_eq!(claim(&mut other).await.1, "g");
    assert_eq!(number(&hub, "SELECT count(*) FROM v1_attempt").await, 0);
    drop(other);
    hub.stop().await;
}

#[tokio::test]
async fn the_clients_consumer_goes_on_when_its_event_is_deleted() {
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    let spoke = hub.spoke().await;
    let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
    let go_on = Arc::new(tokio::sync::Semaphore::new(0));
    let handled = Arc::new(AtomicUsize::new(0));
    let handler = {
        let (go_on, handled) = (go_on.clone(), handled.clone());
        move |event: eventflow::event::Event| {
            let (begun, go_on, handled) = (begun.clone(), go_on.clone(), handled.clone());
            async move {
                begun.send(event.id.to_string()).unwrap();
                go_on.acquire().await.unwrap().forget();
                handled.fetch_add(1, Ordering::SeqCst);
                Ok::<(), String>(())
            }
        }
    };
    let consumer = spoke.consume(Consume::new("orders", "*").credit(1), handler).await.unwrap();
    for id in ["e1", "e2"] {
        spoke.publish(Publish::new("orders", "created", "order-1").id(id.to_owned())).await.unwrap();
    }
    assert_eq!(begins.recv().await.unwrap(), "e1");
    delete_event(&mut link, "e1").await;
    go_on.add_permits(2);
    assert_eq!(begins.recv().await.unwrap(), "e2", "it goes on");
    until("one outcome", || async { hub.handle.metrics().hub.outcomes["success"] == 1 }).await;
    assert_eq!((handled.load(Ordering::SeqCst), spoke.status().claims_lost), (2, 1));
    drop(consumer);
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn a_log_of_2500_events_goes_in_parts_while_others_publish() {
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    for part in 0..5 {
        let events: Vec<_> = (0..500)
            .map(|n| {
                format!(r#"{{"id":"e{part}-{n}","domain":"orders","name":"n","pid":"order-1","data":{n}}}"#)
            })
            .collect();
        let events = format!("[{}]", events.join(","));
        assert_eq!(link.ask(&["batch", &(part + 1).to_string(), &events]).await[2], "batch");
    }
    let other = ["publish", "6", "other", "orders", "n", "order-2", "e0-0", "{}"];
    assert_eq!(link.ask(&other).await[2], "committed");
    // All in one go: what is published after the deletion began stays, though it has parts to go.
    let mut records = "delete\u{1f}7\u{1f}{\"domain\":\"orders\",\"pid\":\"order-1\"}\u{1e}".to_owned();
    for n in 0..20 {
        records += &format!(
            "publish\u{1f}{}\u{1f}late{n}\u{1f}orders\u{1f}n\u{1f}order-1\u{1f}\u{1f}1\u{1e}",
            10 + n
        );
    }
    link.bytes(records.as_bytes()).await;
    for n in 0..20 {
        assert_eq!(link.reply(&(10 + n).to_string()).await[2], "committed");
    }
    assert_eq!(link.reply("7").await[2..], ["deleted", "2500"]);
    assert_eq!(number(&hub, "SELECT count(*) FROM event").await, 21);
    assert_eq!(number(&hub, "SELECT count(*) FROM event_published").await, 21);
    assert_eq!(number(&hub, "SELECT count(*) FROM event WHERE rid IS NOT NULL").await, 0);
    let lines = remembered(&hub).await;
    assert!(lines.len() == 3 && lines.iter().all(|line| line["pid"] == "order-1"), "{lines:?}");
    assert_eq!(count_of(&lines), 2_500);
    let operator = hub.bundle().uid().unwrap().to_string();
    assert!(lines.iter().all(|line| line["by"] == *operator), "{lines:?}");
    assert_eq!(delete(&mut link, r#"{"domain":"orders","pid":"order-1"}"#).await, ["ok", "deleted", "20"]);
    assert_eq!(delete(&mut link, r#"{"domain":"orders","pid":"order-1"}"#).await, ["ok", "deleted", "0"]);
    assert_eq!(hub.handle.metrics().hub.deleted, 2_520);
    hub.stop().await;
}

#[tokio::test]
async fn a_deletion_that_a_drain_interrupts_has_removed_whole_parts_and_is_asked_for_again() {
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    for part in 0..4 {
        let event =
            |n| format!(r#"{{"id":"e{part}-{n}","domain":"orders","name":"n","pid":"p","data":{n}}}"#);
        let events = format!("[{}]", (0..1_000).map(event).collect::<Vec<_>>().join(","));
        assert_eq!(link.ask(&["batch", &(part + 1).to_string(), &events]).await[2], "batch");
    }
    let log = r#"{"domain":"orders","pid":"p"}"#;
    link.send(&["delete", "9", log]).await;
    until("its first part", || async { hub.handle.metrics().hub.deleted > 0 }).await;
    let (folder, answers) = tokio::join!(hub.stop(), async {
        let mut answers = Vec::new();
        while let Some(answer) = link.answer().await {
            answers.push(answer);
        }
        answers
    });
    let answer = answers.iter().find(|answer| answer.get(1).is_some_and(|req| req == "9"));
    let answer = answer.expect("it is answered before the link ends");
    let deleted = match &*answer[0] {
        // The drain came when all was done.
        "ok" => 4_000,
        _ => {
            assert_eq!((&*answer[2], &*answer[4]), (code::HUB_DRAINING, "1000"), "{answer:?}");
            let gone = answer[3].split_once('(').and_then(|(_, rest)| rest.split(' ').next());
            gone.expect("it says how many are gone").parse().unwrap()
        }
    };
    println!("{deleted} of 4000 were deleted");
    let hub = TestHub::on(folder, |_| {}).await;
    assert_eq!(number(&hub, "SELECT 4000 - count(*) FROM event").await, deleted);
    assert_eq!(deleted % 1_000, 0);
    let mut link = hub.v1().await;
    assert_eq!(delete(&mut link, log).await, ["ok", "deleted", &(4_000 - deleted).to_string()]);
    assert_eq!(count_of(&remembered(&hub).await), 4_000);
    hub.stop().await;
}

#[tokio::test]
async fn a_deleted_id_may_be_published_anew_and_old_claims_dont_touch_it() {
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    let mut consumer = hub.v1().await;
    consume(&mut consumer, 9).await;
    publish(&mut link, "e").await;
    let (old, _) = claim(&mut consumer).await;
    // In the order in which they were sent, answered or not.
    let anew = "publish\u{1f}2\u{1f}e\u{1f}orders\u{1f}changed\u{1f}order-1\u{1f}\u{1f}2\u{1e}";
    let records = format!(
        "{0}delete\u{1f}3\u{1f}{{\"id\":\"e\"}}\u{1e}{1}",
        anew.replace("\u{1f}2\u{1f}e", "\u{1f}1\u{1f}e"),
        anew
    );
    link.bytes(records.as_bytes()).await;
    assert_eq!(link.reply("1").await[2], code::EVENT_CONFLICT);
    assert_eq!(link.reply("3").await[2..], ["deleted", "1"]);
    assert_eq!(link.reply("2").await[2], "committed");
    let (new, id) = claim(&mut consumer).await;
    assert!(id == "e" && new != old);
    assert_eq!(consumer.ask(&["ack", "2", &old]).await[2], code::EVENT_NOT_FOUND, "that one is gone");
    assert_eq!(number(&hub, "SELECT count(*) FROM event_published WHERE success IS NULL").await, 1);
    assert_eq!(consumer.ask(&["ack", "3", &new]).await[0], "ok");
    assert_eq!(number(&hub, "SELECT count(*) FROM event_published WHERE success IS NULL").await, 0);
    drop(consumer);
    hub.stop().await;
}

#[tokio::test]
async fn what_waits_for_its_time_stays_when_its_log_goes_and_goes_by_its_id() {
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    publish(&mut link, "e1").await;
    // The year 2100.
    let due = "4102444800000";
    for (req, id) in [("3", "reminder"), ("4", "alarm")] {
        let scheduled = ["schedule", req, due, id, "orders", "reminded", "order-1", "", "{}"];
        assert_eq!(link.ask(&scheduled).await[0], "ok");
    }
    let log = r#"{"domain":"orders","pid":"order-1"}"#;
    assert_eq!(delete(&mut link, log).await, ["ok", "deleted", "1"]);
    assert_eq!(delete(&mut link, log).await, ["ok", "deleted", "0"]);
    let waiting = || hub.handle.metrics().hub.schedules_waiting;
    assert_eq!(waiting(), 2);

    delete_event(&mut link, "reminder").await;
    assert_eq!(waiting(), 1, "the gauge follows");
    assert_eq!(link.ask(&["cancel", "5", "alarm"]).await[0], "ok");
    assert_eq!((waiting(), number(&hub, "SELECT count(*) FROM event").await), (0, 0));
    drop(link);
    hub.stop().await;
}

#[tokio::test]
async fn a_hub_may_forbid_it() {
    let hub = TestHub::with(|config| config.spokes.may_delete = false).await;
    let mut link = hub.v1().await;
    publish(&mut link, "e").await;
    for what in [r#"{"id":"e"}"#, r#"{"domain":"orders","pid":"order-1"}"#] {
        let answer = delete(&mut link, what).await;
        assert_eq!((&*answer[0], &*answer[1], &*answer[3]), ("err", code::NOT_ALLOWED, ""));
        assert!(answer[2].contains("spokes.may_delete"), "{answer:?}");
    }
    assert_eq!(number(&hub, "SELECT count(*) FROM event").await, 1);
    hub.stop().await;
}

#[tokio::test]
async fn what_is_not_there_is_told() {
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    let answer = delete(&mut link, r#"{"id":"nobody"}"#).await;
    assert_eq!((&*answer[0], &*answer[1]), ("err", code::EVENT_NOT_FOUND));
    assert_eq!(delete(&mut link, r#"{"domain":"orders","pid":"none"}"#).await, ["ok", "deleted", "0"]);
    hub.stop().await;
}
