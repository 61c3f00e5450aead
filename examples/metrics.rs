//! A program that watches the hub inside it: how long messages wait in front of each kind of actor, what is pending,
//! how work ended; while load runs. The same numbers are at `/metrics`.

use std::time::Duration;

use eventflow::hub::Hub;
use eventflow::metrics::MetricsSnapshot;
use eventflow::spoke::{Consume, Publish, Spoke, SpokeConfig};

/// Events of the load, in rounds.
const EVENTS: u64 = 3_000;
const ROUND: u64 = 100;
/// How often the numbers are shown.
const LOOK: Duration = Duration::from_millis(250);

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hub = Hub::builder().in_memory().free_ports().start().await?;
    let spoke = Spoke::connect(SpokeConfig::from_bundle(hub.bundle())).await?;
    let work = Consume::new("load", "*").concurrency(8);
    let consumer = spoke
        .consume(work, |_| async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            Ok::<(), String>(())
        })
        .await?;
    let load = tokio::spawn(publish(spoke.clone()));

    loop {
        tokio::time::sleep(LOOK).await;
        let numbers = hub.metrics();
        show(&numbers);
        if numbers.hub.outcomes["success"] >= EVENTS {
            break;
        }
    }
    load.await??;
    consumer.stop().await?;
    spoke.close().await;
    let numbers = hub.metrics().hub;
    println!(
        "{} published, {} succeeded, {} pending",
        numbers.published, numbers.outcomes["success"], numbers.pending
    );
    hub.shutdown().await?;
    Ok(())
}

fn show(numbers: &MetricsSnapshot) {
    let hub = &numbers.hub;
    println!("{} published, {} pending, {} in flight", hub.published, hub.pending, hub.in_flight);
    println!("  outcomes: {:?}", hub.outcomes);
    for (kind, actor) in numbers.actors.iter().filter(|(_, actor)| actor.mailbox_wait.count > 0) {
        let ms = |seconds: Option<f64>| seconds.unwrap_or_default() * 1e3;
        println!(
            "  {kind:<11} {:>7} messages, time in mailbox: median {:.3} ms, 99 of 100 below {:.3} ms",
            actor.mailbox_wait.count,
            ms(actor.mailbox_wait.p50_seconds),
            ms(actor.mailbox_wait.p99_seconds)
        );
    }
}

/// Many publishes under way at once: the client holds back what is beyond the hub's window.
async fn publish(spoke: Spoke) -> Result<(), eventflow::spoke::PublishError> {
    for round in 0..EVENTS / ROUND {
        let mut pending = Vec::new();
        for n in 0..ROUND {
            pending.push(spoke.publish_later(Publish::new("load", "made", format!("p-{round}-{n}"))).await?);
        }
        for publish in pending {
            publish.await?;
        }
    }
    Ok(())
}
