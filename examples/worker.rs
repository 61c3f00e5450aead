//! A pool of workers: several events at a time, errors end as `dead`, Ctrl-C ends it when what is under way is done.
//!
//! `worker BUNDLE` works for the hub of that bundle until Ctrl-C. Without one it brings a hub in memory and some work,
//! and ends when that is done.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use eventflow::event::Event;
use eventflow::hub::{Hub, HubHandle};
use eventflow::pki::Bundle;
use eventflow::spoke::{Consume, Publish, Spoke, SpokeConfig};

/// Handlers at once.
const WORKERS: u32 = 4;
/// Jobs of the demonstration; every fifth fails.
const JOBS: u64 = 20;

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    match std::env::args().nth(1) {
        Some(bundle) => {
            let spoke = Spoke::connect(SpokeConfig::from_bundle(Bundle::read(bundle)?)).await?;
            work(&spoke, async {
                // Without it the program ends at once, which is right if nobody can stop it.
                let _ = tokio::signal::ctrl_c().await;
            })
            .await
        }
        None => {
            let hub = Hub::builder().in_memory().free_ports().start().await?;
            let spoke = Spoke::connect(SpokeConfig::from_bundle(hub.bundle())).await?;
            for n in 0..JOBS {
                spoke.publish(Publish::new("jobs", "resize", format!("picture-{n}"))).await?;
            }
            work(&spoke, async {
                tokio::select! {
                    () = all_done(&hub) => {}
                    _ = tokio::signal::ctrl_c() => {}
                }
            })
            .await?;
            hub.shutdown().await?;
            Ok(())
        }
    }
}

/// Works until `end`; then hands back what isn't begun and waits for the rest.
async fn work(spoke: &Spoke, end: impl Future<Output = ()>) -> Result<(), Failure> {
    let jobs = Consume::new("jobs", "*").concurrency(WORKERS);
    let consumer = spoke.consume(jobs, |event| async move { resize(&event).await }).await?;
    println!("{WORKERS} workers wait for events of the domain jobs");
    end.await;
    let counts = consumer.stop().await?;
    spoke.close().await;
    println!("{} done, {} failed", counts.acked, counts.nacked);
    Ok(())
}

/// `Ok` acks the event, an error nacks it: it is tried again after a while, and after five attempts it is dead; `eventflow
/// show` tells the reasons. Every event may come more than once, so that a second time must do no harm.
async fn resize(event: &Event) -> Result<(), String> {
    static CALLS: AtomicU64 = AtomicU64::new(1);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(20)).await; // the work
    if call.is_multiple_of(5) {
        return Err(format!("{} can't be read", event.pid));
    }
    println!("{} resized", event.pid);
    Ok(())
}

async fn all_done(hub: &HubHandle) {
    while hub.metrics().hub.outcomes.values().sum::<u64>() < JOBS {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
