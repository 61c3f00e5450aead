//! Promise: a log is read in one total order, page by page, by process, child process, entity or domain.

use std::path::PathBuf;

use eventflow::event::code;
use sea_orm::ConnectionTrait;

use crate::support::{Raw, TestHub, engine};

/// Runs SQL as another program would.
async fn sql(database: PathBuf, statements: &[&str]) {
    let database = engine::open(&database).await;
    for statement in statements {
        database.execute_unprepared(statement).await.unwrap();
    }
    database.close().await.unwrap();
}

async fn publish(link: &mut Raw, id: &str, domain: &str, name: &str, pid: &str) -> i64 {
    let answer = link.ask(&["publish", "1", id, domain, name, pid, "", "{}"]).await;
    assert_eq!(answer[..3], ["ok", "1", "committed"], "{answer:?}");
    answer[3].parse().unwrap()
}

/// One page: the ids of its events, and the token of the next.
async fn page(link: &mut Raw, query: &str, token: &str, limit: usize) -> (Vec<String>, String) {
    let answer = link.ask(&["log", "7", query, token, &limit.to_string()]).await;
    assert_eq!(answer[..3], ["ok", "7", "page"], "{answer:?}");
    let mut ids = Vec::new();
    // They came before the answer.
    while let Some(item) = link.put_aside() {
        assert_eq!(item[..2], ["item", "7"]);
        ids.push(item[2].clone());
    }
    (ids, answer[3].clone())
}

/// The whole log, in pages of this size.
async fn log(link: &mut Raw, query: &str, limit: usize) -> Vec<String> {
    let (mut all, mut token) = (Vec::new(), String::new());
    loop {
        let (ids, next) = page(link, query, &token, limit).await;
        assert!(ids.len() <= limit);
        all.extend(ids);
        token = next;
        if token.is_empty() {
            return all;
        }
    }
}

async fn pids(link: &mut Raw, domain: &str, token: &str, limit: &str) -> (String, String) {
    let answer = link.ask(&["pids", "8", domain, token, limit]).await;
    assert_eq!(answer[..3], ["ok", "8", "pids"], "{answer:?}");
    (answer[3].clone(), answer[4].clone())
}

