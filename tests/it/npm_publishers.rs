//! Promise: clients of npm Eventflow may publish. The event stands in the database; the hub takes it by two claims that
//! are independent of each other, once, and what the database says holds, not what the record says.

use eventflow::metrics::Readiness;
use tokio::time::timeout;

use crate::support::{
    PATIENCE, Raw, TestHub, engine,
    npm::{Npm, ignored, taken},
    until,
};

const OTHER_HUB: &str = "OTHER-HUB-MX000009.EVENTFLOW-HUB";

async fn other_hub(npm: &Npm) {
    let sql = "insert into hub (id, external_ip, internal_ip, external_port, internal_port) \
               values (?, '127.0.0.1', '127.0.0.1', 1, 1)";
    assert_eq!(npm.run(sql, &[OTHER_HUB]).await, 1);
}

async fn subscribe(hub: &TestHub) -> Raw {
    let mut link = hub.v1().await;
    let answer = link.ask(&["subscribe", "1", "1", "orders", "*"]).await;
    assert_eq!(answer[..3], ["ok", "1", "position"]);
    link
}

#[tokio::test]
async fn an_event_in_the_database_reaches_everyone_once() {
    let hub = TestHub::start().await;
    let npm = Npm::of(&hub).await;
    let mut subscriber = subscribe(&hub).await;
    let (mut publisher, mut peer) = (hub.raw().await, hub.raw().await);
    peer.send(&["subscribe", "orders", "created"]).await;
    taken(&hub, "SubscribeNpm", 1).await;
    npm.publish("e1", "orders", "created", "order-1").await;
    // A spoke sends its record to every hub, and may send it twice.
    for _ in 0..3 {
        publisher.send(&["publish", "orders", "e1", "created", "order-1"]).await;
    }
    until("the record was taken three times", || async { hub.handle.metrics().hub.duplicates == 2 }).await;
    npm.publish("e2", "orders", "created", "order-2").await;
    publisher.send(&["publish", "orders", "e2", "created", "order-2"]).await;

    for (id, pid) in [("e1", "order-1"), ("e2", "order-2")] {
        let event = subscriber.event().await;
        assert_eq!((&*event[0], &*event[3]), ("event", id), "each once");
        assert_eq!(event[5..8], ["orders", "created", pid]);
        assert_eq!(event[9], r#"{"total":12}"#, "the data comes from the database");
        assert_eq!(peer.record().await.unwrap(), ["publish", "orders", id, "created", pid]);
    }
    let own = hub.handle.info().id.clone();
    for column in ["hub", "v1_hub"] {
        let sql = format!("select {column} from event_published where event_id = 'e1'");
        assert_eq!(npm.get::<String>(&sql, &[]).await.as_deref(), Some(&*own));
    }
    npm.until_rows("consumed_hub is not null and seq > 0", 2).await;
    assert_eq!(hub.handle.metrics().hub.published, 2);
    assert_eq!(hub.handle.metrics().hub.npm_ignored, 0);
    drop((subscriber, publisher, peer));
    hub.stop().await;
}

/// The record names whatever it likes; npm hubs leave the pid of a scheduled event empty, ours say it.
#[tokio::test]
async fn what_stands_in_the_database_counts_not_what_the_record_says() {
    let hub = TestHub::start().await;
    let npm = Npm::of(&hub).await;
    let (mut publisher, mut peer) = (hub.raw().await, hub.raw().await);
    for domain in ["orders", "secrets"] {
        peer.send(&["subscribe", domain, "*"]).await;
    }
    taken(&hub, "SubscribeNpm", 2).await;
    npm.publish("e1", "orders", "created", "order-1").await;
    publisher.send(&["publish", "secrets", "e1", "stolen", ""]).await;
    assert_eq!(peer.record().await.unwrap(), ["publish", "orders", "e1", "created", "order-1"]);

    // A scheduled event that was executed, by whomever, is dispatched with its pid.
    npm.publish("e2", "orders", "due", "order-2").await;
    npm.run(
        "insert into event_scheduled (event_id, scheduled, executed) \
         values ('e2', '2026-01-01 00:00:00', '2026-01-01 00:00:01')",
        &[],
    )
    .await;
    publisher.send(&["publish", "orders", "e2", "due", ""]).await;
    assert_eq!(peer.record().await.unwrap(), ["publish", "orders", "e2", "due", "order-2"]);
    drop((publisher, peer));
    hub.stop().await;
}

#[tokio::test]
async fn what_is_unknown_unpublished_or_not_due_is_ignored_and_counted() {
    let hub = TestHub::start().await;
    let npm = Npm::of(&hub).await;
    let mut subscriber = subscribe(&hub).await;
    let mut publisher = hub.raw().await;
    npm.insert("unpublished", "orders", "created", "order-1").await;
    npm.publish("scheduled", "orders", "created", "order-1").await;
    npm.run(
        "insert into event_scheduled (event_id, scheduled) values ('scheduled', '2999-01-01 00:00:00')",
        &[],
    )
    .await;
    for (id, so_far) in [("unknown", 1), ("unpublished", 2), ("scheduled", 3)] {
        publisher.send(&["publish", "orders", id, "created", "order-1"]).await;
        ignored(&hub, so_far).await;
    }
    npm.until_rows("v1_hub is null and consumed_hub is null", 1).await;
    // The link goes on, and what was too early comes when it is time.
    let sql =
        "insert into event_published (event_id, publisher) values ('unpublished', 'NPM-1.EVENTFLOW-SPOKE')";
    npm.run(sql, &[]).await;
    npm.run("update event_scheduled set executed = utc_timestamp()", &[]).await;
    for id in ["unpublished", "scheduled"] {
        publisher.send(&["publish", "orders", id, "created", "order-1"]).await;
        assert_eq!(subscriber.event().await[3], id);
    }
    assert_eq!(hub.handle.metrics().hub.npm_ignored, 3);
    drop((subscriber, publisher));
    hub.stop().await;
}

#[tokio::test]
async fn losing_one_claim_doesnt_stop_the_other() {
    let hub = TestHub::start().await;
    let npm = Npm::of(&hub).await;
    other_hub(&npm).await;
    let mut subscriber = subscribe(&hub).await;
    let (mut publisher, mut peer) = (hub.raw().await, hub.raw().await);
    peer.send(&["subscribe", "orders", "*"]).await;
    taken(&hub, "SubscribeNpm", 1).await;

    // An npm hub was quicker: it tells npm spokes, we serve our own links.
    npm.publish("theirs", "orders", "created", "order-1").await;
    let sql = "update event_published set consumed_hub = utc_timestamp(), hub = ? where event_id = 'theirs'";
    npm.run(sql, &[OTHER_HUB]).await;
    publisher.send(&["publish", "orders", "theirs", "created", "order-1"]).await;
    assert_eq!(subscriber.event().await[3], "theirs");

    // Another hub of ours serves the links of our own dialect: we tell npm spokes.
    npm.publish("ours", "orders", "created", "order-1").await;
    npm.run("update event_published set v1_hub = ?, seq = 5 where event_id = 'ours'", &[OTHER_HUB]).await;
    publisher.send(&["publish", "orders", "ours", "created", "order-1"]).await;
    assert_eq!(peer.record().await.unwrap()[2], "ours", "what an npm hub tells isn't told again");
    let hub_of = npm.get::<String>("select hub from event_published where event_id = 'ours'", &[]).await;
    assert_eq!(hub_of.as_deref(), Some(&*hub.handle.info().id));

    npm.publish("both", "orders", "created", "order-1").await;
    publisher.send(&["publish", "orders", "both", "created", "order-1"]).await;
    assert_eq!(subscriber.event().await[3], "both", "what another hub serves isn't served again");
    assert_eq!(peer.record().await.unwrap()[2], "both");
    drop((subscriber, publisher, peer));
    hub.stop().await;
}

/// npm has no answers: who publishes more than the window holds is slowed down, not cut, and nothing is left out.
#[tokio::test]
async fn a_burst_of_an_npm_link_is_slowed_down_not_lost() {
    const EVENTS: usize = 1_500;
    let hub = TestHub::with(|config| config.limits.window_requests = 16).await;
    let npm = Npm::of(&hub).await;
    let rows: Vec<String> =
        (1..=EVENTS).map(|number| format!("('e{number}', 'orders', 'p', 'created', '{{}}')")).collect();
    let insert = format!("insert into event (id, domain, pid, name, data) values {}", rows.join(", "));
    npm.run(&insert, &[]).await;
    npm.run(
        "insert into event_published (event_id, publisher) select id, 'NPM-1.EVENTFLOW-SPOKE' from event",
        &[],
    )
    .await;
    let mut subscriber = subscribe(&hub).await;
    let mut publisher = hub.raw().await;
    let burst: String =
        (1..=EVENTS).map(|n| format!("publish\u{1f}orders\u{1f}e{n}\u{1f}created\u{1f}p\u{1e}")).collect();
    publisher.bytes(burst.as_bytes()).await;
    for n in 1..=EVENTS {
        assert_eq!(subscriber.event().await[3], format!("e{n}"), "in the order in which they were published");
    }
    drop((subscriber, publisher));
    hub.stop().await;
}

#[tokio::test]
async fn a_restart_goes_on_with_what_npm_spokes_published() {
    let hub = TestHub::start().await;
    let npm = Npm::of(&hub).await;
    let mut publisher = hub.raw().await;
    npm.publish("e1", "orders", "created", "order-1").await;
    publisher.send(&["publish", "orders", "e1", "created", "order-1"]).await;
    npm.until_rows("v1_hub is not null", 1).await;
    drop(publisher);
    let folder = hub.stop().await;

    let hub = TestHub::on(folder, |_| {}).await;
    let mut consumer = hub.v1().await;
    consumer.ask(&["consume", "1", "1", "", "orders", "*", r#"{"credit":8}"#]).await;
    let claim = consumer.event().await;
    assert_eq!((&*claim[0], &*claim[5]), ("claim", "e1"));
    let answer = consumer.ask(&["publish", "2", "e2", "orders", "created", "order-1", "", "{}"]).await;
    let seq = |text: &str| text.parse::<u64>().unwrap();
    assert!(seq(&answer[4]) > seq(&claim[4]), "the numbers go on: {answer:?} {claim:?}");
    drop(consumer);
    hub.stop().await;
}

/// npm has no answers, so its spokes don't try again: the hub does.
#[tokio::test]
async fn what_the_database_cant_take_now_is_taken_later() {
    if engine::is_only_for_sqlite("it locks the whole database, of which a server locks rows") {
        return;
    }
    let hub = TestHub::start().await;
    let npm = Npm::of(&hub).await;
    let mut subscriber = subscribe(&hub).await;
    let mut publisher = hub.raw().await;
    npm.publish("e1", "orders", "created", "order-1").await;
    npm.run("begin immediate", &[]).await;
    publisher.send(&["publish", "orders", "e1", "created", "order-1"]).await;
    let mut readiness = hub.handle.readiness();
    let degraded = readiness.wait_for(|readiness| matches!(readiness, Readiness::Degraded { .. }));
    timeout(PATIENCE, degraded).await.expect("the lock is noticed").unwrap();
    npm.run("commit", &[]).await;
    assert_eq!(subscriber.event().await[3], "e1");
    drop((subscriber, publisher));
    hub.stop().await;
}
