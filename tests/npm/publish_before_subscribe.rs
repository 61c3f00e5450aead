//! Flow: publish before subscribe. What was published a moment before still arrives; a consumer gets what nobody had
//! also much later.

use std::time::Duration;

use eventflow::spoke::Publish;

use crate::{
    scratch::until,
    stack::spoke::{Spoke, next},
    world::World,
};

#[tokio::test]
async fn a_subscriber_that_is_a_moment_late_gets_it() {
    let Some(world) = World::start().await else { return };
    let ours = world.ours().await;
    let (publisher, subscriber) = (Spoke::connected(&world.npm).await, Spoke::connected(&world.npm).await);
    publisher.publish(("orders", "created", "p1"), r#"{"a":1}"#).await;
    ours.publish(Publish::new("orders", "created", "p2")).await.unwrap();
    until("the hub has both", || async {
        world.npm.database.published_where("consumed_hub is not null").await == 2
    })
    .await;
    let mut events = subscriber.subscribe("orders", "created").await;
    let mut pids = [next(&mut events).await.pid, next(&mut events).await.pid];
    pids.sort();
    assert_eq!(pids, ["p1", "p2"]);
    for spoke in [publisher, subscriber] {
        spoke.close().await;
    }
    ours.close().await;
    world.end().await;
}

/// The window of subscribers is over at once here.
#[tokio::test]
async fn a_consumer_gets_what_nobody_had_without_limit_of_time() {
    let without_window = |config: &mut eventflow::config::HubConfig| {
        config.limits.late_window = Duration::from_millis(1);
    };
    let Some(world) = World::with(without_window).await else { return };
    let publisher = Spoke::connected(&world.npm).await;
    for pid in ["p1", "p2"] {
        publisher.publish(("orders", "created", pid), "{}").await;
    }
    until("the hub has both", || async {
        world.npm.database.published_where("consumed_hub is not null").await == 2
    })
    .await;
    // Also after a restart of the hub: nobody has them still.
    let world = world.restarted(async |_| {}).await;
    let consumer = Spoke::connected(&world.npm).await;
    consumer.consume("orders", "created", |_| Ok(())).await;
    let done = format!("success is not null and failed is null and consumer = '{}'", consumer.id());
    until("both are consumed", || async { world.npm.database.published_where(&done).await == 2 }).await;
    for spoke in [publisher, consumer] {
        spoke.close().await;
    }
    world.end().await;
}
