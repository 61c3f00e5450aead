//! Promise: an application may put an event into the hub's database in the transaction that changes its own tables. What
//! it commits is delivered once, whether it nudges the hub, is killed before, or does so twice; what it rolls back never
//! is.

use std::{collections::BTreeMap, path::Path, time::Duration};

use eventflow::{
    config::HubConfig,
    spoke::{Consume, Spoke},
};
use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, Value};
use tokio::{sync::mpsc, time::Instant};

use crate::support::{TestHub, engine, npm::Npm, process::Home, until};

/// An application with its connection to the hub's database.
struct App {
    db: DatabaseConnection,
}

impl App {
    async fn of(database: &Path) -> Self {
        let app = Self { db: engine::open(database).await };
        if app.db.get_database_backend() == DbBackend::Sqlite {
            for sql in ["PRAGMA foreign_keys = ON", "PRAGMA busy_timeout = 20000"] {
                app.run(sql, &[]).await;
            }
        }
        app.run("CREATE TABLE IF NOT EXISTS shop_order (number VARCHAR(64) PRIMARY KEY)", &[]).await;
        app
    }

    async fn run(&self, sql: &str, values: &[&str]) {
        let values: Vec<Value> = values.iter().map(|value| (*value).into()).collect();
        let statement = engine::statement(&self.db, sql, values);
        self.db.execute_raw(statement).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// Begins a transaction, on SQLite with its lock.
    async fn begin(&self) {
        let begin = match self.db.get_database_backend() {
            DbBackend::Sqlite => "BEGIN IMMEDIATE",
            _ => "BEGIN",
        };
        self.db.execute_unprepared(begin).await.unwrap();
    }

    /// An order and its event, as docs/transactions.md says it, up to the end of the transaction.
    async fn write(&self, id: &str, end: &str) {
        self.begin().await;
        self.run("INSERT INTO shop_order (number) VALUES (?)", &[id]).await;
        self.event(id, "{\"total\":12}").await;
        self.run("INSERT INTO event_published (event_id, publisher) VALUES (?, 'SHOP')", &[id]).await;
        self.db.execute_unprepared(end).await.unwrap();
    }

    async fn event(&self, id: &str, data: &str) {
        let json = match self.db.get_database_backend() {
            DbBackend::Postgres => "CAST(? AS json)",
            _ => "?",
        };
        let row = format!("(?, 'orders', 'order-1', 'created', {json})");
        let sql = format!("INSERT INTO event (id, domain, pid, name, data) VALUES {row}");
        self.run(&sql, &[id, data]).await;
    }

    async fn published(&self, id: &str) {
        self.run("INSERT INTO event_published (event_id, publisher) VALUES (?, 'SHOP')", &[id]).await;
    }
}

/// What a consumer handled, as it comes.
async fn consumed(spoke: &Spoke) -> (eventflow::spoke::Consumer, mpsc::UnboundedReceiver<String>) {
    let (handled, seen) = mpsc::unbounded_channel();
    let handler = move |event: eventflow::event::Event| {
        let handled = handled.clone();
        async move { handled.send(event.id.to_string()) }
    };
    (spoke.consume(Consume::new("orders", "created"), handler).await.unwrap(), seen)
}

/// Looks often, and takes what is so old.
fn quick(age: Duration) -> impl FnOnce(&mut HubConfig) {
    move |config| {
        config.collect.interval = Duration::from_millis(20);
        config.collect.age = age;
    }
}

/// Doesn't look by itself.
fn slow(config: &mut HubConfig) {
    config.collect.interval = Duration::from_secs(3600);
}

async fn states(spoke: &Spoke, ids: &[&str]) -> Vec<String> {
    spoke.nudge(ids).await.unwrap().into_iter().map(|event| event.state).collect()
}

#[tokio::test]
async fn what_is_committed_is_delivered_once_and_what_is_rolled_back_never() {
    let hub = TestHub::with(slow).await;
    let (app, spoke) = (App::of(&hub.database()).await, hub.spoke().await);
    let (consumer, mut seen) = consumed(&spoke).await;
    let mut subscriber = hub.v1().await;
    subscriber.ask(&["subscribe", "1", "1", "orders", "*"]).await;

    app.write("never", "ROLLBACK").await;
    app.write("e1", "COMMIT").await;
    assert_eq!(states(&spoke, &["e1", "never"]).await, ["taken", "unknown"]);
    assert_eq!(states(&spoke, &["e1", "e1"]).await, ["published", "published"], "a second nudge");
    app.write("e2", "COMMIT").await;
    assert_eq!(states(&spoke, &["e2", "e2"]).await, ["taken", "published"], "named twice");
    for id in ["e1", "e2"] {
        assert_eq!(seen.recv().await.as_deref(), Some(id));
        assert_eq!(subscriber.event().await[3], id);
    }
    until("both have their outcome", || async { hub.handle.metrics().hub.acks == 2 }).await;
    assert!(seen.try_recv().is_err());
    let log = spoke.log("orders", "order-1").collect(9).await.unwrap();
    assert_eq!(log.iter().map(|event| event.id.as_str()).collect::<Vec<_>>(), ["e1", "e2"]);
    let trace = spoke.show("e1").await.unwrap().1;
    assert_eq!((trace.state.as_str(), trace.publisher.as_deref()), ("success", Some("SHOP")));
    assert!(trace.seq > Some(0) && trace.hub.as_deref() == Some(hub.handle.info().id.as_str()));
    let metrics = hub.handle.metrics().hub;
    assert_eq!((metrics.collected, metrics.published, metrics.delivered), (2, 2, 2));
    consumer.stop().await.unwrap();
    spoke.close().await;
    drop(subscriber);
    hub.stop().await;
}

#[tokio::test]
async fn without_a_nudge_it_comes_once_it_is_old_enough() {
    let age = Duration::from_millis(300);
    let hub = TestHub::with(quick(age)).await;
    let (app, spoke) = (App::of(&hub.database()).await, hub.spoke().await);
    let mut orders = spoke.subscribe("orders", "*").await.unwrap();
    // Where its time has whole seconds it seems older than it is.
    let rounding = if engine::held(999) == 0 { Duration::from_secs(1) } else { Duration::from_millis(2) };
    let began = Instant::now();
    app.write("e1", "COMMIT").await;
    let Some(eventflow::spoke::Delivery::Event { event, .. }) = orders.next().await else {
        panic!("an event")
    };
    assert_eq!(event.id.as_str(), "e1");
    assert!(began.elapsed() >= age.saturating_sub(rounding), "{:?}", began.elapsed());

    // A nudge without ids looks now, and respects the age.
    drop(orders);
    spoke.close().await;
    let hub = TestHub::on(hub.stop().await, slow).await;
    let spoke = hub.spoke().await;
    app.write("e2", "COMMIT").await;
    assert_eq!(spoke.nudge_all().await, Ok(0), "10 s by default");
    assert_eq!(states(&spoke, &["e2"]).await, ["taken"]);
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn what_was_committed_while_no_hub_was_up_is_found_at_its_start() {
    let hub = TestHub::start().await;
    let database = hub.database();
    let folder = hub.stop().await;
    let app = App::of(&database).await;
    app.write("e1", "COMMIT").await;
    app.write("never", "ROLLBACK").await;
    let look_once = |config: &mut HubConfig| {
        slow(config);
        config.collect.age = Duration::ZERO;
    };
    let hub = TestHub::on(folder, look_once).await;
    until("its first look finds it", || async { hub.handle.metrics().hub.collected == 1 }).await;
    // The starts after it find nothing new.
    let hub = TestHub::on(hub.stop().await, look_once).await;
    let spoke = hub.spoke().await;
    assert_eq!(spoke.nudge_all().await, Ok(0));
    assert_eq!(hub.handle.metrics().hub.collected, 0);
    spoke.close().await;
    let hub = TestHub::on(hub.stop().await, look_once).await;
    let spoke = hub.spoke().await;
    let (consumer, mut seen) = consumed(&spoke).await;
    assert_eq!(seen.recv().await.as_deref(), Some("e1"));
    until("it has its outcome", || async { hub.handle.metrics().hub.acks == 1 }).await;
    assert_eq!(states(&spoke, &["e1", "never"]).await, ["published", "unknown"]);
    assert!(seen.try_recv().is_err(), "once");
    consumer.stop().await.unwrap();
    spoke.close().await;
    hub.stop().await;
}

/// `kill -9` of the hub after the commit, before the nudge has its answer, and in between.
#[tokio::test]
async fn a_hub_that_is_killed_around_the_nudge_delivers_it_once() {
    let home = Home::new();
    let settings = ["--collect-interval=20ms", "--collect-age=0s"];
    let mut hub = home.spawn(&[], &settings);
    hub.ready().await;
    let app = App::of(&home.database()).await;
    let spoke = home.spoke().await;
    let mut written = Vec::new();
    for round in 0..3 {
        let ids: Vec<String> = (0..20).map(|n| format!("e{round}-{n}")).collect();
        for id in &ids {
            app.write(id, "COMMIT").await;
        }
        if round > 0 {
            // Killed with the nudge on its way: it is asked again on the next link.
            let restarted = async {
                hub.kill().await;
                let mut hub = home.spawn(&[], &settings);
                hub.ready().await;
                hub
            };
            let (nudged, restarted) = tokio::join!(spoke.nudge(&ids), restarted);
            hub = restarted;
            let nudged = nudged.unwrap();
            assert!(nudged.iter().all(|event| ["taken", "published"].contains(&&*event.state)), "{nudged:?}");
        }
        written.extend(ids);
    }
    let (consumer, mut seen) = consumed(&spoke).await;
    let mut handled: BTreeMap<String, u32> = BTreeMap::new();
    while handled.len() < written.len() {
        *handled.entry(seen.recv().await.unwrap()).or_default() += 1;
    }
    assert!(written.iter().all(|id| handled.get(id) == Some(&1)), "{handled:?}");
    consumer.stop().await.unwrap();
    spoke.close().await;
    hub.kill().await;
}

#[tokio::test]
async fn nudges_that_race_each_other_and_the_hubs_own_look_dispatch_each_event_once() {
    let hub = TestHub::with(quick(Duration::ZERO)).await;
    let app = App::of(&hub.database()).await;
    let spokes = [hub.spoke().await, hub.spoke().await, hub.spoke().await];
    let mut subscriber = hub.v1().await;
    subscriber.ask(&["subscribe", "1", "1", "orders", "*"]).await;
    let mut taken = 0;
    for round in 0..20 {
        let ids: Vec<String> = (0..10).map(|n| format!("e{round}-{n}")).collect();
        for id in &ids {
            app.write(id, "COMMIT").await;
        }
        let [one, two, three] = &spokes;
        let (one, two, three, all) =
            tokio::join!(one.nudge(&ids), two.nudge(&ids), three.nudge(&ids), one.nudge_all());
        for nudged in [one, two, three] {
            let nudged = nudged.unwrap();
            assert!(nudged.iter().all(|event| ["taken", "published"].contains(&&*event.state)), "{nudged:?}");
            taken += nudged.iter().filter(|event| event.state == "taken").count() as u64;
        }
        all.unwrap();
    }
    let metrics = hub.handle.metrics().hub;
    assert_eq!((metrics.collected, metrics.published), (200, 200));
    assert!(taken <= 200, "{taken}");
    subscriber.ask(&["publish", "2", "end", "orders", "created", "p", "", "1"]).await;
    let mut seen = Vec::new();
    loop {
        match &*subscriber.event().await[3] {
            "end" => break,
            id => seen.push(id.to_owned()),
        }
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 200);
    assert_eq!(hub.handle.metrics().hub.delivered, 201, "none twice");
    for spoke in spokes {
        spoke.close().await;
    }
    drop(subscriber);
    hub.stop().await;
}

#[tokio::test]
async fn what_waits_for_its_time_is_only_stored_or_breaks_the_rules_is_left_and_said() {
    if engine::is_only_for_sqlite("a server's columns of JSON take nothing else") {
        return;
    }
    let hub = TestHub::with(quick(Duration::ZERO)).await;
    let (app, spoke) = (App::of(&hub.database()).await, hub.spoke().await);
    let mut orders = spoke.subscribe("orders", "*").await.unwrap();
    app.begin().await;
    for (id, data) in
        [("stored", "1"), ("later", "1"), ("odd", "{\n\"a\": 1}"), ("none", "no JSON"), ("e\u{1}", "1")]
    {
        app.event(id, data).await;
        if id != "stored" {
            app.published(id).await;
        }
    }
    app.run("INSERT INTO event_scheduled (event_id, scheduled) VALUES ('later', '2999-01-01 00:00:00')", &[])
        .await;
    // A time that can't be read spoils no other event of its page.
    app.event("spoilt", "1").await;
    app.run("UPDATE event SET timestamp = 'noon' WHERE id = 'spoilt'", &[]).await;
    app.published("spoilt").await;
    app.event("good", "1").await;
    app.published("good").await;
    app.run("COMMIT", &[]).await;
    let Some(eventflow::spoke::Delivery::Event { event, .. }) = orders.next().await else {
        panic!("an event")
    };
    assert_eq!(event.id.as_str(), "good");

    let metrics = || hub.handle.metrics().hub;
    until("all that is wrong was told", || async { metrics().collect_refused == 4 }).await;
    let nudged = spoke.nudge(["stored", "later", "odd", "none", "spoilt", "good"]).await.unwrap();
    let words: Vec<_> = nudged.iter().map(|event| event.state.as_str()).collect();
    assert_eq!(words, ["unpublished", "scheduled", "invalid", "invalid", "invalid", "published"]);
    assert!(nudged[2].reason.contains("compact JSON"), "{:?}", nudged[2]);
    // Each was told once, however often it was met, and stays readable.
    assert_eq!((metrics().collect_refused, metrics().collected), (4, 1));
    assert_eq!(spoke.read("none").await.unwrap().data.as_str(), "no JSON");
    let npm = Npm::of(&hub).await;
    let line = "SELECT count(*) FROM log WHERE message LIKE 'not published, since it breaks the rules:%'";
    until("the log table tells of them", || async { npm.get::<i64>(line, &[]).await == Some(4) }).await;
    // Set right, it comes.
    app.run("UPDATE event SET data = json(data) WHERE id = 'odd'", &[]).await;
    assert_eq!(states(&spoke, &["odd"]).await, ["taken"]);
    drop(orders);
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn what_is_older_than_the_first_start_is_history_until_it_is_named() {
    let hub = TestHub::with(slow).await;
    let (app, spoke) = (App::of(&hub.database()).await, hub.spoke().await);
    for id in ["old", "left"] {
        app.write(id, "COMMIT").await;
    }
    app.run("UPDATE event_published SET published = '2020-01-01 00:00:00.000' WHERE event_id = 'old'", &[])
        .await;
    // As an npm hub leaves it that went away before a spoke took it.
    let hub_id = hub.handle.info().id.clone();
    app.run(
        "UPDATE event_published SET hub = ?, consumed_hub = published WHERE event_id = 'left'",
        &[&hub_id],
    )
    .await;
    spoke.close().await;
    let hub = TestHub::on(hub.stop().await, |config| config.collect.age = Duration::ZERO).await;
    let spoke = hub.spoke().await;
    until("the other one is collected", || async { hub.handle.metrics().hub.collected == 1 }).await;
    assert_eq!(spoke.nudge_all().await, Ok(0));
    assert_eq!(states(&spoke, &["old", "left"]).await, ["taken", "published"]);
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn a_panic_of_the_collector_loses_nothing() {
    let hub = TestHub::with(quick(Duration::ZERO)).await;
    let (app, spoke) = (App::of(&hub.database()).await, hub.spoke().await);
    let kind = eventflow::metrics::ActorKind::Collector;
    for restart in 0..3 {
        app.write(&format!("before-{restart}"), "COMMIT").await;
        hub.handle.inject_panic(kind);
        let restarts = || hub.handle.metrics().actor(kind).unwrap().restarts;
        until("the core restarts", || async { restarts() == restart + 1 }).await;
        // Only a new core can take it: one that isn't there panics no more.
        app.write(&format!("after-{restart}"), "COMMIT").await;
        until("all are there", || async { hub.handle.metrics().hub.collected == 2 * (restart + 1) }).await;
    }
    assert_eq!(states(&spoke, &["before-0", "after-2"]).await, ["published"; 2]);
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn a_nudge_is_refused_while_the_hub_drains_and_beyond_its_bounds() {
    let hub = TestHub::with(slow).await;
    let mut raw = hub.v1().await;
    let odd = raw.ask(&["nudge", "1", "[]"]).await;
    assert_eq!(odd[2], "E_EVENTFLOW_INVALID_BATCH");
    assert_eq!(raw.ask(&["nudge", "2"]).await, ["ok", "2", "nudged", "0", "[]"]);
    let unknown = raw.ask(&["nudge", "3", r#"["e1"]"#]).await;
    assert_eq!(unknown, ["ok", "3", "nudged", "0", r#"[{"id":"e1","state":"unknown"}]"#]);
    // A thousand nudges sent at once: each is answered, by a number or as too many for now.
    let burst: String = (10..1_010).map(|req| format!("nudge\u{1f}{req}\u{1e}")).collect();
    raw.bytes(burst.as_bytes()).await;
    for req in 10..1_010 {
        let answer = raw.reply(&req.to_string()).await;
        assert!(answer[0] == "ok" || answer[2] == "E_EVENTFLOW_HUB_BUSY", "{answer:?}");
    }
    drop(raw);
    hub.stop().await;
}
