//! Promise: a hub that is told to stop brings everything to its end, says how that went, and leaves nothing behind.
//!
//! The load is 2,000 publishes per second, with `EVENTFLOW_TEST_LONG=1` 5,000.

use std::{collections::BTreeSet, time::Duration};

use eventflow::{event::code, spoke::Consume};
use tokio::{sync::mpsc, time::Instant};

use crate::support::{
    Raw, TestHub,
    load::{self, Load},
    process::Home,
    until,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_under_load_ends_the_hub_in_time_and_the_next_goes_on() {
    /// `limits.drain`.
    const GRACE: Duration = Duration::from_secs(20);
    let home = Home::new();
    let mut hub = home.start().await;
    let publishers = vec![home.spoke().await, home.spoke().await];
    let workers = vec![home.spoke().await, home.spoke().await];
    let load = Load::start(publishers, workers, load::rate()).await;
    for signal in ["TERM", "INT"] {
        load.acks(1_000).await;
        let began = Instant::now();
        hub.signal(signal);
        assert_eq!(hub.ended().await.code(), Some(0), "{}", home.words());
        assert!(began.elapsed() < GRACE);
        println!("SIG{signal}: ended after {:?}", began.elapsed());
        hub = home.start().await;
    }
    load.acks(100).await;
    let tally = load.finish().await;
    println!("2 drains\n{tally}");
    hub.signal("TERM");
    assert_eq!(hub.ended().await.code(), Some(0));
    assert_eq!(tally.acked.len(), tally.published, "each publish was acked in the end");
    assert_eq!(tally.duplicates, 0, "what was committed was answered before the links were closed");
    let id = std::fs::read_to_string(home.data().join("hub-id")).unwrap();
    tally.check(home.database(), id.trim()).await;
    assert!(!home.words().contains("panicked") && !home.words().contains("forced"), "{}", home.words());
}

/// Publishes over a raw link.
async fn publish(hub: &TestHub, ids: impl Iterator<Item = usize>) {
    let mut link = hub.v1().await;
    for id in ids {
        link.send(&["publish", "1", &format!("e{id}"), "orders", "created", "o-1", "", "{}"]).await;
        assert_eq!(link.answer().await.unwrap()[0], "ok");
    }
}

/// The next record, whenever the word of the drain comes.
async fn told(link: &mut Raw) -> Vec<String> {
    loop {
        let record = link.answer().await.unwrap();
        if record[0] != "drain" {
            return record;
        }
    }
}

#[tokio::test]
async fn a_drain_waits_for_handlers_and_refuses_new_events() {
    let hub = TestHub::start().await;
    let (mut publisher, mut worker) = (hub.v1().await, hub.v1().await);
    publish(&hub, 0..2).await;
    worker.send(&["consume", "1", "1", "", "orders", "*", "{\"credit\":1}"]).await;
    let claim = loop {
        let record = worker.answer().await.unwrap();
        if record[0] == "claim" {
            break record;
        }
    };
    let mut readiness = hub.handle.readiness();
    let stopping = tokio::spawn(hub.stop());
    readiness.wait_for(|readiness| readiness.to_string() == "draining").await.unwrap();

    // One may still slip in before the journal has closed.
    let refused = loop {
        publisher.send(&["publish", "1", "late", "orders", "created", "o-1", "", "{}"]).await;
        let answer = told(&mut publisher).await;
        if answer[0] == "err" {
            break answer;
        }
    };
    assert_eq!(refused[2], code::HUB_DRAINING, "{refused:?}");
    assert!(!refused[4].is_empty(), "it may be tried again: {refused:?}");
    worker.send(&["ack", "2", &claim[2]]).await;
    assert_eq!(told(&mut worker).await, ["ok", "2"], "and no other event comes");
    for link in [&mut publisher, &mut worker] {
        let bye = told(link).await;
        assert_eq!((&*bye[0], &*bye[1]), ("bye", code::HUB_DRAINING), "{bye:?}");
        assert!(link.record().await.is_none());
    }
    drop((publisher, worker));

    let hub = TestHub::on(stopping.await.unwrap(), |_| {}).await;
    let counts = hub.spoke().await;
    assert_eq!(counts.show("e0").await.unwrap().1.state, "success");
    assert_eq!(counts.show("e1").await.unwrap().1.state, "pending");
    counts.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn a_handler_that_never_ends_is_told_of_and_its_event_comes_again() {
    let hub = TestHub::with(|config| config.limits.drain = Duration::from_secs(3)).await;
    let spoke = hub.spoke().await;
    let (begun, mut begins) = mpsc::unbounded_channel();
    let handler = move |event: eventflow::event::Event| {
        begun.send(event.id.to_string()).unwrap();
        std::future::pending::<Result<(), String>>()
    };
    let consumer = spoke.consume(Consume::new("orders", "*").concurrency(2), handler).await.unwrap();
    publish(&hub, 0..3).await;
    let begun: BTreeSet<_> = [begins.recv().await.unwrap(), begins.recv().await.unwrap()].into();
    until("three are handed out", || async { hub.handle.metrics().hub.in_flight == 3 }).await;

    let began = Instant::now();
    let TestHub { handle, folder } = hub;
    let outcome = handle.shutdown().await.unwrap();
    println!("{outcome:?} after {:?}", began.elapsed());
    // What had not begun was released by the client.
    assert_eq!(outcome.handed_back, 2, "{outcome:?}");
    assert!(!outcome.is_clean() && outcome.uncommitted == 0, "{outcome:?}");
    drop((consumer, spoke));

    let hub = TestHub::on(folder, |_| {}).await;
    let mut link = hub.v1().await;
    link.send(&["consume", "1", "1", "", "orders", "*", "{\"credit\":3}"]).await;
    let mut again = BTreeSet::new();
    while again.len() < 3 {
        let record = link.answer().await.unwrap();
        if record[0] == "claim" {
            // That the hub stopped is no fault of the event.
            assert_eq!(record[3], "1", "{record:?}");
            again.insert(record[5].clone());
        }
    }
    assert!(again.is_superset(&begun), "{again:?}");
    drop(link);
    hub.stop().await;
}

/// The names of this process's threads.
fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    // One may end between the two reads.
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    let mut names: Vec<_> = names.map(|name| name.trim().to_owned()).collect();
    names.sort();
    names
}

/// Other tests run hubs in this process: only a process of its own can count threads.
#[test]
fn nothing_is_left_of_a_hub_that_was_shut_down() {
    const ALONE: &str = "EVENTFLOW_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let test = "drain::nothing_is_left_of_a_hub_that_was_shut_down";
        let alone = std::process::Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--nocapture"])
            .env(ALONE, "1")
            .output()
            .unwrap();
        let words = String::from_utf8_lossy(&alone.stdout);
        print!("{}", words.lines().filter(|line| line.contains("threads")).collect::<Vec<_>>().join("\n"));
        assert!(alone.status.success() && words.contains("1 passed"), "{words}");
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut folder = tempfile::tempdir().unwrap();
        let mut port = 0;
        let mut before = Vec::new();
        // What the runtime keeps for blocking calls is there after the first round.
        for round in 0..3 {
            let hub = TestHub::on(folder, |config| config.hub.internal_port = port).await;
            let address = hub.handle.info().address;
            let admin = hub.handle.info().admin.unwrap();
            port = address.port();
            let during = threads();
            let spoke = hub.spoke().await;
            publish(&hub, round..round + 1).await;
            spoke.close().await;
            folder = hub.stop().await;
            for address in [address, admin] {
                assert!(std::net::TcpStream::connect(address).is_err(), "{address} is still listened on");
            }
            if round > 0 {
                until("no thread is left", || {
                    let left = threads().len() <= before.len();
                    async move { left }
                })
                .await;
                println!(
                    "threads: {} with a hub, {} after it: {:?}",
                    during.len(),
                    threads().len(),
                    threads()
                );
            }
            before = threads();
        }
    });
}
