//! Promise: hostile bytes do nothing. Whatever comes over a link is answered by an error or ends that one link; a
//! healthy link beside it goes on, nothing panics, nothing grows.
//!
//! `EVENTFLOW_TEST_LONG=1` makes all 10,000 quick connects by TLS and runs the random bytes 20 times as long.

use std::time::Duration;

use eventflow::{
    event::code,
    spoke::{Publish, Spoke},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::{
    process::{HubProcess, narrow},
    support::{PATIENCE, Raw, TestHub, until},
};

/// What a hub may take in memory beyond what it took before an attack, in MiB.
const GROWTH: u64 = 64;

fn long() -> bool {
    std::env::var_os("EVENTFLOW_TEST_LONG").is_some_and(|value| value == "1")
}

/// The link that goes on.
struct Healthy(Spoke);

impl Healthy {
    async fn of(hub: &TestHub) -> Self {
        Self(hub.spoke().await)
    }

    /// It publishes, over the link that it had from the start.
    async fn goes_on(&self) {
        let publish = Publish::new("health", "checked", "p").data_text("1").unwrap();
        self.0.publish(publish).await.expect("the healthy link publishes");
        assert_eq!(self.0.status().links_lost, 0, "the healthy link was lost");
    }
}

/// Nothing failed inside, and of all links only the healthy one is left.
async fn calm(hub: &TestHub, healthy: Healthy) {
    healthy.goes_on().await;
    until("only the healthy link is left", || async { hub.handle.metrics().actors["connection"].alive == 1 })
        .await;
    let metrics = hub.handle.metrics();
    for (kind, actor) in &metrics.actors {
        assert_eq!(actor.restarts, 0, "{kind}");
        assert_eq!(actor.alive, 1, "{kind}");
    }
    healthy.0.close().await;
}

fn cuts(hub: &TestHub, reason: &str) -> u64 {
    hub.handle.metrics().hub.cuts[reason]
}

fn refused_handshakes(hub: &TestHub, reason: &str) -> u64 {
    hub.handle.metrics().hub.handshakes_failed[reason]
}

/// The link answers a ping: it lives, and all that came before was dealt with.
async fn lives(link: &mut Raw) {
    link.send(&["ping", "77"]).await;
    assert_eq!(link.answer().await, Some(vec!["pong".to_owned(), "77".to_owned()]));
}

/// The last words, and then the end.
async fn last_words(link: &mut Raw) -> String {
    let words = link.answer().await.expect("last words");
    assert_eq!(words[0], "bye", "{words:?}");
    assert_eq!(link.answer().await, None, "the link is closed after its last words");
    words[1].clone()
}

fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

fn publish<'a>(id: &'a str, name: &'a str, rid: &'a str, data: &'a str) -> Vec<&'a str> {
    vec!["publish", "5", id, "d", name, "p", rid, data]
}

#[tokio::test]
async fn a_bad_request_is_answered_by_name_and_the_link_stays() {
    let hub = TestHub::with(|config| config.limits.data_bytes = 1_000).await;
    let healthy = Healthy::of(&hub).await;
    let mut link = hub.v1().await;
    let (long_name, too_large, deep) = ("n".repeat(65), format!("\"{}\"", "x".repeat(999)), nested(32));
    let wide = format!("{{\"credit\":\"{}\"}}", "x".repeat(900));
    let huge = "18446744073709551616";
    let recur = |more: &str| format!(r#"{{"domain":"d","event":"n","rule":"@every 1h",{more}}}"#);
    let far = recur(r#""start":253402300800000"#);
    let backwards = recur(r#""start":4102444800000,"end":4102444799999"#);
    let cases: Vec<(Vec<&str>, &str)> = vec![
        // Texts and data of an event.
        (publish("i", &long_name, "", "1"), code::INVALID_NAME),
        (publish("i", "n ", "", "1"), code::INVALID_NAME),
        (publish("i", " n", "", "1"), code::INVALID_NAME),
        (publish("i", "", "", "1"), code::INVALID_NAME),
        (publish("i", "a.*", "", "1"), code::INVALID_NAME),
        (publish("i", "naïve", "", "1"), code::INVALID_NAME),
        (publish(&long_name, "n", "", "1"), code::INVALID_ID),
        (publish("i", "n", " ", "1"), code::INVALID_ID),
        (vec!["publish", "5", "i", "d ", "n", "p", "", "1"], code::INVALID_DOMAIN),
        (vec!["publish", "5", "i", "d", "n", "", "", "1"], code::INVALID_PID),
        (publish("i", "n", "", ""), code::INVALID_DATA),
        (publish("i", "n", "", "{\"a\":}"), code::INVALID_DATA),
        (publish("i", "n", "", "1 2"), code::INVALID_DATA),
        (publish("i", "n", "", "{'a':1}"), code::INVALID_DATA),
        (publish("i", "n", "", &deep), code::DATA_TOO_DEEP),
        (publish("i", "n", "", &too_large), code::EVENT_TOO_LARGE),
        (publish("i", "n", "nobody", "1"), code::RID_NOT_FOUND),
        (publish("i", "n", "", "\"a\u{1}b\""), code::CONTROL_CHARACTER),
        (publish("i\n", "n", "", "1"), code::CONTROL_CHARACTER),
        (vec!["read", "5", "a\0"], code::CONTROL_CHARACTER),
        // Verbs, units, numbers.
        (vec!["republish", "5"], code::UNKNOWN_VERB),
        (vec!["PUBLISH", "5"], code::UNKNOWN_VERB),
        (vec!["publish", "5", "i", "d", "n", "p", ""], code::INVALID_RECORD),
        (vec!["publish", "5", "i", "d", "n", "p", "", "1", "1"], code::INVALID_RECORD),
        (vec!["ack", "5"], code::INVALID_RECORD),
        (vec!["subscribe", "5", huge, "d", "n"], code::INVALID_RECORD),
        (vec!["subscribe", "5", "4294967296", "d", "n"], code::INVALID_RECORD),
        (vec!["subscribe", "5", "-1", "d", "n"], code::INVALID_RECORD),
        (vec!["ack", "5", huge], code::INVALID_RECORD),
        (vec!["ack", "5", "01"], code::INVALID_RECORD),
        (vec!["ack", "5", "1e3"], code::INVALID_RECORD),
        (vec!["log", "5", "{\"domain\":\"d\"}", "", "0"], code::INVALID_RECORD),
        (vec!["log", "5", "{\"pid\":\"p\"}", "", "1"], code::INVALID_RECORD),
        // What isn't there.
        (vec!["read", "5", "nobody"], code::EVENT_NOT_FOUND),
        (vec!["show", "5", "nobody"], code::EVENT_NOT_FOUND),
        (vec!["log", "5", "{\"domain\":\"d\"}", "no page", "1"], code::INVALID_PAGE),
        (vec!["pids", "5", "d", "no page", "1"], code::INVALID_PAGE),
        (vec!["wait", "5", "{\"domain\":\"d\",\"timeout_ms\":1}"], code::INVALID_RECORD),
        (vec!["wait", "5", "{\"rid\":\"r\",\"timeout_ms\":86400001}"], code::INVALID_RECORD),
        (vec!["outcome", "5", "none", "{\"timeout_ms\":1}"], code::EVENT_NOT_FOUND),
        (vec!["outcome", "5", "none", "{\"timeout_ms\":86400001}"], code::INVALID_RECORD),
        (vec!["ack", "5", "18446744073709551615"], code::CLAIM_LOST),
        (vec!["nack", "5", "1", "{}"], code::CLAIM_LOST),
        (vec!["release", "5", "1"], code::CLAIM_LOST),
        (vec!["unsubscribe", "5", "1"], code::UNKNOWN_SUBSCRIPTION),
        (vec!["stop", "5", "1"], code::UNKNOWN_SUBSCRIPTION),
        // Patterns and options.
        (vec!["subscribe", "5", "1", "", "n"], code::INVALID_PATTERN),
        (vec!["subscribe", "5", "1", "a.>.b", "n"], code::INVALID_PATTERN),
        (vec!["subscribe", "5", "1", "d", &long_name], code::INVALID_PATTERN),
        (vec!["subscribe", "5", "1", "d", "n "], code::INVALID_PATTERN),
        (vec!["consume", "5", "1", "g ", "d", "n", "{\"credit\":1}"], code::INVALID_GROUP),
        (vec!["consume", "5", "1", "g", "d", "n", "{\"credit\":1,\"from\":\"now\"}"], code::INVALID_RECORD),
        (
            vec!["consume", "5", "1", "g", "d", "n", "{\"credit\":1,\"from\":{\"id\":\"none\"}}"],
            code::EVENT_NOT_FOUND,
        ),
        (vec!["extend", "5", "1", "{}"], code::CLAIM_LOST),
        (vec!["extend", "5", "1", "{\"lease\":-1}"], code::INVALID_RECORD),
        (vec!["extend", "5", "1", "{\"lease\":999}"], code::INVALID_RECORD),
        (vec!["extend", "5", "1", "{\"lease\":3600001}"], code::INVALID_RECORD),
        (vec!["consume", "5", "1", "", "d", "n", "{\"credit\":1,\"lease\":0}"], code::INVALID_RECORD),
        (vec!["nack", "5", "1", "{\"delay\":2592000001}"], code::INVALID_RECORD),
        (vec!["redrive", "5", "{}"], code::INVALID_RECORD),
        (vec!["redrive", "5", "{\"group\":\"g\"}"], code::INVALID_RECORD),
        (vec!["redrive", "5", "{\"id\":null}"], code::INVALID_RECORD),
        (vec!["redrive", "5", "{\"id\":null,\"domain\":\"*\"}"], code::INVALID_RECORD),
        (vec!["redrive", "5", "{\"id\":\"a\",\"domain\":\"*\"}"], code::INVALID_RECORD),
        (vec!["redrive", "5", "{\"group\":\"g\",\"domain\":\"*\"}"], code::GROUP_NOT_FOUND),
        (vec!["redrive", "5", "{\"group\":\"g\",\"id\":\"a\"}"], code::GROUP_NOT_FOUND),
        (vec!["dead", "5", "{\"group\":\"g\"}", "", "1"], code::GROUP_NOT_FOUND),
        (vec!["schedules", "5", "{}", "no page", "1"], code::INVALID_PAGE),
        (vec!["schedules", "5", "{\"domains\":\"d\"}", "", "1"], code::INVALID_RECORD),
        (vec!["recur", "5", "r", "create", &far, "1"], code::SCHEDULE_INVALID_DATE),
        (vec!["recur", "5", "r", "create", &backwards, "1"], code::SCHEDULE_INVALID_DATE),
        (vec!["group", "5", "none", "{\"purge\":{}}"], code::GROUP_NOT_FOUND),
        (vec!["group", "5", "g", "{\"set\":{\"max_attempts\":0}}"], code::INVALID_RECORD),
        (vec!["group", "5", "g", "{\"burn\":{}}"], code::INVALID_RECORD),
        (vec!["dead", "5", "{}", "no page", "1"], code::INVALID_PAGE),
        (vec!["redrive", "5", "{\"id\":\"none\"}"], code::EVENT_NOT_FOUND),
        (vec!["consume", "5", "1", "", "d", "n", "{\"credit\":1,\"from\":\"all\"}"], code::INVALID_RECORD),
        (vec!["group", "5", "", "{\"set\":{\"key_order\":true}}"], code::INVALID_RECORD),
        (vec!["backlog", "5", "{\"group\":\"g\"}"], code::GROUP_NOT_FOUND),
        (vec!["consume", "5", "1", "", "d", "n", "{}"], code::INVALID_RECORD),
        (vec!["consume", "5", "1", "", "d", "n", "{\"credit\":-1}"], code::INVALID_RECORD),
        (vec!["consume", "5", "1", "", "d", "n", "{\"credit\":4294967296}"], code::INVALID_RECORD),
        (vec!["consume", "5", "1", "", "d", "n", &wide], code::INVALID_RECORD),
        (vec!["nack", "5", "1", "no json"], code::INVALID_RECORD),
    ];
    for (request, code) in cases {
        link.send(&request).await;
        let answer = link.answer().await.unwrap_or_else(|| panic!("{request:?} ended the link"));
        assert_eq!(
            (&answer[0], &answer[1], &answer[2]),
            (&"err".into(), &"5".into(), &code.into()),
            "{request:?}"
        );
        assert!(answer[3].len() > 20 && answer[3].len() < 1_000, "{request:?} is explained: {answer:?}");
        healthy.goes_on().await;
    }

    // Without a number that can be read the answer names none.
    let cases: Vec<(Vec<&str>, &str)> = vec![
        (vec![""], code::INVALID_RECORD),
        (vec!["", "", ""], code::UNKNOWN_VERB),
        (vec!["publish"], code::INVALID_RECORD),
        (vec!["publish", "0", "i", "d", "n", "p", "", "1"], code::INVALID_RECORD),
        (vec!["read", huge, "i"], code::INVALID_RECORD),
        (vec!["ack", "five", "1"], code::INVALID_RECORD),
        (vec!["ping", huge], code::INVALID_RECORD),
        (vec!["ping"], code::INVALID_RECORD),
        (vec!["hello", "1", "{}"], code::INVALID_RECORD),
        (vec!["hello", "2", "{}"], code::UNKNOWN_VERSION),
    ];
    for (request, code) in cases {
        link.send(&request).await;
        let answer = link.answer().await.unwrap_or_else(|| panic!("{request:?} ended the link"));
        assert_eq!((&answer[0], &answer[2]), (&"err".into(), &code.into()), "{request:?}");
        assert_eq!(answer[1], "0", "{request:?}");
        healthy.goes_on().await;
    }

    // The deepest and the largest that are allowed.
    let (deep, large) = (nested(31), format!("\"{}\"", "x".repeat(998)));
    for (id, data) in [("deep", &deep), ("large", &large)] {
        link.send(&publish(id, "n", "", data)).await;
        assert_eq!(link.answer().await.unwrap()[2], "committed");
    }
    lives(&mut link).await;
    drop(link);
    calm(&hub, healthy).await;
    hub.stop().await;
}

#[tokio::test]
async fn bytes_that_are_no_records_end_their_link_alone() {
    let hub = TestHub::start().await;
    let healthy = Healthy::of(&hub).await;
    let long = vec![b'x'; 1024 * 1024 + 64 * 1024 + 1];
    let units = [b"ping".to_vec(), vec![0x1f; 64], vec![0x1e]].concat();
    let cases = [
        (long, code::RECORD_TOO_LONG, "record_too_long"),
        (units, code::TOO_MANY_UNITS, "too_many_units"),
        (b"ping\x1f\xff\xfe\x1e".to_vec(), code::INVALID_UTF8, "invalid_utf8"),
        (b"publish\x1f1\x1f\xc0\xaf\x1e".to_vec(), code::INVALID_UTF8, "invalid_utf8"),
    ];
    for (at, (bytes, code, reason)) in cases.into_iter().enumerate() {
        let mut link = hub.v1().await;
        let before = cuts(&hub, reason);
        // What came before it is served all the same.
        link.send(&publish(&format!("before-{at}"), "n", "", "1")).await;
        assert_eq!(link.answer().await.unwrap()[2], "committed");
        link.bytes(&bytes).await;
        assert_eq!(last_words(&mut link).await, code);
        assert_eq!(cuts(&hub, reason), before + 1);
        healthy.goes_on().await;
    }
    calm(&hub, healthy).await;
    hub.stop().await;
}

#[tokio::test]
async fn a_bad_hello_ends_its_link() {
    let hub = TestHub::start().await;
    let healthy = Healthy::of(&hub).await;
    for (hello, code) in [
        (["hello", "2", "{}"], code::UNKNOWN_VERSION),
        (["hello", "", "{}"], code::UNKNOWN_VERSION),
        (["hello", "1", "{"], code::INVALID_RECORD),
        (["hello", "1", "[]"], code::INVALID_RECORD),
        (["hello", "1", "{\"client\":7}"], code::INVALID_RECORD),
    ] {
        let mut link = hub.raw().await;
        link.send(&hello).await;
        let answer = link.answer().await.expect("an answer");
        assert_eq!((&*answer[0], &*answer[1], &*answer[2]), ("err", "0", code), "{hello:?}");
        assert_eq!(last_words(&mut link).await, code, "{hello:?}");
        healthy.goes_on().await;
    }
    let mut link = hub.v1().await;
    link.send(&["hello", "1", "{}"]).await;
    assert_eq!(link.answer().await.unwrap()[2], code::INVALID_RECORD, "hello comes once");
    lives(&mut link).await;
    drop(link);
    calm(&hub, healthy).await;
    hub.stop().await;
}

#[tokio::test]
async fn numbers_of_a_link_are_unique_and_bounded() {
    let hub = TestHub::with(|config| config.limits.subscriptions = 3).await;
    let healthy = Healthy::of(&hub).await;
    let mut link = hub.v1().await;
    let credit = "{\"credit\":1}";
    let mut ask = async |units: &[&str]| {
        link.send(units).await;
        let answer = link.answer().await.unwrap();
        if answer[0] == "ok" { "ok".to_owned() } else { answer[2].clone() }
    };
    assert_eq!(ask(&["subscribe", "1", "1", "d", "n"]).await, "ok");
    assert_eq!(ask(&["subscribe", "2", "1", "d", "n"]).await, code::SUBSCRIPTION_EXISTS);
    assert_eq!(ask(&["consume", "3", "1", "", "d", "n", credit]).await, code::SUBSCRIPTION_EXISTS);
    assert_eq!(ask(&["consume", "4", "2", "", "d", "n", credit]).await, "ok");
    assert_eq!(ask(&["subscribe", "5", "0", "d", "n"]).await, "ok");
    assert_eq!(ask(&["subscribe", "6", "9", "d", "n"]).await, code::TOO_MANY_SUBSCRIPTIONS);
    assert_eq!(ask(&["unsubscribe", "7", "2"]).await, code::UNKNOWN_SUBSCRIPTION, "2 is a consumer");
    assert_eq!(ask(&["unsubscribe", "8", "1"]).await, "ok");
    assert_eq!(ask(&["unsubscribe", "9", "1"]).await, code::UNKNOWN_SUBSCRIPTION);
    assert_eq!(ask(&["subscribe", "10", "1", "d", ">"]).await, "ok", "a number that was given back");
    drop(link);
    calm(&hub, healthy).await;
    hub.stop().await;
}

#[tokio::test]
async fn credit_is_what_the_hub_allows_at_most_and_one_at_least() {
    let hub = TestHub::start().await;
    let healthy = Healthy::of(&hub).await;
    for n in 0..100 {
        let publish = Publish::new("credit", "n", format!("p{n}")).data_text("1").unwrap();
        healthy.0.publish(publish).await.unwrap();
    }
    for (options, held) in [("{\"credit\":4294967295,\"concurrency\":4294967295}", 64), ("{\"credit\":1}", 1)]
    {
        let mut link = hub.v1().await;
        link.send(&["consume", "1", "1", "", "credit", "*", options]).await;
        assert_eq!(link.answer().await.unwrap()[2], "position");
        for _ in 0..held {
            assert_eq!(link.answer().await.unwrap()[0], "claim");
        }
        lives(&mut link).await;
        until(options, || async { hub.handle.metrics().hub.in_flight == held }).await;
        drop(link);
        until("the claims come back", || async { hub.handle.metrics().hub.in_flight == 0 }).await;
        healthy.goes_on().await;
    }
    calm(&hub, healthy).await;
    hub.stop().await;
}

#[tokio::test]
async fn what_is_no_tls_or_too_slow_never_becomes_a_link() {
    let hub = TestHub::with(|config| config.limits.handshake = Duration::from_millis(300)).await;
    let healthy = Healthy::of(&hub).await;
    let address = hub.handle.info().address;
    let http = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec();
    let random = std::iter::repeat_with(|| fastrand::u8(..)).take(4_096).collect();
    // A TLS record's head that promises 16 KiB, and nothing after it.
    let begun = vec![0x16, 3, 1, 0x40, 0];
    for (bytes, reason) in [(http, "tls"), (random, "tls"), (begun, "timeout"), (Vec::new(), "timeout")] {
        let before = refused_handshakes(&hub, reason);
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(&bytes).await.unwrap();
        let mut answer = Vec::new();
        // An alert of TLS or nothing, then the end or a reset.
        let _ = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("the hub closes it");
        assert!(answer.len() < 32, "nothing is said before TLS: {answer:?}");
        until(&format!("the refusal is counted as {reason}"), || async {
            refused_handshakes(&hub, reason) == before + 1
        })
        .await;
        healthy.goes_on().await;
    }
    calm(&hub, healthy).await;
    hub.stop().await;
}

#[tokio::test]
async fn a_half_open_link_is_cut_after_the_silence() {
    let hub = TestHub::with(|config| {
        config.limits.ping = Duration::from_millis(100);
        config.limits.silence = Duration::from_millis(500);
    })
    .await;
    let healthy = Healthy::of(&hub).await;
    let mut link = hub.v1().await;
    let mut pings = 0;
    // It is pinged and says nothing.
    let words = loop {
        let record = link.record().await.expect("last words");
        match record[0].as_str() {
            "ping" => pings += 1,
            _ => break record,
        }
    };
    assert!(pings > 0);
    assert_eq!((words[0].as_str(), words[1].as_str()), ("bye", code::LINK_SILENT));
    assert_eq!(cuts(&hub, "silent"), 1);
    calm(&hub, healthy).await;
    hub.stop().await;
}

/// It asks, and pings, but never reads: nothing is cut for silence, the writes just don't end.
#[tokio::test]
async fn a_link_that_takes_no_answer_is_cut_by_the_write_time_out() {
    let hub = TestHub::with(|config| {
        config.limits.ping = Duration::from_millis(200);
        config.limits.silence = Duration::from_secs(1);
    })
    .await;
    let healthy = Healthy::of(&hub).await;
    let data = format!("\"{}\"", "x".repeat(900_000));
    for _ in 0..12 {
        let publish = Publish::new("large", "n", "p").data_text(data.clone()).unwrap();
        healthy.0.publish(publish).await.unwrap();
    }
    let stream = narrow(hub.handle.info().address).await;
    let mut link = Raw::over(&hub.bundle(), stream).await.greeted().await;
    for req in 1..=8 {
        link.send(&["log", &req.to_string(), r#"{"domain":"large","pid":"p"}"#, "", "1000"]).await;
    }
    let pinging = async {
        while link.stream.write_all(b"ping\x1f1\x1e").await.is_ok() && link.stream.flush().await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, pinging).await.expect("the hub closes it");
    assert_eq!(cuts(&hub, "write_timeout"), 1, "{:?}", hub.handle.metrics().hub.cuts);
    drop(link);
    calm(&hub, healthy).await;
    hub.stop().await;
}

#[tokio::test]
async fn beyond_the_limit_of_links_the_next_one_waits_for_a_place() {
    let hub = TestHub::with(|config| config.limits.connections = 2).await;
    let healthy = Healthy::of(&hub).await;
    let second = hub.v1().await;
    let (bundle, address) = (hub.bundle(), hub.handle.info().address);
    let third = tokio::spawn(async move { Raw::connect(&bundle, address).await.greeted().await });
    for _ in 0..20 {
        healthy.goes_on().await;
    }
    assert!(!third.is_finished(), "there is no place for a third link");
    drop(second);
    let mut third = timeout(PATIENCE, third).await.expect("a place in time").unwrap();
    lives(&mut third).await;
    drop(third);
    calm(&hub, healthy).await;
    hub.stop().await;
}

#[tokio::test]
async fn ten_thousand_come_and_go() {
    let hub = HubProcess::start(&[]);
    let spoke = hub.spoke().await;
    let (shaken, bare) = if long() { (10_000, 0) } else { (150, 9_850) };
    let before = hub.resident();
    for _ in 0..bare {
        drop(TcpStream::connect(hub.address).await.unwrap());
    }
    for _ in 0..shaken {
        drop(hub.v1().await);
    }
    spoke.publish(Publish::new("d", "n", "p").data_text("1").unwrap()).await.unwrap();
    assert_eq!(spoke.status().links_lost, 0);
    until("all are gone", || async {
        hub.number("eventflow_actors_alive{actor=\"connection\"}").await == 1.0
    })
    .await;
    assert_small(before, hub.resident());
    hub.assert_calm().await;
}

fn assert_small(before: Option<u64>, after: Option<u64>) {
    match (before, after) {
        (Some(before), Some(after)) => {
            assert!(after < before + GROWTH, "it grew from {before} to {after} MiB");
        }
        _ => println!("skipped: this system doesn't tell what memory a process has"),
    }
}

/// Sends until the hub closes the link or `most` bytes are out, and reads nothing. True: it was closed.
async fn flood(link: &mut Raw, chunk: &[u8], most: usize) -> bool {
    let mut sent = 0;
    while sent < most {
        let write = async {
            link.stream.write_all(chunk).await?;
            link.stream.flush().await
        };
        match timeout(PATIENCE, write).await.expect("the hub reads or closes") {
            Ok(()) => sent += chunk.len(),
            Err(_) => return true,
        }
    }
    false
}

fn repeated(record: &str, bytes: usize) -> Vec<u8> {
    record.as_bytes().repeat(bytes / record.len() + 1)
}

/// Each of these would grow without end if the hub kept what it can't send.
#[tokio::test]
async fn floods_without_reading_are_cut_and_nothing_grows() {
    let hub = HubProcess::start(&[]);
    let spoke = hub.spoke().await;
    let data = format!("\"{}\"", "x".repeat(500_000));
    for _ in 0..8 {
        let publish = Publish::new("large", "n", "p").data_text(data.clone()).unwrap();
        spoke.publish(publish.id(format!("large-{}", fastrand::u32(..)))).await.unwrap();
    }
    let explained = format!(
        "consume\u{1f}1\u{1f}1\u{1f}\u{1f}d\u{1f}n\u{1f}{{\"credit\":\"{}\"}}\u{1e}",
        "x".repeat(500_000)
    );
    let (id, data) = ("i".repeat(40_000), "x".repeat(1_050_000));
    let too_large = format!("publish\u{1f}1\u{1f}{id}\u{1f}d\u{1f}n\u{1f}p\u{1f}\u{1f}\"{data}\"\u{1e}");
    let floods = [
        ("empty records", "\u{1e}".to_owned()),
        ("bogus acks", "ack\u{1f}1\u{1f}1\u{1e}".to_owned()),
        ("reads", "read\u{1f}1\u{1f}nobody\u{1e}".to_owned()),
        ("logs", "log\u{1f}1\u{1f}large\u{1f}p\u{1f}\u{1f}1000\u{1e}".to_owned()),
        ("pings", "ping\u{1f}1\u{1e}".to_owned()),
        ("long explanations", explained),
        ("large events", too_large),
    ];
    for (what, record) in floods {
        let before = hub.resident();
        hub.reset_peak();
        let cut = hub.number("eventflow_links_cut_total{reason=\"slow_subscriber\"}").await;
        let mut link = hub.v1_narrow().await;
        let chunk = repeated(&record, 256 * 1024);
        let closed = flood(&mut link, &chunk, 64 << 20).await;
        println!("{what}: closed {closed}, memory {before:?}, then at most {:?} MiB", hub.resident_peak());
        if closed {
            until(what, || async {
                hub.number("eventflow_links_cut_total{reason=\"slow_subscriber\"}").await == cut + 1.0
            })
            .await;
        }
        assert_small(before, hub.resident_peak());
        drop(link);
        spoke.publish(Publish::new("d", "n", "p").data_text("1").unwrap()).await.unwrap();
        assert_eq!(spoke.status().links_lost, 0, "{what}");
    }
    hub.assert_calm().await;
}

/// A link that was cut and floods on costs little reading: the rest is left to TCP.
#[tokio::test]
async fn what_comes_after_a_cut_is_not_read_for_long() {
    let hub = TestHub::start().await;
    let healthy = Healthy::of(&hub).await;
    let mut link = hub.v1().await;
    let records = repeated("publish\u{1f}1\u{1f}i\u{1f}d\u{1f}n\u{1f}p\u{1f}\u{1f}1\u{1e}", 256 * 1024);
    let mut sent = 0;
    while timeout(PATIENCE, link.stream.write_all(&records)).await.expect("the hub closes it").is_ok() {
        sent += records.len();
    }
    assert_eq!(cuts(&hub, "window_exceeded"), 1);
    // What the system's buffers hold at both ends, for the most part.
    assert!(sent < 16 << 20, "the hub took {sent} bytes");
    drop(link);
    calm(&hub, healthy).await;
    hub.stop().await;
}

/// Records without an end on many links at once: each holds one record's limit at most, and is cut there.
#[tokio::test]
async fn endless_records_are_cut_at_the_limit() {
    let hub = HubProcess::start(&[]);
    let spoke = hub.spoke().await;
    let before = hub.resident();
    hub.reset_peak();
    let mut links = Vec::new();
    for _ in 0..20 {
        let mut link = hub.v1().await;
        link.bytes(&vec![b'x'; 1024 * 1024]).await;
        links.push(link);
    }
    for mut link in links {
        link.bytes(&vec![b'x'; 256 * 1024]).await;
        assert_eq!(last_words(&mut link).await, code::RECORD_TOO_LONG);
    }
    spoke.publish(Publish::new("d", "n", "p").data_text("1").unwrap()).await.unwrap();
    assert_small(before, hub.resident_peak());
    hub.assert_calm().await;
}

/// npm links get no answers, so a flood of theirs can only fill the hub's own queues and its log.
#[tokio::test]
async fn floods_of_an_npm_link_fill_nothing() {
    let hub = HubProcess::start(&["--log-level=info"]);
    let spoke = hub.spoke().await;
    for record in [
        "unsubscribe\u{1f}d\u{1f}n\u{1e}",
        "subscribe\u{1f}d\u{1f}n\u{1e}",
        "\u{1e}",
        "online\u{1e}",
        "publish\u{1f}d\u{1f}nothing-of-this-id-is-in-the-database\u{1f}n\u{1f}p\u{1e}",
    ] {
        let before = hub.resident();
        hub.reset_peak();
        let mut link = Raw::connect(&hub.bundle(), hub.address).await;
        flood(&mut link, &repeated(record, 64 * 1024), 4 << 20).await;
        drop(link);
        spoke.publish(Publish::new("d", "n", "p").data_text("1").unwrap()).await.unwrap();
        println!("{record:?}: memory {before:?}, then at most {:?} MiB", hub.resident_peak());
        assert_small(before, hub.resident_peak());
        assert_eq!(spoke.status().links_lost, 0, "{record:?}");
    }
    let log = hub.log();
    assert!(log.lines().count() < 1_000, "the log has {} lines", log.lines().count());
    hub.assert_calm().await;
}

/// Verbs that a stream of random records is made of.
const VERBS: [&str; 15] = [
    "publish",
    "subscribe",
    "unsubscribe",
    "consume",
    "stop",
    "ack",
    "nack",
    "release",
    "read",
    "log",
    "show",
    "ping",
    "pong",
    "hello",
    "",
];

fn printable(random: &mut fastrand::Rng) -> Vec<u8> {
    let length = random.usize(0..80);
    std::iter::repeat_with(|| random.u8(0x20..0x7f)).take(length).collect()
}

fn random_record(random: &mut fastrand::Rng) -> Vec<u8> {
    let mut record = random.choice(VERBS).unwrap_or_default().as_bytes().to_vec();
    for _ in 0..random.usize(0..9) {
        record.extend(b"\x1f");
        match random.u8(0..8) {
            0 => record.extend(random.u64(..).to_string().bytes()),
            1 => record.extend(printable(random)),
            2 => record.extend(b"{\"credit\":3}"),
            3 => record.extend(b"*"),
            4 => record.extend(std::iter::repeat_with(|| random.u8(0..0x80)).take(3)),
            5 => {}
            _ => record.extend(random.u8(0..4).to_string().bytes()),
        }
    }
    if random.u8(0..200) == 0 {
        record.push(random.u8(..));
    }
    record.push(0x1e);
    record
}

#[tokio::test]
async fn random_bytes_after_hello_end_links_or_are_answered() {
    let hub = TestHub::start().await;
    let healthy = Healthy::of(&hub).await;
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let rounds = if long() { 4_000 } else { 200 };
    let (mut link, mut closed) = (hub.v1().await, 0);
    for round in 0..rounds {
        let bytes: Vec<u8> = if random.u8(0..8) == 0 {
            let length = random.usize(1..4_096);
            std::iter::repeat_with(|| random.u8(..)).take(length).collect()
        } else {
            (0..random.usize(1..40)).flat_map(|_| random_record(&mut random)).collect()
        };
        link.bytes(&bytes).await;
        link.bytes(b"\x1eping\x1f4711\x1e").await;
        let alive = loop {
            match link.answer().await {
                Some(record) if record == ["pong", "4711"] => break true,
                Some(_) => {}
                None => break false,
            }
        };
        if !alive {
            closed += 1;
            link = hub.v1().await;
        }
        if round % 20 == 0 {
            healthy.goes_on().await;
        }
    }
    assert!(closed > 0, "seed {seed}: random bytes end a link now and then");
    drop(link);
    calm(&hub, healthy).await;
    hub.stop().await;
}
