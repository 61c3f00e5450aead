//! Promise: after a lost link the client library subscribes again and says between which positions it may have
//! missed events.

use eventflow::spoke::{Delivery, Publish, Spoke, SpokeConfig, Subscription};

use crate::support::{TestHub, until, wire::Wire};

async fn publish(spoke: &Spoke, id: &str) -> u64 {
    spoke.publish(Publish::new("orders", "created", "p").id(id.to_owned())).await.unwrap().seq
}

/// The next event: its id and number.
async fn event(subscription: &mut Subscription) -> (String, u64) {
    match subscription.next().await {
        Some(Delivery::Event { event, seq }) => (event.id.to_string(), seq),
        other => panic!("an event, not {other:?}"),
    }
}

#[tokio::test]
async fn a_cut_link_shows_as_one_gap() {
    let hub = TestHub::start().await;
    let wire = Wire::to(hub.handle.info().address).await;
    let config =
        SpokeConfig::from_bundle(hub.bundle()).hub(wire.address.ip().to_string(), wire.address.port());
    let cut = Spoke::connect(config).await.unwrap();
    let steady = hub.spoke().await;
    let mut witness = steady.subscribe("orders", "*").await.unwrap();
    let mut subscription = cut.subscribe("orders", "*").await.unwrap();
    let seen = publish(&steady, "seen").await;
    assert_eq!(event(&mut subscription).await, ("seen".to_owned(), seen));

    wire.whole.send_replace(false);
    until("the link is lost", || async { cut.status().links_lost == 1 && cut.status().hub.is_none() }).await;
    publish(&steady, "missed").await;
    let last = publish(&steady, "missed-too").await;
    wire.whole.send_replace(true);
    assert_eq!(subscription.next().await, Some(Delivery::Gap { from: seen, to: last }));
    let next = publish(&steady, "next").await;
    assert_eq!(event(&mut subscription).await, ("next".to_owned(), next));

    // The link that stayed saw all of it, and no gap.
    for id in ["seen", "missed", "missed-too", "next"] {
        assert_eq!(event(&mut witness).await.0, id);
    }
    steady.close().await;
    cut.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn a_restart_of_the_hub_shows_as_one_gap() {
    let hub = TestHub::start().await;
    let port = hub.handle.info().address.port();
    let spoke = hub.spoke().await;
    let mut all = spoke.subscribe("orders", "*").await.unwrap();
    let mut some = spoke.subscribe("orders", "created").await.unwrap();
    let seen = publish(&spoke, "seen").await;
    event(&mut all).await;
    event(&mut some).await;
    let folder = hub.stop().await;

    // Publishing goes on: what isn't answered waits for the hub.
    let pending = spoke.publish_later(Publish::new("orders", "created", "p").id("waited")).await.unwrap();
    let hub = TestHub::on(folder, |config| config.hub.internal_port = port).await;
    let waited = pending.await.unwrap().seq;
    assert!(waited > seen, "the sequence goes on after a start");
    until("subscribed again", || async {
        spoke.status().hub.is_some() && hub.handle.metrics().hub.links["v1"] == 1
    })
    .await;
    for subscription in [&mut all, &mut some] {
        let Some(Delivery::Gap { from, to }) = subscription.next().await else { panic!("a gap") };
        assert_eq!(from, seen);
        assert!(to == seen || to == waited, "{to}");
    }
    // It came to the link once or twice seen by nobody; either way it arrives, before what comes next.
    let next = publish(&spoke, "next").await;
    let mut arrived = [Vec::new(), Vec::new()];
    for (subscription, arrived) in [&mut all, &mut some].into_iter().zip(&mut arrived) {
        while arrived.last() != Some(&("next".to_owned(), next)) {
            arrived.push(event(subscription).await);
        }
    }
    let [all, some] = arrived;
    assert!(all.contains(&("waited".to_owned(), waited)), "{all:?}");
    assert!(all.len() == 2 && some.len() <= 2, "{all:?} {some:?}");
    assert_eq!(spoke.status().links_lost, 1);
    spoke.close().await;
    hub.stop().await;
}
