//! Reads: one event, its trace, the log by pages; a lost link.

use super::*;
use crate::{spoke::ReadError, wire::Trace};

#[tokio::test(start_paused = true)]
async fn a_read_that_a_lost_link_cuts_is_asked_again() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let (read, ()) = tokio::join!(spoke.read("e1"), async {
        let Request::Read { .. } = link.request().await else { panic!("expected a read") };
        drop(link);
        let mut link = hub.relinked().await;
        let Request::Read { req, id } = link.request().await else { panic!("expected a read") };
        link.send(Reply::Item { req, event: event(&id) }).await;
        link.ok(req, Answer::Done).await;
    });
    assert_eq!(read.unwrap(), event("e1"));
}

#[tokio::test(start_paused = true)]
async fn an_unknown_id_is_not_found_and_a_silent_hub_times_out() {
    let mut hub = FakeHub::new();
    let mut config = config();
    config.request_deadline = Duration::from_secs(5);
    let (spoke, mut link) = hub.connected(config, limits()).await;
    let (read, ()) = tokio::join!(spoke.read("e1"), async {
        let Request::Read { req, .. } = link.request().await else { panic!("expected a read") };
        link.send(Reply::Err { req, fault: Fault::refused(code::EVENT_NOT_FOUND, "no such event") }).await;
    });
    assert_eq!(read, Err(ReadError::NotFound { id: "e1".to_owned() }));
    assert_eq!(spoke.read("e2").await.unwrap_err().code(), code::TIMEOUT);
    assert_eq!(spoke.read(" e2").await.unwrap_err().code(), code::INVALID_ID);
}

#[tokio::test(start_paused = true)]
async fn a_log_is_read_by_pages_and_collected_up_to_a_cap() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let mut log = spoke.log("orders", "order-1").page_size(2);
    let served = tokio::spawn(async move {
        let mut asked = Vec::new();
        // Pages of a log of five events.
        for _ in 0..3 {
            let Request::Log { req, page, limit, .. } = link.request().await else {
                panic!("expected a log")
            };
            let from: usize = page.parse().unwrap_or(0);
            let to = (from + limit as usize).min(5);
            for n in from..to {
                link.send(Reply::Item { req, event: event(&format!("e{n}")) }).await;
            }
            let next = if to < 5 { to.to_string() } else { String::new() };
            link.ok(req, Answer::Page(next)).await;
            asked.push(limit);
        }
        asked
    });
    let first = log.collect(3).await.unwrap();
    assert_eq!(first.iter().map(|event| event.id.as_str()).collect::<Vec<_>>(), ["e0", "e1", "e2"]);
    let rest = log.collect(100).await.unwrap();
    assert_eq!(rest.iter().map(|event| event.id.as_str()).collect::<Vec<_>>(), ["e3", "e4"]);
    assert_eq!(log.next_page().await, Ok(None));
    assert_eq!(served.await.unwrap(), [2, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn show_gives_the_event_and_its_trace() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let trace = Trace {
        scheduled: None,
        recurring: None,
        publisher: None,
        published: Some(1000),
        hub: None,
        seq: Some(4),
        state: "pending".to_owned(),
        consumer: None,
        ended: None,
        attempts: Vec::new(),
        groups: Vec::new(),
        redriven: Vec::new(),
        associations: Vec::new(),
    };
    let (shown, ()) = tokio::join!(spoke.show("e1"), async {
        let Request::Show { req, .. } = link.request().await else { panic!("expected a show") };
        link.send(Reply::Item { req, event: event("e1") }).await;
        link.ok(req, Answer::Trace(Box::new(trace.clone()))).await;
    });
    assert_eq!(shown, Ok((event("e1"), trace)));
}

#[tokio::test(start_paused = true)]
async fn a_log_is_of_a_process_a_child_process_an_entity_or_a_domain() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let moment = std::time::UNIX_EPOCH + Duration::from_millis(9);
    for (mut log, json) in [
        (
            spoke.log("orders", "1").names(["a", "b"]).from(5).to(moment),
            r#"{"domain":"orders","pid":"1","names":["a","b"],"from":5,"to":9}"#,
        ),
        (spoke.child_log("parcels", "7"), r#"{"domain":"parcels","cpid":"7"}"#),
        (spoke.entity_log("customer-4"), r#"{"eid":"customer-4"}"#),
        (spoke.entity_log("customer-4").domain("orders"), r#"{"domain":"orders","eid":"customer-4"}"#),
        (spoke.domain_log("orders").names(["a"]), r#"{"domain":"orders","names":["a"]}"#),
    ] {
        let (page, ()) = tokio::join!(log.next_page(), async {
            let Request::Log { req, query, .. } = link.request().await else { panic!("expected a log") };
            assert_eq!(serde_json::to_string(&query).unwrap(), json);
            link.ok(req, Answer::Page(String::new())).await;
        });
        assert_eq!(page, Ok(None));
    }
    for (mut log, code) in [
        (spoke.log("orders", ""), code::INVALID_PID),
        (spoke.log("orders", "1").names(["*"]).from(1), code::INVALID_NAME),
        (spoke.entity_log(""), code::INVALID_EID),
        (spoke.entity_log("e").domain("*"), code::INVALID_DOMAIN),
        (spoke.domain_log("orders").names(["a"; 65]), code::INVALID_RECORD),
    ] {
        assert_eq!(log.collect(1).await.unwrap_err().code(), code);
    }
}

#[tokio::test(start_paused = true)]
async fn processes_are_read_by_pages() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let served = tokio::spawn(async move {
        for (page, pids, next) in [("", ["1", "2"], "p2"), ("p2", ["3", "4"], "")] {
            let Request::Pids { req, page: asked, .. } = link.request().await else {
                panic!("expected pids")
            };
            assert_eq!(asked, page);
            let pids = pids.map(|pid| Pid::parse(pid).unwrap()).to_vec();
            link.ok(req, Answer::Pids { pids, next: next.to_owned() }).await;
        }
        link
    });
    let mut pids = spoke.pids("orders").page_size(2);
    let all = pids.collect(10).await.unwrap();
    assert_eq!(all.iter().map(Pid::as_str).collect::<Vec<_>>(), ["1", "2", "3", "4"]);
    assert_eq!(pids.next_page().await, Ok(None));
    assert_eq!(spoke.pids("*").next_page().await.unwrap_err().code(), code::INVALID_DOMAIN);
    drop(served.await.unwrap());
}
