//! Flow: schedule. Rows that npm spokes schedule run on our hubs, once, not early; npm's own hubs never run them.

use crate::{
    scratch::until,
    stack::{
        hub::Hub,
        spoke::{Spoke, next},
    },
    world::{World, stop},
};

/// So many seconds from now by the database, in UTC, whole seconds: as npm spokes write it.
async fn in_seconds(world: &World, seconds: u32) -> String {
    let sql = "select date_format(utc_timestamp() + interval ? second, '%Y-%m-%d %H:%i:%s')";
    world.npm.database.get(sql, &[&seconds.to_string()]).await.unwrap()
}

#[tokio::test]
async fn a_scheduled_event_runs_once_at_its_time_though_two_hubs_and_an_npm_hub_are_there() {
    let Some(world) = World::start().await else { return };
    let (second, _folder) = world.another_hub().await;
    let peer = Hub::start(&world.npm).await;
    let spoke = Spoke::connected(&world.npm).await;
    assert_eq!(spoke.hubs().await.len(), 3);
    let mut heard = spoke.subscribe("orders", "*").await;
    world.taken("SubscribeNpm", 1).await;

    let at = in_seconds(&world, 2).await;
    let id = spoke.schedule(("orders", "due", "order-1"), r#"{"total":12}"#, &at).await;
    let event = next(&mut heard).await;
    assert_eq!((&event.id, &*event.pid, &*event.data), (&id, "order-1", r#"{"total":12}"#));
    let database = &world.npm.database;
    let executed = "select cast(timestampdiff(second, scheduled, executed) as signed) from event_scheduled where event_id = ?";
    let late: i64 = database.get(executed, &[&id]).await.expect("it says when it was run");
    assert!((0..20).contains(&late), "{late} s after its time");
    let not_early = "select count(*) from event_scheduled where event_id = ? and executed >= scheduled and utc_timestamp() >= scheduled";
    assert_eq!(database.get::<i64>(not_early, &[&id]).await, Some(1));

    // A second one, behind which the first would be seen again if it came twice.
    let at = in_seconds(&world, 1).await;
    let last = spoke.schedule(("orders", "due", "order-2"), "{}", &at).await;
    assert_eq!(next(&mut heard).await.id, last, "each once");
    let executed =
        || [&world.hub, &second].map(|hub| hub.metrics().hub.schedules_executed).iter().sum::<u64>();
    assert_eq!(executed(), 2, "whichever hub it was, the other one hasn't");
    spoke.close().await;
    peer.stop().await;
    stop(second).await;
    world.end().await;
}

#[tokio::test]
async fn what_fell_due_while_no_hub_was_up_runs_when_one_comes() {
    let Some(world) = World::start().await else { return };
    let spoke = Spoke::connected(&world.npm).await;
    let at = in_seconds(&world, 1).await;
    let mut id = String::new();
    let world = world
        .restarted(async |npm| {
            id = spoke.schedule(("orders", "due", "order-1"), "{}", &at).await;
            let due = "select utc_timestamp() > ?";
            until("it is due", || async { npm.database.get::<bool>(due, &[&at]).await == Some(true) }).await;
        })
        .await;
    let consumer = Spoke::connected(&world.npm).await;
    consumer.consume("orders", "due", |_| Ok(())).await;
    let done = format!("event_id = '{id}' and success is not null");
    until("it is run and consumed", || async { world.npm.database.published_where(&done).await == 1 }).await;
    for spoke in [spoke, consumer] {
        spoke.close().await;
    }
    world.end().await;
}
