//! Promise: what order holds, and where.

use eventflow::spoke::{Delivery, Publish};

use crate::support::TestHub;

#[tokio::test]
async fn a_subscriber_sees_rising_numbers_whoever_publishes() {
    const PUBLISHERS: usize = 4;
    const EACH: usize = 250;
    let hub = TestHub::start().await;
    let reader = hub.spoke().await;
    let mut subscription = reader.subscribe("orders", "*").await.unwrap();
    let mut publishers = tokio::task::JoinSet::new();
    for publisher in 0..PUBLISHERS {
        let spoke = hub.spoke().await;
        publishers.spawn(async move {
            let mut pending = Vec::new();
            for n in 0..EACH {
                let publish = Publish::new("orders", "created", format!("p{publisher}"));
                pending.push(spoke.publish_later(publish.data(&n).unwrap()).await.unwrap());
            }
            for pending in pending {
                pending.await.unwrap();
            }
            spoke.close().await;
        });
    }
    let (mut last, mut next) = (0, vec![0; PUBLISHERS]);
    for _ in 0..PUBLISHERS * EACH {
        let Some(Delivery::Event { event, seq }) = subscription.next().await else { panic!("an event") };
        assert!(seq > last, "{seq} came after {last}");
        last = seq;
        let publisher: usize = event.pid[1..].parse().unwrap();
        assert_eq!(event.data.as_str(), next[publisher].to_string(), "each publisher's order is kept");
        next[publisher] += 1;
    }
    publishers.join_all().await;
    reader.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn one_links_publishes_keep_their_order_and_refusals_hold_nobody_up() {
    let hub = TestHub::start().await;
    let (mut publisher, mut subscriber) = (hub.v1().await, hub.v1().await);
    subscriber.ask(&["subscribe", "1", "1", "*", "*"]).await;
    publisher.ask(&["publish", "500", "taken", "orders", "created", "p", "", "0"]).await;
    let mut burst = String::new();
    for n in 0..200 {
        // Every tenth breaks a rule, conflicts, or answers nothing.
        let (id, rid, data) = match n % 30 {
            9 => ("taken".to_owned(), "", "1"),
            19 => (format!("e{n}"), "nothing", "1"),
            29 => (format!("e{n}"), "", "{"),
            _ => (format!("e{n}"), "", "1"),
        };
        burst += &format!(
            "publish\u{1f}{}\u{1f}{id}\u{1f}orders\u{1f}created\u{1f}p\u{1f}{rid}\u{1f}{data}\u{1e}",
            n + 1
        );
    }
    publisher.bytes(burst.as_bytes()).await;
    let (mut sent, mut last) = (vec!["taken".to_owned()], 0);
    for n in 0..200 {
        let answer = publisher.reply(&(n + 1).to_string()).await;
        let refused = match n % 30 {
            9 => Some("E_EVENTFLOW_EVENT_CONFLICT"),
            19 => Some("E_EVENTFLOW_RID_NOT_FOUND"),
            29 => Some("E_EVENTFLOW_INVALID_DATA"),
            _ => None,
        };
        match refused {
            Some(code) => assert_eq!(answer[2], code, "{n}"),
            None => {
                let seq: u64 = answer[4].parse().unwrap();
                assert!(seq > last, "{n}: numbers rise in the order of sending");
                last = seq;
                sent.push(format!("e{n}"));
            }
        }
    }
    for id in sent {
        assert_eq!(subscriber.event().await[3], id);
    }
    drop((publisher, subscriber));
    hub.stop().await;
}

#[tokio::test]
async fn a_log_is_read_page_by_page_in_one_total_order() {
    let hub = TestHub::start().await;
    let spokes = [hub.spoke().await, hub.spoke().await, hub.spoke().await];
    let mut subscription = spokes[0].subscribe("orders", "*").await.unwrap();
    let mut pending = Vec::new();
    for n in 0..60 {
        // One process of two, from three links.
        let publish = Publish::new("orders", "created", ["mine", "other"][n % 2]).id(format!("e{n}"));
        pending.push(spokes[n % 3].publish_later(publish).await.unwrap());
    }
    for pending in pending {
        pending.await.unwrap();
    }
    let mut dispatched = Vec::new();
    for _ in 0..60 {
        let Some(Delivery::Event { event, .. }) = subscription.next().await else { panic!("an event") };
        if event.pid.as_str() == "mine" {
            dispatched.push(event);
        }
    }
    let mut log = spokes[1].log("orders", "mine").page_size(7);
    let (mut read, mut pages) = (Vec::new(), 0);
    while let Some(page) = log.next_page().await.unwrap() {
        assert!(page.len() <= 7);
        pages += 1;
        read.extend(page);
    }
    assert_eq!(read, dispatched, "dispatch order, each once");
    assert!(read.is_sorted_by_key(|event| event.timestamp));
    assert!(pages >= 5, "{pages}");
    for spoke in spokes {
        spoke.close().await;
    }
    hub.stop().await;
}

#[tokio::test]
async fn a_page_token_holds_for_its_query_only() {
    let hub = TestHub::start().await;
    let mut raw = hub.v1().await;
    for n in 0..3 {
        let (req, id) = (format!("{}", n + 1), format!("e{n}"));
        raw.ask(&["publish", &req, &id, "orders", "created", "mine", "", "1"]).await;
    }
    let of = |domain: &str, pid: &str| format!(r#"{{"domain":"{domain}","pid":"{pid}"}}"#);
    let page = raw.ask(&["log", "10", &of("orders", "mine"), "", "2"]).await;
    assert_eq!(page[..3], ["ok", "10", "page"]);
    let token = page[3].clone();
    assert_eq!((&*raw.event().await[2], &*raw.event().await[2]), ("e0", "e1"));
    let damaged = format!("{}{}", &token[..token.len() - 1], if token.ends_with('0') { "1" } else { "0" });
    for (domain, pid, token) in [
        ("orders", "other", &*token),
        ("users", "mine", &*token),
        ("orders", "mine", &*damaged),
        ("orders", "mine", "nonsense"),
    ] {
        let refused = raw.ask(&["log", "11", &of(domain, pid), token, "2"]).await;
        assert_eq!(refused[..3], ["err", "11", "E_EVENTFLOW_INVALID_PAGE"], "{domain} {pid} {token}");
    }
    let last = raw.ask(&["log", "12", &of("orders", "mine"), &token, "2"]).await;
    assert_eq!(last, ["ok", "12", "page", ""]);
    assert_eq!(raw.event().await[2], "e2");
    drop(raw);
    hub.stop().await;
}
