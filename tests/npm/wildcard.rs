//! Flow: wildcard. `*` as a name is every name of that domain; as a domain, or as a part of a name, it is a letter like
//! any other.

use eventflow::spoke::Publish;

use crate::{
    stack::spoke::{Spoke, next},
    world::World,
};

#[tokio::test]
async fn a_lone_star_is_every_name_of_the_domain_and_nothing_else() {
    let Some(world) = World::start().await else { return };
    let ours = world.ours().await;
    let (publisher, subscriber) = (Spoke::connected(&world.npm).await, Spoke::connected(&world.npm).await);
    let mut all = subscriber.subscribe("orders", "*").await;
    let mut any_domain = subscriber.subscribe("*", "created").await;
    let mut part = subscriber.subscribe("users", "name.*").await;
    world.taken("SubscribeNpm", 3).await;

    for name in ["created", "paid", "name.first"] {
        for domain in ["orders", "orders2", "users"] {
            publisher.publish((domain, name, "p1"), "{}").await;
        }
    }
    ours.publish(Publish::new("orders", "shipped", "p1")).await.unwrap();
    let mut names = Vec::new();
    for _ in 0..4 {
        let event = next(&mut all).await;
        assert_eq!(event.domain, "orders");
        names.push(event.name);
    }
    names.sort();
    assert_eq!(names, ["created", "name.first", "paid", "shipped"]);
    // All came on one link: what isn't here now doesn't come.
    assert!(any_domain.try_recv().is_err() && part.try_recv().is_err() && all.try_recv().is_err());
    for spoke in [publisher, subscriber] {
        spoke.close().await;
    }
    ours.close().await;
    world.end().await;
}
