//! Promise: several events are published together or not at all, whatever else shares their transaction and whenever
//! the hub is killed; and what is persisted waits for its publish.

use std::collections::BTreeSet;

use eventflow::event::{EventId, code};

use crate::support::{Raw, TestHub, engine, process::Home, until};

/// An event of a batch, as JSON.
fn item(id: &str, rid: Option<&str>) -> String {
    let rid = rid.map(|rid| format!(r#","rid":"{rid}""#)).unwrap_or_default();
    format!(r#"{{"id":"{id}","domain":"orders","name":"created","pid":"order-1"{rid},"data":{{}}}}"#)
}

fn batch(items: &[String]) -> String {
    format!("[{}]", items.join(","))
}

fn record(units: &[&str]) -> String {
    format!("{}\u{1e}", units.join("\u{1f}"))
}

fn publish(req: &str, id: &str, rid: &str) -> String {
    record(&["publish", req, id, "orders", "created", "order-1", rid, "{}"])
}

/// What became of each event of a batch: whether it is new, and its number.
fn published(answer: &[String]) -> Vec<(bool, u64)> {
    assert_eq!((&*answer[0], &*answer[2]), ("ok", "batch"), "{answer:?}");
    let all: Vec<serde_json::Value> = serde_json::from_str(&answer[3]).unwrap();
    all.iter().map(|one| (one["fresh"].as_bool().unwrap(), one["seq"].as_u64().unwrap())).collect()
}

async fn is_stored(link: &mut Raw, id: &str) -> bool {
    let answer = link.ask(&["show", &format!("9{}", fastrand::u32(..)), id]).await;
    if answer[0] == "ok" {
        link.event().await;
        return true;
    }
    assert_eq!(answer[2], code::EVENT_NOT_FOUND);
    false
}

#[tokio::test]
async fn a_batch_is_dispatched_in_its_order_between_other_events() {
    let hub = TestHub::start().await;
    let mut subscriber = hub.v1().await;
    subscriber.ask(&["subscribe", "1", "1", "orders", "*"]).await;
    let mut link = hub.v1().await;
    // The second answers the first, the fourth is the first again.
    let events = [item("b1", None), item("b2", Some("b1")), item("b3", None), item("b1", None)];
    let all = [publish("1", "a", ""), record(&["batch", "2", &batch(&events)]), publish("3", "c", "b3")];
    link.bytes(all.concat().as_bytes()).await;
    assert_eq!(link.reply("1").await[2], "committed");
    let answer = published(&link.reply("2").await);
    assert_eq!(answer.iter().map(|(fresh, _)| *fresh).collect::<Vec<_>>(), [true, true, true, false]);
    assert_eq!(answer[3].1, answer[0].1);
    let first = answer[0].1;
    assert_eq!((answer[1].1, answer[2].1), (first + 1, first + 2), "one after the other");
    assert_eq!(link.reply("3").await[2], "committed");
    let mut seen = Vec::new();
    for _ in 0..5 {
        seen.push(subscriber.event().await[3].clone());
    }
    assert_eq!(seen, ["a", "b1", "b2", "b3", "c"]);

    let again =
        published(&link.ask(&["batch", "4", &batch(&[item("b2", Some("b1")), item("d", None)])]).await);
    assert_eq!(again[0], (false, first + 1), "a known one beside a new one");
    assert!(again[1].0);
    assert_eq!(subscriber.event().await[3], "d");
    let metrics = hub.handle.metrics().hub;
    assert_eq!((metrics.published, metrics.duplicates), (6, 2));
    hub.stop().await;
}

#[tokio::test]
async fn a_refused_batch_leaves_nothing_and_harms_no_other() {
    let hub = TestHub::start().await;
    let mut subscriber = hub.v1().await;
    subscriber.ask(&["subscribe", "1", "1", "orders", "*"]).await;
    let mut link = hub.v1().await;
    let taken = ["publish", "1", "taken", "orders", "changed", "order-1", "", "{}"];
    assert_eq!(link.ask(&taken).await[2], "committed");
    let bad = [item("x1", None), item("x2", Some("x1")), item("taken", None)];
    let lost = [item("y1", None), item("y2", Some("nobody"))];
    let good = [item("z1", None), item("z2", None)];
    let all = [
        publish("2", "a", ""),
        record(&["batch", "3", &batch(&bad)]),
        publish("4", "b", "x1"),
        record(&["batch", "5", &batch(&lost)]),
        record(&["batch", "6", &batch(&good)]),
        publish("7", "taken", ""),
        publish("8", "c", "z1"),
    ];
    link.bytes(all.concat().as_bytes()).await;
    let mut codes = Vec::new();
    for req in ["2", "3", "4", "5", "6", "7", "8"] {
        let answer = link.reply(req).await;
        codes.push(if answer[0] == "ok" { "ok".to_owned() } else { answer[2].clone() });
        if req == "3" {
            assert!(answer[3].contains("taken") && answer[3].contains("nothing of the batch"), "{answer:?}");
        }
    }
    let (conflict, no_rid) = (code::EVENT_CONFLICT, code::RID_NOT_FOUND);
    assert_eq!(codes, ["ok", conflict, no_rid, no_rid, "ok", conflict, "ok"]);
    for absent in ["x1", "x2", "b", "y1", "y2"] {
        assert!(!is_stored(&mut link, absent).await, "{absent}");
    }
    let mut seen = Vec::new();
    for _ in 0..5 {
        seen.push(subscriber.event().await[3].clone());
    }
    assert_eq!(seen, ["taken", "a", "z1", "z2", "c"]);
    hub.stop().await;
}

#[tokio::test]
async fn a_batch_has_1_to_1000_events_and_counts_as_one_request_with_all_its_weight() {
    let hub = TestHub::with(|config| config.limits.window_bytes = 4_096).await;
    let mut link = hub.v1().await;
    let many = |of: &str, count: usize| {
        batch(&(0..count).map(|n| item(&format!("{of}{n}"), None)).collect::<Vec<_>>())
    };
    for wrong in [0, 1_001] {
        let answer = link.ask(&["batch", "1", &many("w", wrong)]).await;
        assert_eq!(answer[2], code::INVALID_BATCH, "{wrong}");
    }
    // Far beyond the window, and alone it fits all the same.
    let answer = published(&link.ask(&["batch", "2", &many("a", 1_000)]).await);
    assert_eq!(answer.len(), 1_000);
    assert!(answer.windows(2).all(|pair| pair[0].0 && pair[0].1 < pair[1].1));

    let beyond = [record(&["batch", "3", &many("b", 150)]), record(&["batch", "4", &many("c", 150)])];
    link.bytes(beyond.concat().as_bytes()).await;
    let mut bye = Vec::new();
    while let Some(record) = link.answer().await {
        bye = record;
    }
    assert_eq!(bye[..2], ["bye", code::WINDOW_EXCEEDED]);
    hub.stop().await;
}

#[tokio::test]
async fn a_batch_larger_than_a_transaction_is_alone_in_one() {
    const EVENTS: usize = 9;
    let hub = TestHub::with(|config| {
        config.limits.data_bytes = 12 << 20;
        config.limits.window_bytes = 64 << 20;
    })
    .await;
    let mut link = hub.v1().await;
    let data = "x".repeat(1 << 20);
    let large =
        |n: usize| format!(r#"{{"id":"e{n}","domain":"orders","name":"created","pid":"o","data":"{data}"}}"#);
    let events = batch(&(0..EVENTS).map(large).collect::<Vec<_>>());
    let all = [publish("1", "before", ""), record(&["batch", "2", &events]), publish("3", "after", "e8")];
    link.bytes(all.concat().as_bytes()).await;
    assert_eq!(link.reply("1").await[2], "committed");
    let answer = published(&link.reply("2").await);
    assert!(answer.len() == EVENTS && answer.iter().all(|(fresh, _)| *fresh));
    assert_eq!(link.reply("3").await[2], "committed");
    hub.stop().await;
}

#[tokio::test]
async fn what_is_persisted_is_told_to_nobody_until_it_is_published() {
    let hub = TestHub::start().await;
    let mut subscriber = hub.v1().await;
    subscriber.ask(&["subscribe", "1", "1", "orders", "*"]).await;
    let mut link = hub.v1().await;
    let event = |verb: &'static str, req: &'static str, name: &'static str| {
        [verb, req, "e", "orders", name, "order-1", "", "{}"]
    };
    let stored = link.ask(&event("persist", "1", "created")).await;
    assert_eq!((&*stored[2], &*stored[4]), ("committed", "0"));
    let again = link.ask(&event("persist", "2", "created")).await;
    assert_eq!((&*again[2], &again[3], &*again[4]), ("duplicate", &stored[3], "0"));
    assert_eq!(link.ask(&event("persist", "3", "changed")).await[2], code::EVENT_CONFLICT);
    assert_eq!(link.ask(&event("publish", "4", "changed")).await[2], code::EVENT_CONFLICT);
    let lost = ["persist", "5", "f", "orders", "created", "order-1", "nobody", "{}"];
    assert_eq!(link.ask(&lost).await[2], code::RID_NOT_FOUND);

    let other = ["publish", "6", "other", "orders", "created", "order-1", "e", "{}"];
    assert_eq!(link.ask(&other).await[2], "committed", "it can be answered");
    let published = link.ask(&event("publish", "7", "created")).await;
    assert_eq!(
        (&*published[2], &published[3]),
        ("committed", &stored[3]),
        "with the time that it was stored"
    );
    assert_eq!(
        link.ask(&event("persist", "8", "created")).await[2..],
        ["duplicate", &stored[3], &published[4], "pending"]
    );
    let (first, second) = (subscriber.event().await, subscriber.event().await);
    assert_eq!((&*first[3], &*second[3], &second[4]), ("other", "e", &stored[3]));
    let metrics = hub.handle.metrics().hub;
    assert_eq!((metrics.persisted, metrics.published), (1, 2));
    hub.stop().await;
}

/// One link that publishes batches, and conflicting ones between them, until its hub is gone. Gives back the numbers of
/// those that were acked, and how many were sent.
async fn publish_batches(mut link: Raw, from: String, size: usize) -> (Vec<usize>, usize) {
    let (mut acked, mut sent) = (Vec::new(), 0);
    loop {
        // Several at once, so that they share transactions.
        let mut records = String::new();
        for n in sent..sent + 8 {
            let mut events: Vec<_> = (0..size).map(|at| item(&format!("{from}-{n}-{at}"), None)).collect();
            if n % 4 == 3 {
                events.push(item("taken", None));
            }
            records += &record(&["batch", &(n + 1).to_string(), &batch(&events)]);
        }
        sent += 8;
        link.bytes(records.as_bytes()).await;
        for _ in 0..8 {
            let Some(answer) = link.answer().await else { return (acked, sent) };
            let n = answer[1].parse::<usize>().unwrap() - 1;
            match (&*answer[0], n % 4 == 3) {
                ("ok", false) => acked.push(n),
                ("err", true) => assert_eq!(answer[2], code::EVENT_CONFLICT),
                _ => panic!("{answer:?}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acked_batch_is_whole_after_kill_9_and_no_other_is_in_parts() {
    const LINKS: usize = 3;
    const SIZE: usize = 7;
    let home = Home::new();
    let hub = home.start().await;
    let link =
        async || Raw::connect(&home.spoke_config().bundle, ("127.0.0.1", home.port())).await.greeted().await;
    let mut first = link().await;
    first.ask(&["publish", "1", "taken", "orders", "changed", "order-1", "", "{}"]).await;
    let mut publishers = Vec::new();
    for from in 0..LINKS {
        publishers.push(tokio::spawn(publish_batches(link().await, format!("p{from}"), SIZE)));
    }
    until("many batches", || async {
        home.metric("eventflow_events_published_total ").await.is_some_and(|count| count > 1_500.0)
    })
    .await;
    hub.kill().await;

    let store = engine::store(&home.database()).await;
    let mut whole = 0;
    for (from, publisher) in publishers.into_iter().enumerate() {
        let (acked, sent) = publisher.await.unwrap();
        let acked: BTreeSet<usize> = acked.into_iter().collect();
        assert!(!acked.is_empty());
        for n in 0..sent {
            let mut there = 0;
            for at in 0..SIZE {
                let id = EventId::parse(format!("p{from}-{n}-{at}")).unwrap();
                there += usize::from(store.event(&id).await.unwrap().is_some());
            }
            assert!(there == 0 || there == SIZE, "batch {n} of {from} has {there} of its events");
            assert!(there == SIZE || !acked.contains(&n), "batch {n} of {from} was acked");
            assert!(there == 0 || n % 4 != 3, "batch {n} of {from} was refused");
            whole += usize::from(there == SIZE);
        }
    }
    println!("{whole} whole batches");
    store.close().await;
}
