//! Promise: who waits for an event gets the first that there is, whether it happened before the wait, while the wait
//! began, or after it.

use std::time::Duration;

use eventflow::{event::code, metrics::ActorKind};
use sea_orm::ConnectionTrait;

use crate::support::{Raw, TestHub, engine, until};

const SOON: u32 = 50;
const LONG: u32 = 30_000;

fn for_order(pid: &str, rest: &str, timeout_ms: u32) -> String {
    format!(r#"{{"domain":"orders","pid":"{pid}"{rest},"timeout_ms":{timeout_ms}}}"#)
}

/// Time and number of the new event.
async fn publish(link: &mut Raw, id: &str, name: &str, pid: &str, rid: &str) -> (i64, u64) {
    let answer = link.ask(&["publish", "1", id, "orders", name, pid, rid, "{}"]).await;
    assert_eq!(answer[..3], ["ok", "1", "committed"], "{answer:?}");
    (answer[3].parse().unwrap(), answer[4].parse().unwrap())
}

/// The id of the event that answers a wait.
async fn met(link: &mut Raw, req: &str) -> String {
    let answer = link.reply(req).await;
    assert_eq!(answer, ["ok", req]);
    let item = link.put_aside().expect("the event comes before the answer");
    assert_eq!(item[..2], ["item", req], "one at a time");
    item[2].clone()
}

async fn wait(link: &mut Raw, json: &str) -> String {
    link.send(&["wait", "5", json]).await;
    met(link, "5").await
}

async fn timed_out(link: &mut Raw, json: &str) -> String {
    let answer = link.ask(&["wait", "6", json]).await;
    assert_eq!(answer[..3], ["err", "6", code::WAIT_TIMEOUT], "{json}");
    assert!(link.put_aside().is_none());
    answer[3].clone()
}

async fn waits(hub: &TestHub, number: i64) {
    until("so many wait", || async { hub.handle.metrics().hub.waits == number }).await;
}

#[tokio::test]
async fn before_and_after() {
    let hub = TestHub::start().await;
    let (mut link, mut publisher) = (hub.v1().await, hub.v1().await);
    publish(&mut publisher, "e1", "created", "1", "").await;
    publish(&mut publisher, "e2", "paid", "1", "").await;
    for timeout in [0, SOON, LONG] {
        assert_eq!(wait(&mut link, &for_order("1", "", timeout)).await, "e1");
        assert_eq!(wait(&mut link, &for_order("1", r#","names":["sent","paid"]"#, timeout)).await, "e2");
    }
    link.send(&["wait", "2", &for_order("1", r#","names":["sent"]"#, LONG)]).await;
    link.send(&["wait", "3", &for_order("2", "", LONG)]).await;
    waits(&hub, 2).await;
    // The link serves other requests meanwhile.
    assert_eq!(link.ask(&["read", "4", "e1"]).await, ["ok", "4"]);
    assert_eq!(link.put_aside().unwrap()[0], "item");
    publish(&mut publisher, "e3", "sent", "1", "").await;
    assert_eq!(met(&mut link, "2").await, "e3");
    publish(&mut publisher, "e4", "sent", "2", "").await;
    assert_eq!(met(&mut link, "3").await, "e4");
    waits(&hub, 0).await;
    drop((link, publisher));
    hub.stop().await;
}

/// Publishes and waits race on two links, each in front of the other half of the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_between_under_load() {
    const TRIES: usize = 900;
    let hub = TestHub::start().await;
    let (mut link, mut publisher) = (hub.v1().await, hub.v1().await);
    let publishing = tokio::spawn(async move {
        for number in 0..TRIES {
            let (req, pid) = ((number + 1).to_string(), number.to_string());
            publisher.send(&["publish", &req, &format!("e{pid}"), "orders", "created", &pid, "", "{}"]).await;
            if number % 200 == 199 {
                // Within its window.
                assert_eq!(publisher.reply(&req).await[2], "committed");
            }
        }
        assert_eq!(publisher.reply(&TRIES.to_string()).await[2], "committed");
        publisher
    });
    for number in 0..TRIES {
        link.send(&["wait", &(number + 1).to_string(), &for_order(&number.to_string(), "", LONG)]).await;
        if number % 50 == 0 {
            tokio::task::yield_now().await;
        }
    }
    let publisher = publishing.await.unwrap();
    for number in 0..TRIES {
        let req = (number + 1).to_string();
        assert_eq!(link.reply(&req).await, ["ok", &*req], "none was missed");
    }
    let mut seen = Vec::new();
    while let Some(item) = link.put_aside() {
        assert_eq!(item[2], format!("e{}", item[1].parse::<usize>().unwrap() - 1));
        seen.push(item);
    }
    assert_eq!(seen.len(), TRIES, "each got its event once");
    drop((link, publisher));
    hub.stop().await;
}

#[tokio::test]
async fn after_an_event_or_a_time() {
    let hub = TestHub::start().await;
    let (mut link, mut publisher) = (hub.v1().await, hub.v1().await);
    publish(&mut publisher, "e1", "created", "1", "").await;
    let (time, _) = publish(&mut publisher, "e2", "paid", "1", "").await;
    let after_e1 = for_order("1", r#","after_id":"e1""#, LONG);
    assert_eq!(wait(&mut link, &after_e1).await, "e2");
    let after_e2 = |timeout| for_order("1", r#","after_id":"e2""#, timeout);
    let after_time = |timeout| for_order("1", &format!(r#","after":{time}"#), timeout);
    for late in [after_e2(0), after_time(0), after_e2(SOON), after_time(SOON)] {
        timed_out(&mut link, &late).await;
    }
    assert_eq!(wait(&mut link, &for_order("1", r#","names":["paid"],"after":5"#, 0)).await, "e2");
    let future = for_order("1", &format!(r#","after":{}"#, time + 3_600_000), LONG);
    link.send(&["wait", "2", &after_e2(LONG)]).await;
    link.send(&["wait", "3", &after_time(LONG)]).await;
    link.send(&["wait", "4", &future]).await;
    waits(&hub, 3).await;
    // In another millisecond than the one that is waited behind.
    while publish_probe(&mut publisher).await <= time {}
    publish(&mut publisher, "e3", "sent", "1", "").await;
    // In whichever order.
    assert_eq!((&*link.reply("2").await[0], &*link.reply("3").await[0]), ("ok", "ok"));
    let mut items: Vec<_> = std::iter::from_fn(|| link.put_aside()).collect();
    items.sort();
    let items: Vec<_> = items.iter().map(|item| (&*item[1], &*item[2])).collect();
    assert_eq!(items, [("2", "e3"), ("3", "e3")]);
    waits(&hub, 1).await;

    let answer = link.ask(&["wait", "6", &for_order("1", r#","after_id":"nothing""#, 0)]).await;
    assert_eq!(answer[..3], ["err", "6", code::EVENT_NOT_FOUND]);
    drop((link, publisher));
    hub.stop().await;
}

/// The time of an event that nobody waits for.
async fn publish_probe(link: &mut Raw) -> i64 {
    let id = format!("probe-{}", fastrand::u64(..));
    publish(link, &id, "probed", "probe", "").await.0
}

#[tokio::test]
async fn only_what_was_dispatched_counts_and_in_that_order() {
    let hub = TestHub::start().await;
    let (mut link, mut publisher) = (hub.v1().await, hub.v1().await);
    let database = engine::open(&hub.database()).await;
    let rows = "INSERT INTO event (id, timestamp, domain, pid, name, data) VALUES \
                ('stored', '2026-01-02 03:04:05.678', 'orders', '1', 'created', '1')";
    database.execute_unprepared(rows).await.unwrap();
    database.close().await.unwrap();
    timed_out(&mut link, &for_order("1", "", SOON)).await;
    let answer = link.ask(&["wait", "6", &for_order("1", r#","after_id":"stored""#, 0)]).await;
    assert_eq!(answer[..3], ["err", "6", code::EVENT_NOT_FOUND]);
    assert!(answer[3].contains("stored but not published"), "{}", answer[3]);

    publish(&mut publisher, "e1", "created", "1", "").await;
    link.send(&["wait", "2", &for_order("1", r#","after_id":"e1""#, LONG)]).await;
    waits(&hub, 1).await;
    // Its publish is its dispatch, though it is older.
    let answer = publisher.ask(&["publish", "1", "stored", "orders", "created", "1", "", "1"]).await;
    assert_eq!(answer[..3], ["ok", "1", "committed"]);
    assert_eq!(met(&mut link, "2").await, "stored");
    assert_eq!(wait(&mut link, &for_order("1", "", 0)).await, "e1");
    assert_eq!(wait(&mut link, &for_order("1", r#","after_id":"e1""#, 0)).await, "stored");
    drop((link, publisher));
    hub.stop().await;
}

#[tokio::test]
async fn an_answer_is_waited_for_by_the_id_of_the_question() {
    let hub = TestHub::start().await;
    let (mut link, mut publisher) = (hub.v1().await, hub.v1().await);
    let for_answer = |timeout: u32| format!(r#"{{"rid":"question","timeout_ms":{timeout}}}"#);
    let text = timed_out(&mut link, &for_answer(SOON)).await;
    assert!(text.contains("answer to the event \"question\"") && text.contains("50ms"), "{text}");
    link.send(&["wait", "2", &for_answer(LONG)]).await;
    waits(&hub, 1).await;
    publish(&mut publisher, "question", "asked", "1", "").await;
    publish(&mut publisher, "a1", "answered", "2", "question").await;
    publish(&mut publisher, "a2", "answered", "2", "question").await;
    assert_eq!(met(&mut link, "2").await, "a1");
    assert_eq!(wait(&mut link, &for_answer(0)).await, "a1");
    drop((link, publisher));
    hub.stop().await;
}

#[tokio::test]
async fn a_link_waits_for_a_thousand_things_and_takes_them_along() {
    const MOST: usize = 1_000;
    let hub = TestHub::start().await;
    let (mut link, mut publisher) = (hub.v1().await, hub.v1().await);
    for req in 1..=MOST {
        link.send(&["wait", &req.to_string(), &for_order(&req.to_string(), "", LONG)]).await;
    }
    let one_more = for_order("more", "", LONG);
    let answer = link.ask(&["wait", "2000", &one_more]).await;
    assert_eq!(answer[..3], ["err", "2000", code::TOO_MANY_WAITS]);
    let answer = link.ask(&["outcome", "2001", "e", r#"{"timeout_ms":9}"#]).await;
    assert_eq!(answer[..3], ["err", "2001", code::TOO_MANY_WAITS]);
    publish(&mut publisher, "e7", "created", "7", "").await;
    assert_eq!(met(&mut link, "7").await, "e7");
    link.send(&["wait", "2000", &one_more]).await;
    link.ask(&["read", "3000", "e7"]).await;
    assert_eq!(hub.handle.metrics().hub.waits, i64::try_from(MOST).unwrap());
    // Another link has a thousand of its own.
    publisher.send(&["wait", "9", &one_more]).await;
    waits(&hub, i64::try_from(MOST + 1).unwrap()).await;
    drop(link);
    waits(&hub, 1).await;
    publish(&mut publisher, "more", "created", "more", "").await;
    assert_eq!(met(&mut publisher, "9").await, "more");
    waits(&hub, 0).await;
    drop(publisher);
    hub.stop().await;
}

#[tokio::test]
async fn a_drain_ends_waits_while_others_finish_their_work() {
    let hub = TestHub::start().await;
    let (mut link, mut worker) = (hub.v1().await, hub.v1().await);
    publish(&mut link, "open", "created", "2", "").await;
    worker.ask(&["consume", "1", "1", "", "orders", "*", r#"{"credit":1}"#]).await;
    let token = worker.event().await[2].clone();
    link.send(&["wait", "2", &for_order("1", "", LONG)]).await;
    link.send(&["outcome", "3", "open", r#"{"timeout_ms":30000}"#]).await;
    waits(&hub, 2).await;
    let stopping = tokio::spawn(hub.stop());
    for req in ["2", "3"] {
        let answer = link.reply(req).await;
        assert_eq!(answer[..3], ["err", req, code::HUB_DRAINING]);
        assert!(!answer[4].is_empty(), "it may be tried again");
    }
    let late = link.ask(&["wait", "4", &for_order("1", "", LONG)]).await;
    assert_eq!(late[..3], ["err", "4", code::HUB_DRAINING]);
    assert_eq!(worker.ask(&["ack", "2", &token]).await, ["ok", "2"]);
    stopping.await.unwrap();
}

#[tokio::test]
async fn a_drain_that_has_nothing_to_wait_for_waits_for_no_wait() {
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    link.send(&["wait", "2", &for_order("1", "", LONG)]).await;
    waits(&hub, 1).await;
    let stopping = tokio::spawn(hub.stop());
    while let Some(record) = link.answer().await {
        // The wait may be told before the link is.
        let code = record.iter().find(|unit| unit.starts_with("E_EVENTFLOW"));
        assert!(record[0] == "drain" || code.is_some_and(|code| code == code::HUB_DRAINING), "{record:?}");
    }
    drop(link);
    let deadline = Duration::from_millis(LONG.into()) / 2;
    tokio::time::timeout(deadline, stopping).await.expect("long before the wait's own end").unwrap();
}

#[tokio::test]
async fn a_restart_of_the_core_ends_waits_with_their_links() {
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    link.send(&["wait", "2", &for_order("1", "", LONG)]).await;
    waits(&hub, 1).await;
    hub.handle.inject_panic(ActorKind::Registry);
    while let Some(record) = link.answer().await {
        // The wait may be told the reason before the link is.
        let code = if record[0] == "bye" { &record[1] } else { &record[2] };
        assert_eq!(code, code::HUB_RESTART, "{record:?}");
        assert!(!record.last().unwrap().is_empty(), "it may be tried again");
    }
    waits(&hub, 0).await;
    let mut link = hub.v1().await;
    publish(&mut link, "e1", "created", "1", "").await;
    assert_eq!(wait(&mut link, &for_order("1", "", LONG)).await, "e1");
    drop(link);
    hub.stop().await;
}
