//! Flow: orphan. What nobody wanted is kept for a consumer that comes, of either stack; npm's column `orphan` says when
//! it is kept no longer.

use std::time::Duration;

use eventflow::{
    config::{DomainPolicy, HubConfig, Keep},
    event::Pattern,
    spoke::Consume,
};

use crate::{scratch::until, stack::spoke::Spoke, world::World};

fn expiring(config: &mut HubConfig) {
    config.limits.late_window = Duration::from_millis(1);
    config.retention.interval = Duration::from_millis(100);
    let mut short = DomainPolicy::new(Pattern::parse("short".to_owned()).unwrap());
    short.expire_after = Some(Keep::For(Duration::from_millis(500)));
    config.domains = vec![short];
}

#[tokio::test]
async fn it_is_kept_for_who_comes_until_it_expires() {
    let Some(world) = World::with(expiring).await else { return };
    let ours = world.ours().await;
    let publisher = Spoke::connected(&world.npm).await;
    let short = publisher.publish(("short", "created", "p1"), "{}").await;
    let kept = publisher.publish(("orders", "created", "p1"), "{}").await;
    let for_ours = publisher.publish(("users", "created", "p1"), "{}").await;
    let database = &world.npm.database;
    let one = |id: &str, condition: &str| format!("event_id = '{id}' and {condition}");
    let expired =
        one(&short, "orphan is not null and abs(timestampdiff(second, orphan, utc_timestamp())) < 60");
    until("it has expired", || async { database.published_where(&expired).await == 1 }).await;
    let (_, trace) = ours.show(&short).await.unwrap();
    assert_eq!(trace.state, "expired");
    for id in [&kept, &for_ours] {
        let waits = one(id, "consumed_hub is not null and consumed_spoke is null and orphan is null");
        assert_eq!(database.published_where(&waits).await, 1);
        assert_eq!(ours.show(id).await.unwrap().1.state, "orphan");
    }

    let consumer = Spoke::connected(&world.npm).await;
    for domain in ["orders", "short"] {
        consumer.consume(domain, "*", |_| Ok(())).await;
    }
    let done = one(&kept, "success is not null and orphan is null");
    until("npm's consumer has it", || async { database.published_where(&done).await == 1 }).await;
    let mut claims = ours.claims(Consume::new("users", "*")).await.unwrap();
    let claim = claims.next().await.unwrap();
    assert_eq!(claim.event().id.as_str(), for_ours);
    claim.ack().await.unwrap();
    assert_eq!(database.published_where(&one(&for_ours, "success is not null and orphan is null")).await, 1);
    assert_eq!(database.published_where(&one(&short, "consumed_spoke is null and success is null")).await, 1);
    for spoke in [publisher, consumer] {
        spoke.close().await;
    }
    ours.close().await;
    world.end().await;
}
