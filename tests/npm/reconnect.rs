//! Flow: reconnect. After a restart of our hub npm's spokes find it again, at another port; what they published meanwhile
//! is taken up.

use crate::{
    scratch::until,
    stack::spoke::{Spoke, next},
    world::World,
};

#[tokio::test]
async fn spokes_come_back_after_a_restart_and_nothing_is_lost() {
    let Some(world) = World::start().await else { return };
    let (publisher, subscriber) = (Spoke::connected(&world.npm).await, Spoke::connected(&world.npm).await);
    let mut heard = subscriber.subscribe("orders", "*").await;
    subscriber.consume("orders", "created", |_| Ok(())).await;
    world.taken("SubscribeNpm", 2).await;
    publisher.publish(("orders", "created", "before"), "{}").await;
    assert_eq!(next(&mut heard).await.pid, "before");

    let id = world.hub.info().id.clone();
    let world = world
        .restarted(async |npm| {
            assert_eq!(npm.database.hubs_online().await, [], "a hub that stops says so");
            until("the links are over", || async {
                publisher.hubs().await.is_empty() && subscriber.hubs().await.is_empty()
            })
            .await;
            // No hub is there to be told of it.
            publisher.publish(("orders", "created", "meanwhile"), "{}").await;
        })
        .await;
    assert_eq!(world.hub.info().id, id, "it is the same hub");
    until("both are back", || async {
        publisher.hubs().await == [&*id] && subscriber.hubs().await == [&*id]
    })
    .await;
    world.taken("SubscribeNpm", 2).await;
    publisher.publish(("orders", "created", "after"), "{}").await;
    let mut pids = [next(&mut heard).await.pid, next(&mut heard).await.pid];
    pids.sort();
    assert_eq!(pids, ["after", "meanwhile"]);
    let done = "success is not null and consumed_hub is not null";
    until("all are consumed", || async { world.npm.database.published_where(done).await == 3 }).await;
    for spoke in [publisher, subscriber] {
        spoke.close().await;
    }
    world.end().await;
}

/// An npm hub that can't reach ours marks it as stopped for everybody.
#[tokio::test]
async fn a_mark_of_an_npm_hub_on_our_row_is_taken_back() {
    let Some(world) = World::start().await else { return };
    let id = world.hub.info().id.clone();
    world.npm.database.set_hub_quit(&id).await;
    until("the row is open again", || async { world.npm.database.hubs_online().await.len() == 1 }).await;
    let spoke = Spoke::connected(&world.npm).await;
    assert_eq!(spoke.hubs().await, [&*id]);
    spoke.close().await;
    world.end().await;
}
