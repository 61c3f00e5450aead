//! What a host program waits for: the start of a hub, and its writes while a backup is made.
//!
//! - *start*: until the hub is ready, in memory; on a new data folder; on one that is there. Medians of 15.
//! - *backup*: of so many events; how long it takes, and how long publishes take before and meanwhile.
//!
//! `cargo bench --bench embed -- [EVENTS]`; the default is 200,000.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a bench that fails may panic")]

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use eventflow::{
    hub::{Hub, HubBuilder, HubHandle},
    spoke::{Publish, Spoke, SpokeConfig},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// As in the programs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const STARTS: usize = 15;
/// Events of one request when the database is filled.
const WINDOW: usize = 200;

#[tokio::main]
async fn main() {
    let events = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(200_000_usize);
    starts().await;
    let folder = tempfile::tempdir_in(".").unwrap();
    backup(folder.path(), events).await;
}

async fn starts() {
    println!("{:<22} {:>10} {:>10}", "start", "median ms", "most ms");
    let memory = || Hub::builder().in_memory().free_ports();
    let mut taken = Vec::new();
    for _ in 0..STARTS {
        taken.push(started(memory()).await);
    }
    start_row("in memory", taken);
    let (mut first, mut later) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let folder = tempfile::tempdir_in(".").unwrap();
        let disk = || Hub::builder().data(folder.path().join("data")).free_ports();
        first.push(started(disk()).await);
        later.push(started(disk()).await);
    }
    start_row("first, on disk", first);
    start_row("later, on disk", later);
}

/// How long a start takes; the stop isn't counted.
async fn started(builder: HubBuilder) -> Duration {
    let began = Instant::now();
    let hub = builder.start().await.expect("the hub starts");
    let took = began.elapsed();
    hub.shutdown().await.expect("the hub stops");
    took
}

fn start_row(what: &str, mut taken: Vec<Duration>) {
    taken.sort_unstable();
    println!("{what:<22} {:>10.1} {:>10.1}", ms(taken[taken.len() / 2]), ms(taken[taken.len() - 1]));
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

async fn backup(folder: &Path, events: usize) {
    let hub = Hub::builder().data(folder.join("data")).free_ports().start().await.expect("the hub starts");
    let spoke = Spoke::connect(SpokeConfig::from_bundle(hub.bundle())).await.expect("the spoke connects");
    let filler = "x".repeat(280);
    let event = |n: usize| Publish::new("orders", "made", format!("p-{}", n % 1_000)).data(&filler).unwrap();
    for from in (0..events).step_by(WINDOW) {
        let mut all = Vec::new();
        for n in from..from + WINDOW {
            all.push(spoke.publish_later(event(n)).await.unwrap());
        }
        for pending in all {
            pending.await.expect("acked");
        }
    }

    println!(
        "\n{:<22} {:>10} {:>10} {:>10} {:>10}",
        "one publish at a time", "events", "p50 ms", "p99 ms", "most ms"
    );
    let stop = Arc::new(AtomicBool::new(false));
    let timer = tokio::spawn({
        let stop = stop.clone();
        async move {
            tokio::time::sleep(Duration::from_secs(3)).await;
            stop.store(true, Ordering::Relaxed);
        }
    });
    publish_row("before", publish_until(&spoke, &stop).await);
    timer.await.unwrap();

    let stop = Arc::new(AtomicBool::new(false));
    let began = Instant::now();
    let copying = async {
        let bytes = download(&hub).await;
        stop.store(true, Ordering::Relaxed);
        (bytes, began.elapsed())
    };
    let ((bytes, took), waits) = tokio::join!(copying, publish_until(&spoke, &stop));
    publish_row("while a backup is made", waits);
    println!("backup of {:.1} MiB in {:.2} s", bytes as f64 / f64::from(1 << 20), took.as_secs_f64());
    spoke.close().await;
    hub.shutdown().await.expect("the hub stops");
}

async fn publish_until(spoke: &Spoke, stop: &AtomicBool) -> Vec<Duration> {
    let mut waits = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        spoke.publish(Publish::new("orders", "made", "p-1")).await.expect("acked");
        waits.push(began.elapsed());
    }
    waits
}

fn publish_row(what: &str, mut waits: Vec<Duration>) {
    waits.sort_unstable();
    let count = waits.len();
    let at = |share: usize| ms(waits[(count * share / 100).min(count - 1)]);
    println!("{what:<22} {count:>10} {:>10.2} {:>10.2} {:>10.2}", at(50), at(99), at(100));
}

/// Asks for a backup; how many bytes came.
async fn download(hub: &HubHandle) -> u64 {
    let mut link = TcpStream::connect(hub.info().admin.unwrap()).await.unwrap();
    let request = format!(
        "POST /backup HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
        hub.admin_token().expose()
    );
    link.write_all(request.as_bytes()).await.unwrap();
    let (mut piece, mut bytes) = (vec![0; 64 << 10], 0);
    loop {
        match link.read(&mut piece).await.unwrap() {
            0 => return bytes,
            read => bytes += read as u64,
        }
    }
}
