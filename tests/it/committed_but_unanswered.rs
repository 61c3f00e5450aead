//! Promise: if the connection to the database is lost in a commit, the hub finds out whether it was one: what was committed is
//! acked and served once, what wasn't is refused as retryable, and is there once after it was sent again.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use eventflow::spoke::{Consume, Publish, Spoke, SpokeConfig};

use crate::support::{
    PATIENCE, TestHub, engine, pair,
    proxy::{Cut, Proxy},
    until,
};

const EVENTS: usize = 60;

async fn each_is_acked_and_served_once(cut: Cut) {
    if engine::server().is_none() {
        eprintln!("skipped: SQLite has no connection that could be lost");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let url = engine::url(folder.path()).unwrap();
    let proxy = Proxy::before(&url).await;
    engine::note(folder.path(), proxy.url());
    let hub = TestHub::on(folder, |_| {}).await;
    let mut config = SpokeConfig::from_bundle(hub.bundle());
    config.backoff = (Duration::from_millis(10), Duration::from_millis(200));
    config.publish_deadline = 4 * PATIENCE;
    let spoke = Spoke::connect(config).await.unwrap();
    let handled = Arc::new(Mutex::new(HashMap::<String, usize>::new()));
    let book = handled.clone();
    let handler = move |event: eventflow::event::Event| {
        *book.lock().unwrap().entry(event.id.to_string()).or_default() += 1;
        async { Ok::<(), String>(()) }
    };
    let _consumer = spoke.consume(Consume::new("orders", "*"), handler).await.unwrap();

    for n in 0..EVENTS {
        // Of the other two each cuts an ack's commit, or one of the hub's own, as it comes.
        if n % 3 != 2 {
            proxy.arm(cut);
        }
        let publish = Publish::new("orders", "created", format!("order-{n}")).id(format!("e-{n}"));
        let published = spoke.publish(publish).await.unwrap();
        assert!(published.fresh, "e-{n} was committed twice");
    }
    let done = || async { hub.handle.metrics().hub.outcomes.get("success") == Some(&(EVENTS as u64)) };
    until("each event has its outcome", done).await;
    println!(
        "{} commits were cut {cut:?}; {} publishes were sent again",
        proxy.cuts(),
        spoke.status().publishes_retried
    );
    assert!(proxy.cuts() >= EVENTS / 3, "{}", proxy.cuts());
    if cut == Cut::After {
        assert_eq!(spoke.status().publishes_retried, 0, "what was committed is acked");
    }
    let handled = handled.lock().unwrap().clone();
    assert_eq!(handled.len(), EVENTS);
    let again: Vec<_> = handled.iter().filter(|(_, times)| **times > 1).collect();
    // An ack whose commit never went out is refused, and its claim stays its holder's.
    assert!(again.is_empty(), "{again:?}");
    let rows = engine::open(&hub.database()).await;
    let stored = "SELECT count(*) FROM event_published WHERE success IS NOT NULL";
    assert_eq!(pair::count(&rows, stored).await, i64::try_from(EVENTS).unwrap());
    rows.close().await.unwrap();
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_committed_is_acked_though_the_answer_is_lost() {
    each_is_acked_and_served_once(Cut::After).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_not_is_sent_again_and_there_once() {
    each_is_acked_and_served_once(Cut::Before).await;
}
