//! What misbehaving peers cost the others: the same load with and without them, interleaved, medians and ratios.
//! `cargo bench --bench bounded [-- ROUNDS]`. Ends with 1 if anybody missed an event, or if the others keep less than
//! nine tenths of their pace.
//!
//! What is measured is how quickly 19 consumers handle what is published, each one event after the other, and each
//! event for some milliseconds in which its handler only waits. So it is they, not the publishers, that set the pace, and
//! a twentieth that stalls costs them only what the hub loses on it. The first line tells how many they could handle at
//! most: far below it, as in a debug build, the hub sets the pace.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, reason = "a bench that fails may panic")]

/// What the tests use.
#[path = "../tests/it"]
mod it {
    pub mod process;
    pub mod support;
}

use std::{
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use eventflow::spoke::{Consume, Delivery, Publish};
use tokio::{io::AsyncWriteExt, task::JoinSet, time::timeout};

use self::it::{process, support};
use self::{
    process::HubProcess,
    support::{PATIENCE, Raw},
};

const PUBLISHERS: usize = 4;
const SUBSCRIBERS: usize = 2;
/// One more stalls, in the runs that measure that: one among twenty.
const CONSUMERS: usize = 19;
/// Per publisher and run.
const EVENTS: usize = 3_000;
const ROUNDS: usize = 5;
/// How long a handler takes.
const WORK: Duration = Duration::from_millis(5);
/// What is left to the others of their pace, at least.
const KEPT: f64 = 0.9;

#[derive(Clone, Copy, PartialEq)]
enum Peer {
    None,
    SlowSubscriber,
    StalledConsumer,
    FloodingPublisher,
}

const PEERS: [(Peer, &str); 4] = [
    (Peer::None, "nobody misbehaves"),
    (Peer::SlowSubscriber, "a subscriber stops reading"),
    (Peer::StalledConsumer, "a consumer stalls"),
    (Peer::FloodingPublisher, "a publisher floods"),
];

/// One run's numbers.
struct Run {
    /// Events published, seen by every subscriber and handled, per second.
    rate: f64,
    /// How much the hub's memory grew, in MiB.
    growth: u64,
    /// Links that the hub cut.
    cuts: f64,
    complete: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    let rounds = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(ROUNDS);
    println!(
        "{PUBLISHERS} publishers, {SUBSCRIBERS} subscribers, {CONSUMERS} consumers, {EVENTS} events each; medians of {rounds}; \
         {:.0} events/s at most",
        count(CONSUMERS) / WORK.as_secs_f64()
    );
    let mut runs: Vec<Vec<Run>> = PEERS.iter().map(|_| Vec::new()).collect();
    // One unmeasured run warms the machine up.
    run(Peer::None).await;
    for _ in 0..rounds {
        for (at, (peer, _)) in PEERS.into_iter().enumerate() {
            runs[at].push(run(peer).await);
        }
    }
    let rates: Vec<f64> = runs.iter().map(|runs| median(runs.iter().map(|run| run.rate).collect())).collect();
    println!("{:<28} {:>10} {:>7} {:>11} {:>6}", "", "events/s", "ratio", "memory MiB", "cuts");
    let mut complete = true;
    for ((name, runs), rate) in PEERS.iter().map(|(_, name)| name).zip(&runs).zip(&rates) {
        let growth = runs.iter().map(|run| run.growth).max().unwrap_or(0);
        let cuts: f64 = runs.iter().map(|run| run.cuts).sum();
        println!("{name:<28} {rate:>10.0} {:>7.2} {growth:>+11} {cuts:>6}", rate / rates[0]);
        complete &= runs.iter().all(|run| run.complete);
    }
    if !complete {
        println!("somebody missed an event");
    }
    let mut kept = true;
    for ((_, name), rate) in PEERS.iter().zip(&rates) {
        let ratio = rate / rates[0];
        if ratio < KEPT {
            kept = false;
            println!(
                "while {name}, the {CONSUMERS} others keep {ratio:.2} of their pace, which is {:.2} less than {KEPT}",
                KEPT - ratio
            );
        }
    }
    if complete && kept { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn run(peer: Peer) -> Run {
    let hub = HubProcess::start(&[]);
    let all = PUBLISHERS * EVENTS;
    let mut tasks = JoinSet::new();
    let mut spokes = Vec::new();
    for _ in 0..SUBSCRIBERS {
        let spoke = hub.spoke().await;
        let mut subscription = spoke.subscribe("orders", "*").await.unwrap();
        spokes.push(spoke);
        tasks.spawn(async move {
            let mut seen = 0;
            while seen < all {
                match timeout(PATIENCE, subscription.next()).await {
                    Ok(Some(Delivery::Event { .. })) => seen += 1,
                    _ => return false,
                }
            }
            true
        });
    }
    let handled = Arc::new(AtomicUsize::new(0));
    let mut consumers = Vec::new();
    for _ in 0..CONSUMERS {
        let spoke = hub.spoke().await;
        let handled = handled.clone();
        let handler = move |_| {
            let handled = handled.clone();
            async move {
                tokio::time::sleep(WORK).await;
                handled.fetch_add(1, Ordering::Relaxed);
                Ok::<(), String>(())
            }
        };
        // One after the other, with the next ones there before it is done.
        consumers.push(spoke.consume(Consume::new("orders", "*").credit(64), handler).await.unwrap());
        spokes.push(spoke);
    }
    let mut publishers = Vec::new();
    for _ in 0..PUBLISHERS {
        publishers.push(hub.spoke().await);
    }
    let before = hub.resident().unwrap_or(0);
    hub.reset_peak();
    let (mut misbehaving, held) = misbehave(peer, &hub).await;

    let began = Instant::now();
    let data = format!("\"{}\"", "x".repeat(1_000));
    for spoke in publishers.clone() {
        let data = data.clone();
        tasks.spawn(async move {
            let mut pending = Vec::with_capacity(EVENTS);
            for _ in 0..EVENTS {
                let publish = Publish::new("orders", "created", "p").data_text(data.clone()).unwrap();
                pending.push(spoke.publish_later(publish).await.unwrap());
            }
            for pending in pending {
                if pending.await.is_err() {
                    return false;
                }
            }
            true
        });
    }
    let mut complete = true;
    while let Some(done) = tasks.join_next().await {
        complete &= done.unwrap();
    }
    let deadline = Instant::now() + PATIENCE;
    while handled.load(Ordering::Relaxed) + held < all && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let rate = count(all) / began.elapsed().as_secs_f64();
    // What a stalled consumer holds comes back when its link ends.
    misbehaving.shutdown().await;
    while handled.load(Ordering::Relaxed) < all && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    complete &= handled.load(Ordering::Relaxed) == all;
    complete &= publishers.iter().chain(&spokes).all(|spoke| spoke.status().links_lost == 0);
    let growth = hub.resident_peak().unwrap_or(0).saturating_sub(before);
    let numbers = hub.numbers().await;
    let cuts = numbers.iter().filter(|(series, _)| series.starts_with("eventflow_links_cut_total"));
    let reasons = ["slow_subscriber", "window_exceeded", "write_timeout"];
    let cuts = cuts.filter(|(series, _)| reasons.iter().any(|reason| series.contains(reason)));
    let cuts = cuts.map(|(_, value)| value).sum();
    Run { rate, growth, cuts, complete }
}

/// Starts the peer that misbehaves; the number is of events that it keeps from the others.
async fn misbehave(peer: Peer, hub: &HubProcess) -> (JoinSet<()>, usize) {
    let mut tasks = JoinSet::new();
    let mut held = 0;
    match peer {
        Peer::None => {}
        Peer::SlowSubscriber => {
            let mut link = hub.v1_narrow().await;
            link.send(&["subscribe", "1", "1", "orders", "*"]).await;
            assert_eq!(link.answer().await.unwrap()[0], "ok");
            tasks.spawn(stay(link));
        }
        Peer::StalledConsumer => {
            let mut link = hub.v1().await;
            link.send(&["consume", "1", "1", "", "orders", "*", "{\"credit\":64}"]).await;
            assert_eq!(link.answer().await.unwrap()[0], "ok");
            held = 64;
            tasks.spawn(stay(link));
        }
        Peer::FloodingPublisher => {
            let (bundle, address) = (hub.bundle(), hub.address);
            let records: String = (1..=2_000)
                .map(|n| format!("publish\u{1f}{n}\u{1f}f{n}\u{1f}d\u{1f}n\u{1f}p\u{1f}\u{1f}1\u{1e}"))
                .collect();
            // Cut, it comes back at once, as a client that keeps no rule would.
            tasks.spawn(async move {
                loop {
                    let mut link = Raw::connect(&bundle, address).await.greeted().await;
                    while link.stream.write_all(records.as_bytes()).await.is_ok() {}
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            });
        }
    }
    (tasks, held)
}

/// Holds the link and reads nothing.
async fn stay(link: Raw) {
    std::future::pending::<()>().await;
    drop(link);
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(0.0)
}

/// Counts of this size are exact in a float.
#[allow(clippy::cast_precision_loss)]
fn count(events: usize) -> f64 {
    events as f64
}