#[tokio::test]
async fn each_form_finds_its_events_in_order() {
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    let mut times = Vec::new();
    for (id, domain, name, pid) in [
        ("e1", "orders", "created", "1"),
        ("e2", "orders", "paid", "1"),
        ("e3", "orders", "created", "2"),
        ("e4", "users", "created", "1"),
        ("e5", "orders", "sent", "1"),
    ] {
        times.push(publish(&mut link, id, domain, name, pid).await);
    }
    for (id, with) in [
        ("e5", r#"{"domain":"parcels","cpid":"7"}"#),
        ("e3", r#"{"domain":"parcels","cpid":"7"}"#),
        ("e4", r#"{"eid":"ann"}"#),
        ("e2", r#"{"eid":"ann"}"#),
        ("e1", r#"{"eid":"ann"}"#),
    ] {
        assert_eq!(link.ask(&["associate", "2", id, with]).await, ["ok", "2"]);
    }
    let since_e2 = format!(r#"{{"domain":"orders","pid":"1","from":{}}}"#, times[1]);
    let forms: [(&str, &[&str]); 9] = [
        (r#"{"domain":"orders","pid":"1"}"#, &["e1", "e2", "e5"]),
        (r#"{"domain":"orders","pid":"1","names":["sent","created"]}"#, &["e1", "e5"]),
        (r#"{"domain":"orders","pid":"1","to":5}"#, &[]),
        (r#"{"domain":"parcels","cpid":"7"}"#, &["e3", "e5"]),
        (r#"{"eid":"ann"}"#, &["e1", "e2", "e4"]),
        (r#"{"domain":"users","eid":"ann"}"#, &["e4"]),
        (r#"{"domain":"orders"}"#, &["e5", "e3", "e2", "e1"]),
        (r#"{"domain":"orders","names":["created"]}"#, &["e3", "e1"]),
        (r#"{"domain":"nothing"}"#, &[]),
    ];
    for (query, expected) in forms {
        for limit in [1, 2, 1_000] {
            assert_eq!(log(&mut link, query, limit).await, expected, "{query}");
        }
    }
    let since = log(&mut link, &since_e2, 10).await;
    assert!(since.ends_with(&["e2".into(), "e5".into()]), "{since:?}");
    drop(link);
    hub.stop().await;
}

#[tokio::test]
async fn the_processes_of_a_domain_rise() {
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    for (id, pid) in [("a", "3"), ("b", "1"), ("c", "2"), ("d", "1")] {
        publish(&mut link, id, "orders", "created", pid).await;
    }
    publish(&mut link, "e", "users", "created", "9").await;
    assert_eq!(pids(&mut link, "orders", "", "10").await, (r#"["1","2","3"]"#.into(), String::new()));
    let (first, next) = pids(&mut link, "orders", "", "2").await;
    assert_eq!(first, r#"["1","2"]"#);
    assert_eq!(pids(&mut link, "orders", &next, "2").await, (r#"["3"]"#.into(), String::new()));
    assert_eq!(pids(&mut link, "nothing", "", "2").await, ("[]".into(), String::new()));
    let foreign = link.ask(&["pids", "9", "users", &next, "2"]).await;
    assert_eq!(foreign[..3], ["err", "9", code::INVALID_PAGE]);
    drop(link);
    hub.stop().await;
}

#[tokio::test]
async fn a_page_token_holds_for_its_query_only() {
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    for id in ["a", "b", "c"] {
        publish(&mut link, id, "orders", "created", "1").await;
    }
    let query = r#"{"domain":"orders","pid":"1"}"#;
    let (ids, next) = page(&mut link, query, "", 2).await;
    assert_eq!(ids, ["a", "b"]);
    for other in [
        r#"{"domain":"orders"}"#,
        r#"{"domain":"orders","pid":"2"}"#,
        r#"{"domain":"orders","cpid":"1"}"#,
        r#"{"domain":"orders","pid":"1","names":["created"]}"#,
        r#"{"domain":"orders","pid":"1","to":99}"#,
    ] {
        let answer = link.ask(&["log", "9", other, &next, "2"]).await;
        assert_eq!(answer[..3], ["err", "9", code::INVALID_PAGE], "{other}");
        assert!(answer[3].contains("start again without one"), "{}", answer[3]);
    }
    assert_eq!(link.ask(&["log", "9", query, "p1x", "2"]).await[..3], ["err", "9", code::INVALID_PAGE]);
    assert_eq!(page(&mut link, query, &next, 2).await, (vec!["c".into()], String::new()));
    drop(link);
    hub.stop().await;
}

#[tokio::test]
async fn what_is_only_stored_is_in_the_log_and_what_waits_for_its_time_is_not() {
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    publish(&mut link, "now", "orders", "created", "1").await;
    let rows = [
        "INSERT INTO event (id, timestamp, domain, pid, name, data) VALUES \
         ('stored', '2026-01-02 03:04:05.678', 'orders', '1', 'created', '1'), \
         ('later', '2026-01-02 03:04:05.678', 'orders', '1', 'created', '1')",
        "INSERT INTO event_scheduled (event_id, scheduled) VALUES ('later', '2036-01-02 03:04:05.678')",
    ];
    sql(hub.database(), &rows).await;
    for query in [r#"{"domain":"orders","pid":"1"}"#, r#"{"domain":"orders","pid":"1","names":["created"]}"#]
    {
        assert_eq!(log(&mut link, query, 10).await, ["stored", "now"]);
    }
    assert_eq!(log(&mut link, r#"{"domain":"orders"}"#, 1).await, ["now", "stored"]);
    drop(link);
    hub.stop().await;
}
