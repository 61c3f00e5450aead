//! Publish, subscribe and consume in one program: the client of the README.

use eventflow::pki::Bundle;
use eventflow::spoke::{Consume, Publish, Spoke, SpokeConfig};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bundle = std::env::args().nth(1).unwrap_or("eventflow-data/operator.toml".into());
    let spoke = Spoke::connect(SpokeConfig::from_bundle(Bundle::read(bundle)?)).await?;

    let order = Publish::new("orders", "created", "order-1").data(&serde_json::json!({ "total": 12 }))?;
    let done = spoke.publish(order).await?; // answered after the commit
    println!("stored as number {}", done.seq);

    // Each event goes to one of all consumers. `Ok` acks it; after an error or a panic it is tried again.
    let consumer = spoke
        .consume(Consume::new("orders", "created").concurrency(4), |event| async move {
            println!("{} happened to {}: {}", event.name, event.pid, event.data);
            Ok::<(), std::io::Error>(())
        })
        .await?;
    tokio::signal::ctrl_c().await?;
    consumer.stop().await?; // running handlers end, unstarted events are handed back
    spoke.close().await;
    Ok(())
}
