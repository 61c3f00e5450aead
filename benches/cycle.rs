//! The whole way of an event, mutual TLS and full durability on, hub and clients in one process on loopback:
//!
//! - *publish*: publishes acked per second, nobody consumes;
//! - *cycle*: published, handled by one of two consumers, outcome recorded;
//! - *latency*: from publish to handler at a fixed rate.
//!
//! `cargo bench --bench cycle -- [EVENTS]`; the default is 100,000. It fails if an event is lost.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a bench that fails may panic")]

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use eventflow::{
    config::HubConfig,
    hub::{Hub, HubHandle},
    spoke::{Consume, Publish, Spoke, SpokeConfig},
};
use tokio::sync::Semaphore;

/// As in the programs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Publishers, each with a link of its own and this window.
const PUBLISHERS: usize = 2;
const WINDOW: usize = 256;
const CONSUMERS: usize = 2;
/// The data of an event is about 300 bytes.
const FILLER: usize = 280;

#[tokio::main]
async fn main() {
    let events = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(100_000_usize);
    let folder = tempfile::tempdir().unwrap();
    let mut config = HubConfig { data: folder.path().join("data"), ..HubConfig::default() };
    config.hub.internal_port = 0;
    config.admin.port = 0;
    let hub = Hub::builder().config(config).start().await.expect("the hub starts");

    println!("{:<10} {:>10} {:>12} {:>10} {:>10}", "what", "events", "per second", "p50 ms", "p99 ms");
    for _ in 0..3 {
        let took = publish_all(&hub, "idle", events).await;
        row("publish", events, took, None);
    }
    for _ in 0..3 {
        let took = cycle(&hub, events).await;
        row("cycle", events, took, None);
    }
    for rate in [1_000, 10_000] {
        let count = rate * 5;
        let (took, mut waits) = latency(&hub, rate, count).await;
        waits.sort_unstable();
        row(&format!("at {rate}/s"), count, took, Some((waits[count / 2], waits[count * 99 / 100])));
    }
    let metrics = hub.metrics();
    println!(
        "batches {}, size p50 {:?}, commit p50 {:?} s, p99 {:?} s",
        metrics.hub.batches,
        metrics.hub.batch_size.p50,
        metrics.hub.commit_time.p50_seconds,
        metrics.hub.commit_time.p99_seconds
    );
    hub.shutdown().await.expect("the hub stops");
}

fn row(what: &str, events: usize, took: Duration, waits: Option<(Duration, Duration)>) {
    let rate = events as f64 / took.as_secs_f64();
    let ms = |wait: Duration| format!("{:.2}", wait.as_secs_f64() * 1e3);
    let (p50, p99) = waits.map(|(p50, p99)| (ms(p50), ms(p99))).unwrap_or_default();
    println!("{what:<10} {events:>10} {rate:>12.0} {p50:>10} {p99:>10}");
}

async fn spoke(hub: &HubHandle) -> Spoke {
    Spoke::connect(SpokeConfig::from_bundle(hub.bundle())).await.expect("a spoke connects")
}

/// Publishes through several links, each with its window full.
async fn publish_all(hub: &HubHandle, domain: &'static str, events: usize) -> Duration {
    let filler = "x".repeat(FILLER);
    let mut spokes = Vec::new();
    for _ in 0..PUBLISHERS {
        spokes.push(spoke(hub).await);
    }
    let began = Instant::now();
    let mut publishers = Vec::new();
    for spoke in spokes {
        let filler = filler.clone();
        publishers.push(tokio::spawn(async move {
            let window = Arc::new(Semaphore::new(WINDOW));
            for n in 0..events / PUBLISHERS {
                let permit = window.clone().acquire_owned().await.unwrap();
                let publish = Publish::new(domain, "made", format!("p{}", n % 1_000)).data(&filler).unwrap();
                let pending = spoke.publish_later(publish).await.unwrap();
                tokio::spawn(async move {
                    pending.await.expect("acked");
                    drop(permit);
                });
            }
            let _all = window.acquire_many(WINDOW as u32).await.unwrap();
            spoke.close().await;
        }));
    }
    for publisher in publishers {
        publisher.await.unwrap();
    }
    began.elapsed()
}

async fn cycle(hub: &HubHandle, events: usize) -> Duration {
    let before = successes(hub);
    let handled = Arc::new(AtomicUsize::new(0));
    let mut consumers = Vec::new();
    for _ in 0..CONSUMERS {
        let spoke = spoke(hub).await;
        let handled = handled.clone();
        let consume = Consume::new("work", "*").concurrency(16).credit(64);
        let consumer = spoke
            .consume(consume, move |_event| {
                handled.fetch_add(1, Ordering::Relaxed);
                async { Ok::<(), String>(()) }
            })
            .await
            .unwrap();
        consumers.push((spoke, consumer));
    }
    let began = Instant::now();
    publish_all(hub, "work", events).await;
    let target = before + events as u64;
    while successes(hub) < target {
        assert!(began.elapsed() < Duration::from_secs(120), "lost: {} of {target}", successes(hub));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let took = began.elapsed();
    for (spoke, consumer) in consumers {
        consumer.stop().await.unwrap();
        spoke.close().await;
    }
    assert_eq!(handled.load(Ordering::Relaxed), events, "each event is handled once");
    took
}

fn successes(hub: &HubHandle) -> u64 {
    hub.metrics().hub.outcomes["success"]
}

/// Publishes at a fixed rate; the wait counts from when the publish was due.
async fn latency(hub: &HubHandle, rate: usize, count: usize) -> (Duration, Vec<Duration>) {
    let consumer = spoke(hub).await;
    let publisher = spoke(hub).await;
    let zero = Instant::now();
    let waits = Arc::new(Mutex::new(Vec::with_capacity(count)));
    let seen = waits.clone();
    let handle = consumer
        .consume(Consume::new("timed", "*").concurrency(64).credit(64), move |event| {
            let due: u64 = event.data.read().expect("a number");
            let wait = zero.elapsed().saturating_sub(Duration::from_nanos(due));
            seen.lock().unwrap().push(wait);
            async { Ok::<(), String>(()) }
        })
        .await
        .unwrap();
    let began = Instant::now();
    for n in 0..count {
        let due = began + Duration::from_nanos(n as u64 * 1_000_000_000 / rate as u64);
        tokio::time::sleep_until(due.into()).await;
        let nanos = due.duration_since(zero).as_nanos() as u64;
        let publish = Publish::new("timed", "tick", "p").data(&nanos).unwrap();
        let pending = publisher.publish_later(publish).await.unwrap();
        tokio::spawn(async move { pending.await.expect("acked") });
    }
    while waits.lock().unwrap().len() < count {
        assert!(began.elapsed() < Duration::from_secs(120), "lost events");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let took = began.elapsed();
    handle.stop().await.unwrap();
    consumer.close().await;
    publisher.close().await;
    let waits = waits.lock().unwrap().clone();
    (took, waits)
}
