//! Promise: clients of npm Eventflow may subscribe, in their dialect.

use std::time::Duration;

use crate::support::{Raw, TestHub, until};

async fn publish(raw: &mut Raw, id: &str, domain: &str, name: &str) {
    let answer = raw.ask(&["publish", "1", id, domain, name, "order-1", "", r#"{"total":12}"#]).await;
    assert_eq!(answer[..3], ["ok", "1", "committed"], "{answer:?}");
}

/// Until the hub has taken so many messages of this name, since npm knows no answers.
async fn taken(hub: &TestHub, message: &str, count: u64) {
    until(message, || async {
        hub.handle.metrics().actors["registry"].messages.get(message) == Some(&count)
    })
    .await;
}

#[tokio::test]
async fn subscribers_get_records_without_data() {
    let hub = TestHub::start().await;
    let mut publisher = hub.v1().await;
    let mut npm = hub.raw().await;
    npm.send(&["subscribe", "orders", "created"]).await;
    npm.send(&["subscribe", "users", "*"]).await;
    npm.send(&["subscribe", "*", "literal"]).await;
    npm.send(&["subscribe", "dots", "a.*"]).await;
    taken(&hub, "SubscribeNpm", 4).await;
    for (id, domain, name) in [
        ("e1", "orders", "created"),
        ("e2", "orders", "paid"),
        ("e3", "users", "created"),
        ("e4", "users", "a.b"),
        ("e5", "orders", "literal"),
        ("e6", "dots", "a.b"),
        ("e7", "orders", "created"),
    ] {
        publish(&mut publisher, id, domain, name).await;
    }
    // The names of dots/a.* and the domain * are no patterns, so only these match:
    for (id, domain, name) in [
        ("e1", "orders", "created"),
        ("e3", "users", "created"),
        ("e4", "users", "a.b"),
        ("e7", "orders", "created"),
    ] {
        assert_eq!(npm.record().await.unwrap(), ["publish", domain, id, name, "order-1"]);
    }

    npm.send(&["unsubscribe", "orders", "created"]).await;
    npm.send(&["unsubscribe", "never", "was"]).await;
    taken(&hub, "UnsubscribeNpm", 2).await;
    publish(&mut publisher, "e8", "orders", "created").await;
    publish(&mut publisher, "e9", "users", "created").await;
    assert_eq!(npm.record().await.unwrap()[2], "e9");
    let links = hub.handle.metrics().hub.links;
    assert_eq!((links["npm"], links["v1"]), (1, 1));
    drop((publisher, npm));
    hub.stop().await;
}

#[tokio::test]
async fn an_event_comes_once_and_also_a_moment_late() {
    let hub = TestHub::start().await;
    let mut publisher = hub.v1().await;
    publish(&mut publisher, "early", "orders", "created").await;
    let mut npm = hub.raw().await;
    npm.send(&["subscribe", "orders", "*"]).await;
    assert_eq!(npm.record().await.unwrap()[2], "early");
    npm.send(&["subscribe", "orders", "created"]).await;
    npm.send(&["subscribe", "orders", "*"]).await;
    taken(&hub, "SubscribeNpm", 3).await;
    publish(&mut publisher, "e1", "orders", "created").await;
    publish(&mut publisher, "e2", "orders", "created").await;
    assert_eq!(npm.record().await.unwrap()[2], "e1");
    assert_eq!(npm.record().await.unwrap()[2], "e2");
    // It took nothing from consumers.
    publisher.ask(&["consume", "2", "1", "", "orders", "*", r#"{"credit":8}"#]).await;
    for id in ["early", "e1", "e2"] {
        assert_eq!(publisher.event().await[5], id);
    }
    drop((publisher, npm));
    hub.stop().await;
}

#[tokio::test]
async fn what_this_version_does_not_serve_is_ignored_and_counted() {
    let hub = TestHub::start().await;
    let mut publisher = hub.v1().await;
    let mut npm = hub.raw().await;
    let ignored: [&[&str]; 7] = [
        &["publish", "orders", "01K0", "created", "order-1"],
        &["online", "SOME-HUB.EVENTFLOW-HUB", "127.0.0.1", "50001"],
        &["schedule", "orders"],
        &["hello", "1", "{}"],
        &["subscribe", "orders"],
        &["subscribe", "orders", &"n".repeat(65)],
        &[""],
    ];
    for record in ignored {
        npm.send(record).await;
    }
    until("7 records are ignored", || async { hub.handle.metrics().hub.npm_ignored == 7 }).await;
    npm.send(&["subscribe", "orders", "*"]).await;
    taken(&hub, "SubscribeNpm", 1).await;
    publish(&mut publisher, "e1", "orders", "created").await;
    assert_eq!(npm.record().await.unwrap()[2], "e1", "the link goes on");
    let read = publisher.ask(&["read", "2", "01K0"]).await;
    assert_eq!(read[2], "E_EVENTFLOW_DB_EVENT_NOT_FOUND", "nothing was stored");
    drop((publisher, npm));
    hub.stop().await;
}

#[tokio::test]
async fn an_idle_npm_link_stays_while_a_silent_v1_link_is_cut() {
    let (ping, silence) = (Duration::from_millis(100), Duration::from_secs(1));
    let hub = TestHub::with(|config| (config.limits.ping, config.limits.silence) = (ping, silence)).await;
    let mut npm = hub.raw().await;
    npm.send(&["subscribe", "orders", "*"]).await;
    taken(&hub, "SubscribeNpm", 1).await;

    // A v1 link that pings lives for as long as three others need, one after the other, to be cut for silence.
    let mut living = hub.v1().await;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let pinging = tokio::spawn(async move {
        let mut stopped = std::pin::pin!(stopped);
        let mut beat = tokio::time::interval(ping);
        for n in 1_u64.. {
            tokio::select! {
                _ = &mut stopped => break,
                _ = beat.tick() => living.send(&["ping", &n.to_string()]).await,
            }
            while living.answer().await.expect("the link lives") != ["pong", &n.to_string()] {}
        }
        living
    });
    for _ in 0..3 {
        let began = tokio::time::Instant::now();
        let mut silent = hub.v1().await;
        let mut pings = 0;
        let bye = loop {
            let record = silent.record().await.expect("last words");
            if record[0] != "ping" {
                break record;
            }
            pings += 1;
        };
        assert_eq!(bye[..2], ["bye", "E_EVENTFLOW_LINK_SILENT"]);
        assert!(began.elapsed() >= silence && pings >= 1, "{pings} pings in {:?}", began.elapsed());
        assert_eq!(bye[3], "0", "it may come back at once");
        assert_eq!(silent.record().await, None);
    }
    // The npm link was idle all the time: it isn't cut, and was sent nothing, no ping either.
    let _ = stop.send(());
    let mut living = pinging.await.unwrap();
    publish(&mut living, "e1", "orders", "created").await;
    assert_eq!(npm.record().await.unwrap(), ["publish", "orders", "e1", "created", "order-1"]);
    assert_eq!(hub.handle.metrics().hub.cuts.get("silent"), Some(&3));
    drop((living, npm));
    hub.stop().await;
}
