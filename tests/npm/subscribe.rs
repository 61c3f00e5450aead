//! Flow: subscribe. npm's subscribers hear of events of either stack, read the data from the database, and subscribers of
//! ours get those of npm publishers with their data.

use eventflow::spoke::{Delivery, Publish};
use tokio::time::timeout;

use crate::{
    scratch::{PATIENCE, until},
    stack::{
        channel::Channel,
        deployment::SPOKES,
        id,
        spoke::{Spoke, next},
    },
    world::World,
};

#[tokio::test]
async fn an_event_of_either_stack_reaches_subscribers_of_both() {
    let Some(world) = World::start().await else { return };
    let ours = world.ours().await;
    let mut seen_by_ours = ours.subscribe("orders", "*").await.unwrap();
    let (publisher, subscriber) = (Spoke::connected(&world.npm).await, Spoke::connected(&world.npm).await);
    let mut seen = subscriber.subscribe("orders", "created").await;
    let mut elsewhere = subscriber.subscribe("users", "created").await;
    world.taken("SubscribeNpm", 2).await;

    let data = r#"{"total":12,"note":"ünï → 漢字","nested":{"list":[1,2.5,null,true]}}"#;
    let theirs = publisher.publish(("orders", "created", "order-1"), data).await;
    let own = id::event();
    let event = Publish::new("orders", "created", "order-2").id(own.clone()).data_text(data).unwrap();
    ours.publish(event).await.unwrap();
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let mut heard = [next(&mut seen).await, next(&mut seen).await];
    heard.sort_by(|one, other| one.pid.cmp(&other.pid));
    for (event, (id, pid)) in heard.iter().zip([(&theirs, "order-1"), (&own, "order-2")]) {
        assert_eq!((&event.id, &*event.domain, &*event.name, &*event.pid), (id, "orders", "created", pid));
        assert_eq!(json(&event.data), json(data));
    }
    let mut pids = Vec::new();
    while pids.len() < 2 {
        let delivery = timeout(PATIENCE, seen_by_ours.next()).await.expect("an event").unwrap();
        let Delivery::Event { event, .. } = delivery else { panic!("{delivery:?}") };
        assert_eq!(json(event.data.as_str()), json(data));
        pids.push(event.pid.to_string());
    }
    pids.sort();
    assert_eq!(pids, ["order-1", "order-2"]);
    assert!(elsewhere.try_recv().is_err(), "nobody published a user");

    // The hub says in npm's columns that it took it, once; the time is the database's own, in UTC.
    let hub = world.hub.info().id.clone();
    let taken = format!("hub = '{hub}' and abs(timestampdiff(second, consumed_hub, utc_timestamp())) < 60");
    until("both are taken", || async { world.npm.database.published_where(&taken).await == 2 }).await;
    for spoke in [publisher, subscriber] {
        spoke.close().await;
    }
    ours.close().await;
    world.end().await;
}

/// The units of the record, to the byte.
#[tokio::test]
async fn the_record_has_domain_id_name_and_pid() {
    let Some(world) = World::start().await else { return };
    let (hub, address) = (world.hub.info().id.clone(), world.hub.info().address);
    let credentials = world.npm.certificates.of(&id::party(SPOKES)).await;
    let (ip, port) = (address.ip().to_string(), address.port());
    let channel = Channel::connect((&ip, port), &hub, &credentials).await.unwrap();
    let (mut reader, mut writer) = channel.split();
    // What isn't known is passed over, and the link goes on.
    writer.send(&["hullo", "there"]).await;
    writer.send(&["subscribe", "orders", "created"]).await;
    world.taken("SubscribeNpm", 1).await;
    let publisher = Spoke::connected(&world.npm).await;
    let id = publisher.publish(("orders", "created", "a pid, with: signs"), "{}").await;
    let record = timeout(PATIENCE, reader.receive()).await.expect("a record").unwrap();
    assert_eq!(record, ["publish", "orders", &id, "created", "a pid, with: signs"]);
    drop((reader, writer));
    publisher.close().await;
    world.end().await;
}
