//! Flow: unsubscribe. The hub sends no more of it; what else was subscribed goes on.

use crate::{
    scratch::until,
    stack::spoke::{Spoke, next},
    world::World,
};

#[tokio::test]
async fn what_was_unsubscribed_comes_no_more() {
    let Some(world) = World::start().await else { return };
    let (publisher, subscriber) = (Spoke::connected(&world.npm).await, Spoke::connected(&world.npm).await);
    let mut orders = subscriber.subscribe("orders", "created").await;
    let mut users = subscriber.subscribe("users", "*").await;
    world.taken("SubscribeNpm", 2).await;
    publisher.publish(("orders", "created", "p1"), "{}").await;
    assert_eq!(next(&mut orders).await.pid, "p1");

    subscriber.unsubscribe("orders", "created").await;
    // Of what never was, too.
    subscriber.unsubscribe("orders", "never").await;
    world.taken("UnsubscribeNpm", 2).await;
    let unheard = publisher.publish(("orders", "created", "p2"), "{}").await;
    publisher.publish(("users", "created", "p3"), "{}").await;
    assert_eq!(next(&mut users).await.pid, "p3");
    // It would have claimed it: a spoke claims whatever it hears of.
    let taken = format!("event_id = '{unheard}' and consumed_hub is not null and consumed_spoke is null");
    until("nobody claimed it", || async { world.npm.database.published_where(&taken).await == 1 }).await;

    // And subscribed again.
    let mut again = subscriber.subscribe("orders", "created").await;
    world.taken("SubscribeNpm", 3).await;
    publisher.publish(("orders", "created", "p4"), "{}").await;
    let pids = [next(&mut again).await.pid, next(&mut again).await.pid];
    assert_eq!(pids, ["p2", "p4"], "what nobody had comes first");
    for spoke in [publisher, subscriber] {
        spoke.close().await;
    }
    world.end().await;
}
