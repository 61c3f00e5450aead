//! Promise: whoever looks into a running hub sees each actor's state and numbers, in bounded time and size, whatever
//! the actors are up to. `GET /actors`, `GET /status` and `GET /metrics` tell the same as the hub's handle.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use eventflow::{
    metrics::{ActorKind, Label, Told},
    spoke::{Consume, Publish},
};
use serde_json::Value;

use crate::support::{
    TestHub,
    http::{Answer, ask, get},
    load::{self, Load},
    until,
};

/// The state that this kind of actor told in time.
async fn state(hub: &TestHub, kind: ActorKind) -> Value {
    let report = hub.handle.actors().await;
    let actor = report.actor(kind).unwrap();
    assert_eq!(actor.answer, Told::InTime, "{actor:?}");
    actor.state.clone().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_load_each_actor_tells_its_state_and_its_time_in_mailbox() {
    let hub = TestHub::start().await;
    let load = Load::start(vec![hub.spoke().await], vec![hub.spoke().await], load::rate()).await;
    load.acks(1_000).await;
    let report = hub.handle.actors().await;
    for kind in ActorKind::ALL {
        let actor = report.actor(*kind).unwrap();
        assert_eq!((actor.answer, actor.numbers.restarts), (Told::InTime, 0), "{kind:?}: {actor:?}");
        assert!(actor.numbers.alive >= 1 && actor.numbers.last_progress.is_some(), "{kind:?}: {actor:?}");
    }
    // The others had at least the question: let it be counted.
    until("time in mailbox of all kinds", || async {
        let metrics = hub.handle.metrics();
        ActorKind::ALL.iter().all(|kind| {
            let wait = &metrics.actor(*kind).unwrap().mailbox_wait;
            wait.count > 0 && wait.sum_seconds > 0.0
        })
    })
    .await;
    for kind in [ActorKind::Connection, ActorKind::Journal, ActorKind::Registry, ActorKind::Deliveries] {
        let numbers = &report.actor(kind).unwrap().numbers;
        assert!(numbers.mailbox_wait.count > 10 && numbers.mailbox_depth_peak > 0, "{kind:?}: {numbers:?}");
    }

    let journal = state(&hub, ActorKind::Journal).await;
    assert!(journal["last_seq"].as_u64().unwrap() > 0, "{journal}");
    let listener = state(&hub, ActorKind::Listener).await;
    let number = |field: &str| listener[field].as_u64().unwrap();
    assert!(
        number("links") >= 2 && number("permits") - number("permits_left") >= number("links"),
        "{listener}"
    );
    let deliveries = state(&hub, ActorKind::Deliveries).await;
    let binding = &deliveries["busiest_bindings"][0];
    assert!(binding["credit"].as_u64().unwrap() > 0 && binding["consumers"] == 1, "{deliveries}");
    let registry = state(&hub, ActorKind::Registry).await;
    assert!(registry["consumers"].as_u64().unwrap() >= 1, "{registry}");
    let links = state(&hub, ActorKind::Connection).await;
    let busiest = links["busiest"].as_array().unwrap();
    assert_eq!(
        (&links["links"]["v1"], busiest.len() as u64),
        (&listener["links"], number("links")),
        "{links}"
    );
    for link in busiest {
        assert_eq!(link["dialect"], "v1", "{link}");
        assert!(link["uid"].as_str().unwrap().ends_with(".EVENTFLOW-SPOKE"), "{link}");
        assert!(link["claims"].is_u64() && link["subscriptions"].is_u64(), "{link}");
    }
    assert!(
        busiest[0]["sent_bytes"].as_u64().unwrap() > 0 && busiest[0]["received_bytes"].as_u64().unwrap() > 0
    );
    load.finish().await;
    hub.stop().await;
}

#[tokio::test]
async fn an_actor_that_is_stuck_is_shown_as_late_and_holds_up_nobody() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    hub.handle.inject_stall(Duration::from_secs(3));
    until("the registry takes nothing", || async {
        hub.handle.actors().await.actor(ActorKind::Registry).unwrap().answer == Told::Late
    })
    .await;
    let began = Instant::now();
    for _ in 0..3 {
        let report = hub.handle.actors().await;
        for kind in ActorKind::ALL {
            let expected = if *kind == ActorKind::Registry { Told::Late } else { Told::InTime };
            assert_eq!(report.actor(*kind).unwrap().answer, expected, "{kind:?}");
        }
        let links = report.actor(ActorKind::Connection).unwrap().state.clone().unwrap();
        assert_eq!(links["busiest"][0]["subscriptions"], Value::Null, "only the registry knows: {links}");
        assert_eq!(links["busiest"][0]["claims"], 0, "{links}");
        let depth = report.actor(ActorKind::Registry).unwrap().numbers.mailbox_depth;
        assert!(depth <= 2, "it is asked once, however often people look: {depth} messages");
    }
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    until("the registry answers again", || async {
        hub.handle.actors().await.actor(ActorKind::Registry).unwrap().answer == Told::InTime
    })
    .await;
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn lists_are_cut_and_say_how_many_there_are() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let mut consumers = Vec::new();
    for n in 0..120 {
        let handler = |_event| async { Ok::<(), String>(()) };
        consumers.push(spoke.consume(Consume::new(format!("d{n}"), "*"), handler).await.unwrap());
    }
    until("the consumers are there", || async {
        state(&hub, ActorKind::Deliveries).await["consumers"] == consumers.len()
    })
    .await;
    let deliveries = state(&hub, ActorKind::Deliveries).await;
    assert_eq!((&deliveries["bindings"], &deliveries["consumers"]), (&120.into(), &120.into()));
    for list in ["busiest_bindings", "busiest_consumers"] {
        assert_eq!(deliveries[list].as_array().unwrap().len(), 100, "{list}");
    }
    let links = state(&hub, ActorKind::Connection).await;
    assert_eq!(links["busiest"][0]["subscriptions"], 120, "{links}");
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn the_manual_has_a_row_for_each_actor_of_the_report() {
    let hub = TestHub::start().await;
    let report: Value = serde_json::to_value(hub.handle.actors().await).unwrap();
    hub.stop().await;
    let manual = include_str!("../../docs/operations.md");
    let (_, table) = manual.split_once("\n| actor | its state |\n").expect("the table is there");
    let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
    let rows: Vec<_> = rows.map(|row| row.split('`').nth(1).unwrap()).collect();
    let told: BTreeSet<_> = report["actors"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(BTreeSet::from_iter(rows.iter().copied()), told, "docs/operations.md, \"Actors\"");
    assert_eq!(rows.len(), told.len(), "no actor stands twice");
}

#[tokio::test]
async fn http_tells_the_same_to_those_who_have_the_token() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    spoke.publish(Publish::new("orders", "created", "order-1")).await.unwrap();
    let admin = hub.handle.info().admin.unwrap();
    for path in ["/actors", "/status"] {
        let Answer { status, body } = get(&hub, path).await;
        assert_eq!(status, 200, "{body}");
        let missing = ask(admin, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n")).await;
        let wrong = "GET /actors HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer 0123456789abcdef\r\n";
        let foreign = ask(admin, &format!("GET {path} HTTP/1.1\r\nHost: evil.example\r\n")).await;
        let refused = [(missing, 401), (ask(admin, wrong).await, 401), (foreign, 421)];
        for (answer, status) in refused {
            assert_eq!(answer.status, status, "{path}: {}", answer.body);
            assert!(!answer.body.contains("journal"), "{}", answer.body);
        }
    }
    let actors: Value = serde_json::from_str(&get(&hub, "/actors").await.body).unwrap();
    for kind in ActorKind::ALL {
        let actor = &actors["actors"][kind.as_str()];
        assert_eq!(actor["answer"], "in_time", "{actor}");
        assert!(actor["state"].is_object() && actor["numbers"]["alive"].as_u64().unwrap() >= 1, "{actor}");
    }
    let status: Value = serde_json::from_str(&get(&hub, "/status").await.body).unwrap();
    assert_eq!((&status["hub"], &status["published"]), (&hub.handle.info().id.as_str().into(), &1.into()));
    assert_eq!((&status["links"]["v1"], &status["synchronous"]), (&1.into(), &2.into()));
    spoke.close().await;
    hub.stop().await;
}
