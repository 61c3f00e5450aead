//! A hub inside a program of its own, and a client of it: starts, publishes, consumes, prints numbers, ends.

use eventflow::config::HubConfig;
use eventflow::hub::Hub;
use eventflow::spoke::{Consume, Publish, Spoke, SpokeConfig};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let mut config = HubConfig::default();
    config.hub.internal_port = 0; // any free port
    config.admin.port = 0;
    // A folder set after the configuration wins over the one in it.
    let hub = Hub::builder().config(config).data(folder.path()).start().await?;
    println!("{} listens on {}", hub.info().id, hub.info().address);

    let spoke = Spoke::connect(SpokeConfig::from_bundle(hub.bundle())).await?;
    let (handled, mut done) = tokio::sync::mpsc::channel(1);
    let consumer = spoke
        .consume(Consume::new("orders", "created"), move |event| {
            let handled = handled.clone();
            // An error nacks the event: here, if the program doesn't wait for it any more.
            async move { handled.send(event).await }
        })
        .await?;
    let order = Publish::new("orders", "created", "order-1").data(&serde_json::json!({ "total": 12 }))?;
    println!("stored as number {}", spoke.publish(order).await?.seq);
    if let Some(event) = done.recv().await {
        println!("{} happened to {}: {}", event.name, event.pid, event.data);
    }
    consumer.stop().await?; // the handler's ack is committed when this is over
    spoke.close().await;

    let numbers = hub.metrics().hub;
    println!("{} published, {} succeeded", numbers.published, numbers.outcomes["success"]);
    println!("drained: {:?}", hub.shutdown().await?);
    Ok(())
}
