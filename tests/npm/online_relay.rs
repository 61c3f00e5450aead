//! Flow: online relay. A hub that starts, of either stack, is told to the spokes of the others, which connect to it; only
//! a hub itself may say so.

use crate::{
    scratch::until,
    stack::{
        channel::Channel,
        deployment::{HUBS, SPOKES},
        hub::Hub,
        id,
        spoke::{Spoke, next},
    },
    world::{World, stop},
};

#[tokio::test]
async fn spokes_hear_of_hubs_of_either_stack_and_connect_to_them() {
    let Some(world) = World::start().await else { return };
    let first = world.hub.info().id.clone();
    let spoke = Spoke::connected(&world.npm).await;
    assert_eq!(spoke.hubs().await, [&*first]);
    let peer = Hub::start(&world.npm).await;
    until("our hub relays npm's", || async { spoke.hubs().await.len() == 2 }).await;
    assert_eq!(peer.unreachable(), [""; 0], "the npm hub reaches ours");

    let (second, _folder) = world.another_hub().await;
    until("both tell of our second one", || async { spoke.hubs().await.len() == 3 }).await;
    until("the npm hub was told", || async { peer.heard_online() == [second.info().id.clone()] }).await;

    // A publish goes to all three: the record comes once, by whichever hub was first.
    let subscriber = Spoke::connected(&world.npm).await;
    assert_eq!(subscriber.hubs().await.len(), 3);
    let mut heard = subscriber.subscribe("orders", "created").await;
    world.taken("SubscribeNpm", 1).await;
    let mut ids = Vec::new();
    for n in 0..30 {
        ids.push(spoke.publish(("orders", "created", &format!("p{n}")), "{}").await);
    }
    let mut seen = Vec::new();
    for _ in 0..ids.len() {
        seen.push(next(&mut heard).await.id);
    }
    ids.sort();
    seen.sort();
    assert_eq!(seen, ids);
    let database = &world.npm.database;
    assert_eq!(database.published_where("consumed_hub is not null and hub is not null").await, 30);
    assert!(heard.try_recv().is_err(), "none twice");
    for spoke in [spoke, subscriber] {
        spoke.close().await;
    }
    peer.stop().await;
    stop(second).await;
    world.end().await;
}

#[tokio::test]
async fn nobody_but_a_hub_says_that_it_is_online() {
    let Some(world) = World::start().await else { return };
    let spoke = Spoke::connected(&world.npm).await;
    let quiet = Hub::listening(&world.npm).await;
    // A spoke in the name of a hub that runs.
    spoke.tell(&["online", quiet.id(), "127.0.0.1", &quiet.port().to_string()]).await;
    until("it is ignored", || async { world.hub.metrics().hub.npm_ignored == 1 }).await;
    // A hub's certificate without a row of its own.
    let (hub, address) = (world.hub.info().id.clone(), world.hub.info().address);
    let unknown = id::party(HUBS);
    let credentials = world.npm.certificates.of(&unknown).await;
    let ip = address.ip().to_string();
    let (_reader, mut writer) =
        Channel::connect((&ip, address.port()), &hub, &credentials).await.unwrap().split();
    writer.send(&["online", &unknown, "127.0.0.1", "50001"]).await;
    until("it is ignored", || async { world.hub.metrics().hub.npm_ignored == 2 }).await;
    assert_eq!(spoke.hubs().await, [&*hub], "nobody was told");
    assert!(spoke.id().ends_with(SPOKES));
    quiet.announce().await;
    until("the hub itself is believed", || async { spoke.hubs().await.len() == 2 }).await;
    spoke.close().await;
    quiet.stop().await;
    world.end().await;
}
