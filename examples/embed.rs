//! A hub inside a program of its own, and a client of it: in memory here, on disk with `.data("./events")` instead.

use eventflow::hub::Hub;
use eventflow::spoke::{Consume, Publish, Spoke, SpokeConfig};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hub = Hub::builder().in_memory().free_ports().start().await?;
    let spoke = Spoke::connect(SpokeConfig::from_bundle(hub.bundle())).await?;

    let order = Publish::new("orders", "created", "order-1").data(&serde_json::json!({ "total": 12 }))?;
    spoke.publish(order).await?; // answered after the commit
    let mut claims = spoke.claims(Consume::new("orders", "created")).await?;
    if let Some(claim) = claims.next().await {
        let event = claim.event();
        println!("{} happened to {}: {}", event.name, event.pid, event.data);
        claim.ack().await?;
    }
    spoke.close().await;

    let numbers = hub.metrics().hub;
    println!("{} published, {} succeeded", numbers.published, numbers.outcomes["success"]);
    hub.shutdown().await?;
    Ok(())
}
