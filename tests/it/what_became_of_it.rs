//! Promise: of each event it can be said what became of it, and who did it.

use eventflow::{
    spoke::{Association, Consume, Nack, Publish, ReadError, Spoke},
    wire::Trace,
};
use sea_orm::ConnectionTrait;

use crate::support::{TestHub, admin::Admin, engine};

async fn publish(spoke: &Spoke, id: &str) {
    spoke.publish(Publish::new("orders", "created", "order-1").id(id.to_owned())).await.unwrap();
}

async fn trace(spoke: &Spoke, id: &str) -> Trace {
    let (event, trace) = spoke.show(id).await.unwrap();
    assert_eq!(event.id.as_str(), id);
    trace
}

#[tokio::test]
async fn each_state_from_orphan_to_its_end() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let operator = hub.bundle().uid().unwrap();
    publish(&spoke, "good").await;
    publish(&spoke, "bad").await;
    publish(&spoke, "waits").await;
    let orphan = trace(&spoke, "good").await;
    assert_eq!((&*orphan.state, &orphan.publisher), ("orphan", &Some(operator.clone())));
    assert_eq!(orphan.hub.as_deref(), Some(hub.handle.info().id.as_str()));
    assert_eq!((orphan.consumer, orphan.ended), (None, None));
    let event = spoke.read("good").await.unwrap();
    assert_eq!(orphan.published, Some(engine::held(event.timestamp)));
    assert_eq!(orphan.seq.map(|seq| i64::try_from(seq / 1_000).unwrap()), Some(event.timestamp));

    let mut claims = spoke.claims(Consume::new("orders", "*").credit(2)).await.unwrap();
    let (good, bad) = (claims.next().await.unwrap(), claims.next().await.unwrap());
    let claimed = trace(&spoke, "good").await;
    assert_eq!((&*claimed.state, claimed.consumer, claimed.ended), ("claimed", Some(operator.clone()), None));
    assert_eq!(trace(&spoke, "waits").await.state, "pending");

    good.ack().await.unwrap();
    bad.nack(Nack::new("no such customer: ünknown\u{1F680}").give_up()).await.unwrap();
    let good = trace(&spoke, "good").await;
    assert_eq!((&*good.state, good.consumer), ("success", Some(operator.clone())));
    assert!(good.ended >= good.published && good.attempts.is_empty());
    let bad = trace(&spoke, "bad").await;
    assert_eq!((&*bad.state, bad.consumer), ("dead", Some(operator.clone())));
    let [attempt] = &*bad.attempts else { panic!("one attempt, not {:?}", bad.attempts) };
    assert_eq!((attempt.number, &attempt.consumer, &*attempt.reason), (1, &operator, "given up"));
    assert_eq!(attempt.error, "no such customer: ünknown\u{1F680}");
    assert!(bad.published <= Some(attempt.started) && Some(engine::held(attempt.ended)) <= bad.ended);
    assert!(attempt.started <= attempt.ended);
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn the_admin_http_tells_the_same() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let data = r#"{"amount":12345678901234567890.10}"#;
    let order = Publish::new("orders", "created", "order-1").id("e/1 x").data_text(data).unwrap();
    spoke.publish(order).await.unwrap();
    let admin = Admin::of(&hub);
    let headers = format!("Authorization: Bearer {}\r\n", admin.token);
    let life = async || {
        let (status, text) = admin.ask("GET", "/events/e%2F1%20x", &headers, "").await;
        assert_eq!(status, 200, "{text}");
        assert!(text.contains(&format!("\"data\":{data}")), "data as it is: {text}");
        serde_json::from_str::<serde_json::Value>(&text).unwrap()
    };
    let mut claims = spoke.claims(Consume::new("orders", "*").credit(1)).await.unwrap();
    let claim = claims.next().await.unwrap();
    let held = life().await;
    assert_eq!((&held["event"]["id"], &held["trace"]["state"]), (&"e/1 x".into(), &"claimed".into()));
    claim.nack(Nack::new("no such customer").give_up()).await.unwrap();
    let (_, trace) = spoke.show("e/1 x").await.unwrap();
    let dead = life().await;
    assert_eq!(dead["trace"], serde_json::to_value(trace).unwrap());
    assert_eq!(dead["trace"]["attempts"][0]["error"], "no such customer");

    assert_eq!(admin.ask("GET", "/events/e1", "", "").await.0, 401);
    let (status, problem) = admin.json("GET", "/events/nothing", serde_json::Value::Null).await;
    assert_eq!((status, &problem["code"]), (404, &"E_EVENTFLOW_DB_EVENT_NOT_FOUND".into()));
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn lost_links_and_the_nack_are_its_attempts() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    publish(&spoke, "e1").await;
    hub.v1().await.set("", r#"{"max_attempts":22,"delay":1,"max_delay":1}"#).await;
    for attempt in 1..=22_usize {
        let mut raw = hub.v1().await;
        raw.ask(&["consume", "1", "1", "", "orders", "*", r#"{"credit":1}"#]).await;
        let claim = raw.event().await;
        assert_eq!((&*claim[3], &*claim[5]), (&*attempt.to_string(), "e1"));
        if attempt == 22 {
            let nacked = raw.ask(&["nack", "2", &claim[2], r#"{"reason":"enough"}"#]).await;
            assert_eq!(nacked, ["ok", "2"]);
        }
        // The next one hears of this attempt whether it is written by then or not.
    }
    let trace = trace(&spoke, "e1").await;
    assert_eq!(trace.state, "dead");
    let numbers: Vec<_> = trace.attempts.iter().map(|attempt| attempt.number).collect();
    assert_eq!(numbers, (1..=22).collect::<Vec<_>>());
    let last = trace.attempts.last().unwrap();
    assert_eq!((&*last.reason, &*last.error), ("nack", "enough"));
    assert!(trace.attempts[..21].iter().all(|attempt| attempt.reason == "link lost"));
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn what_another_program_stored_and_nobody_published_is_persisted() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let database = engine::open(&hub.database()).await;
    let stored = "INSERT INTO event (id, timestamp, domain, pid, name, data) \
                  VALUES ('stored', '2026-01-02 03:04:05.678', 'orders', 'order-1', 'created', '{\"a\":1}')";
    database.execute_unprepared(stored).await.unwrap();
    database.close().await.unwrap();
    let (event, trace) = spoke.show("stored").await.unwrap();
    assert_eq!((event.timestamp, event.data.as_str()), (1_767_323_045_678, r#"{"a":1}"#));
    assert_eq!((&*trace.state, trace.publisher, trace.seq), ("persisted", None, None));

    // Publishing it is its first publish; its time stays.
    let publish = Publish::new("orders", "created", "order-1").id("stored").data_text(r#"{"a":1}"#).unwrap();
    let published = spoke.publish(publish).await.unwrap();
    assert!(published.fresh);
    assert_eq!(published.timestamp, 1_767_323_045_678);
    assert_eq!(self::trace(&spoke, "stored").await.state, "orphan");
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn what_is_unknown_is_said_to_be() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let (read, shown) = (spoke.read("nothing").await.unwrap_err(), spoke.show("nothing").await.unwrap_err());
    for error in [read, shown] {
        assert!(matches!(&error, ReadError::NotFound { id } if id == "nothing"), "{error:?}");
        assert_eq!(error.code(), "E_EVENTFLOW_DB_EVENT_NOT_FOUND");
    }
    let mut raw = hub.v1().await;
    for (req, verb) in [("1", "read"), ("2", "show")] {
        let answer = raw.ask(&[verb, req, "nothing"]).await;
        assert_eq!(answer[..3], ["err", req, "E_EVENTFLOW_DB_EVENT_NOT_FOUND"]);
        assert!(answer[3].contains("the id \"nothing\""), "{}", answer[3]);
    }
    let nobody = r#"{"domain":"orders","pid":"nobody"}"#;
    assert_eq!(raw.ask(&["log", "3", nobody, "", "10"]).await, ["ok", "3", "page", ""]);
    assert!(spoke.log("orders", "nobody").collect(10).await.unwrap().is_empty());
    spoke.close().await;
    drop(raw);
    hub.stop().await;
}

#[tokio::test]
async fn what_was_redriven_and_what_it_belongs_to_is_told() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let operator = hub.bundle().uid().unwrap();
    let billing = spoke.group("billing");
    let mut ours = spoke.claims(Consume::new("orders", "*")).await.unwrap();
    let mut theirs = spoke.claims(Consume::new("orders", "*").group("billing")).await.unwrap();
    publish(&spoke, "a").await;
    spoke.associate("a", Association::child_process("parcels", "parcel-7")).await.unwrap();
    spoke.associate("a", Association::entity("customer-3")).await.unwrap();
    for round in 1..=2 {
        ours.next().await.unwrap().nack(Nack::new("no").give_up()).await.unwrap();
        theirs.next().await.unwrap().nack(Nack::new("no").give_up()).await.unwrap();
        assert_eq!(trace(&spoke, "a").await.redriven.len(), 2 * (round - 1), "{round}");
        assert!(spoke.default_group().redrive("a").await.unwrap());
        assert!(billing.redrive("a").await.unwrap());
    }
    ours.next().await.unwrap().ack().await.unwrap();
    let held = theirs.next().await.unwrap();
    let told = trace(&spoke, "a").await;
    let rounds: Vec<_> = told
        .redriven
        .iter()
        .map(|of| (of.group.as_deref(), of.round, &*of.state, of.consumer.as_ref().unwrap()))
        .collect();
    let dead = |group, round| (group, round, "dead", &operator);
    assert_eq!(rounds, [dead(None, 1), dead(None, 2), dead(Some("billing"), 1), dead(Some("billing"), 2)]);
    let with: Vec<_> = told.associations.iter().map(|with| serde_json::to_string(with).unwrap()).collect();
    assert_eq!(with, [r#"{"domain":"parcels","cpid":"parcel-7"}"#, r#"{"eid":"customer-3"}"#]);
    assert_eq!((&*told.state, told.groups[0].round, told.groups[1].round), ("success", 3, 3));
    held.ack().await.unwrap();
    spoke.close().await;
    hub.stop().await;
}
