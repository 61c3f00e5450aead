//! Promise: an event belongs to its process and to as many child processes and entities as it is associated with.

use eventflow::event::code;
use sea_orm::ConnectionTrait;

use crate::support::{TestHub, engine, until};

const PARCEL: &str = r#"{"domain":"parcels","cpid":"parcel-7"}"#;
const CUSTOMER: &str = r#"{"eid":"customer-4"}"#;

/// How many rows say so: of child processes and of entities.
async fn rows(hub: &TestHub) -> (i64, i64) {
    let database = engine::open(&hub.database()).await;
    let sql = "SELECT (SELECT count(*) FROM event_cpid WHERE domain = 'parcels' AND cpid = 'parcel-7'), \
               (SELECT count(*) FROM event_eid WHERE eid = 'customer-4')";
    let query = engine::statement(&database, sql, []);
    let row = database.query_one_raw(query).await.unwrap().unwrap();
    let counts = (row.try_get_by_index(0).unwrap(), row.try_get_by_index(1).unwrap());
    database.close().await.unwrap();
    counts
}

#[tokio::test]
async fn associations_are_made_and_taken_back_as_often_as_one_likes() {
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    // Sent with its publish, before its answer.
    let units = |units: &[&str]| format!("{}\u{1e}", units.join("\u{1f}"));
    let records = [
        units(&["publish", "1", "e", "orders", "created", "order-1", "", "{}"]),
        units(&["associate", "2", "e", PARCEL]),
        units(&["associate", "3", "e", CUSTOMER]),
        units(&["associate", "4", "e", CUSTOMER]),
    ];
    link.bytes(records.concat().as_bytes()).await;
    for req in ["1", "2", "3", "4"] {
        assert_eq!(link.reply(req).await[0], "ok", "{req}");
    }
    assert_eq!(rows(&hub).await, (1, 1));
    for (req, of) in [("20", PARCEL), ("21", CUSTOMER)] {
        assert_eq!(link.ask(&["log", req, of, "", "10"]).await[2..], ["page", ""]);
        assert_eq!(link.event().await[..3], ["item", req, "e"], "its log has it");
    }
    for (req, with) in [("5", PARCEL), ("6", PARCEL), ("7", r#"{"eid":"never"}"#)] {
        assert_eq!(link.ask(&["dissociate", req, "e", with]).await[..], ["ok", req]);
    }
    assert_eq!(rows(&hub).await, (0, 1));
    for (req, verb) in [("8", "associate"), ("9", "dissociate")] {
        assert_eq!(link.ask(&[verb, req, "nobody", CUSTOMER]).await[2], code::EVENT_NOT_FOUND);
    }
    assert_eq!(link.ask(&["associate", "10", "e", r#"{"cpid":"alone"}"#]).await[0], "err");
    assert_eq!(link.ask(&["delete", "11", r#"{"id":"e"}"#]).await[2..], ["deleted", "1"]);
    assert_eq!(rows(&hub).await, (0, 0), "they go with the event");
    hub.stop().await;
}

#[tokio::test]
async fn a_link_that_sends_more_than_it_may_have_under_way_is_refused_for_now() {
    const MANY: usize = 5_000;
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    link.ask(&["publish", "1", "e", "orders", "created", "order-1", "", "{}"]).await;
    let record = |n: usize| format!("associate\u{1f}{}\u{1f}e\u{1f}{{\"eid\":\"e{n}\"}}\u{1e}", n + 10);
    link.bytes((0..MANY).map(record).collect::<String>().as_bytes()).await;
    let (mut done, mut busy) = (0, 0);
    for _ in 0..MANY {
        let answer = link.answer().await.expect("each is answered and the link stays");
        match &*answer[0] {
            "ok" => done += 1,
            _ => {
                assert_eq!(answer[2], code::HUB_BUSY);
                assert!(!answer[4].is_empty(), "it may be sent again");
                busy += 1;
            }
        }
    }
    println!("{done} done, {busy} refused for now");
    assert!(done >= 256, "{done}");
    assert_eq!(link.ask(&["associate", "9", "e", CUSTOMER]).await[..], ["ok", "9"]);
    drop(link);
    until("the link to be gone", || async { hub.handle.metrics().hub.links["v1"] == 0 }).await;
    hub.stop().await;
}
