//! Flow: wait. One stack waits for what the other one says; npm's leftovers after a wait do no harm.

use std::time::Duration;

use eventflow::spoke::{Consume, Publish, Wait};

use crate::{scratch::until, stack::spoke::Spoke, world::World};

const LIMIT: Duration = Duration::from_secs(10);

#[tokio::test]
async fn npm_waits_for_what_ours_publishes() {
    let Some(world) = World::start().await else { return };
    let ours = world.ours().await;
    let spoke = Spoke::connected(&world.npm).await;
    let waiting = spoke.wait("orders", "order-1", &["success", "failed"], LIMIT);
    let publishing = async {
        world.taken("SubscribeNpm", 2).await;
        for (name, pid) in [("failed", "order-2"), ("created", "order-1"), ("success", "order-1")] {
            ours.publish(Publish::new("orders", name, pid)).await.unwrap();
        }
    };
    let (name, ()) = tokio::join!(waiting, publishing);
    assert_eq!(name.as_deref(), Some("success"), "the first of that process with one of the names");

    // One that was said a moment before the wait.
    ours.publish(Publish::new("users", "failed", "user-1")).await.unwrap();
    assert_eq!(spoke.wait("users", "user-1", &["success", "failed"], LIMIT).await.as_deref(), Some("failed"));
    let never = spoke.wait("users", "user-2", &["success"], Duration::from_millis(50)).await;
    assert_eq!(never, None);
    spoke.close().await;
    ours.close().await;
    world.end().await;
}

#[tokio::test]
async fn ours_waits_for_what_npm_publishes() {
    let Some(world) = World::start().await else { return };
    let ours = world.ours().await;
    let spoke = Spoke::connected(&world.npm).await;
    let waiting = ours.wait(Wait::success_or_failed("orders", "order-1").timeout(LIMIT));
    let publishing = async {
        until("the hub waits", || async { world.hub.metrics().hub.waits == 1 }).await;
        spoke.publish(("orders", "success", "order-2"), "{}").await;
        spoke.publish(("orders", "failed", "order-1"), r#"{"why":"it burned"}"#).await;
    };
    let (event, ()) = tokio::join!(waiting, publishing);
    let event = event.unwrap();
    assert_eq!((event.name.as_str(), event.pid.as_str()), ("failed", "order-1"));
    // And when it had happened long before.
    let stored = ours.wait(Wait::success_or_failed("orders", "order-2").timeout(LIMIT)).await.unwrap();
    assert_eq!(stored.name.as_str(), "success");
    spoke.close().await;
    ours.close().await;
    world.end().await;
}

/// After a wait an npm spoke goes on claiming what nobody there handles: a consumer of ours with room isn't robbed.
#[tokio::test]
async fn what_a_wait_leaves_behind_takes_nothing_from_our_consumers() {
    let Some(world) = World::start().await else { return };
    let ours = world.ours().await;
    let spoke = Spoke::connected(&world.npm).await;
    assert_eq!(spoke.wait("orders", "p", &["success"], Duration::from_millis(50)).await, None);
    world.taken("SubscribeNpm", 1).await;
    let mut claims = ours.claims(Consume::new("orders", "success")).await.unwrap();
    for n in 0..10 {
        let id = spoke.publish(("orders", "success", "p"), "{}").await;
        let claim = claims.next().await.unwrap();
        assert_eq!(claim.event().id.as_str(), id, "{n}");
        claim.ack().await.unwrap();
    }
    let by_npm = format!("consumer = '{}'", spoke.id());
    assert_eq!(world.npm.database.published_where(&by_npm).await, 0);
    assert_eq!(world.npm.database.published_where("success is not null").await, 10);
    spoke.close().await;
    ours.close().await;
    world.end().await;
}
