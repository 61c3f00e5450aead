//! Promise: metrics show what waits for a retry, what is dead and what nobody wants, by the kind of its group; and the age
//! of the oldest counts what waits for a retry.

use std::{collections::BTreeMap, time::Duration};

use eventflow::spoke::{Consume, GroupChange, Nack, Publish};
use tokio::time::timeout;

use crate::support::{PATIENCE, TestHub, http::get, until};

#[tokio::test]
async fn retrying_dead_and_orphaned_events_are_shown_by_the_kind_of_their_group() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    spoke.group("billing").set(GroupChange::new().max_attempts(1)).await.unwrap();
    let mut ours = spoke.claims(Consume::new("orders", "*")).await.unwrap();
    let mut billing = spoke.claims(Consume::new("orders", "*").group("billing")).await.unwrap();
    for id in ["e1", "e2"] {
        spoke.publish(Publish::new("orders", "created", "p").id(id.to_owned())).await.unwrap();
    }
    spoke.publish(Publish::new("nobodys", "created", "p")).await.unwrap();
    for nack in [Nack::new("later").after(Duration::from_secs(3_600)), Nack::new("never").give_up()] {
        timeout(PATIENCE, ours.next()).await.unwrap().unwrap().nack(nack).await.unwrap();
        timeout(PATIENCE, billing.next()).await.unwrap().unwrap().nack("no").await.unwrap();
    }
    spoke.close().await;

    let hub = TestHub::on(hub.stop().await, |_| {}).await;
    let numbers = || hub.handle.metrics().hub;
    until("they are counted", || async { numbers().dead == BTreeMap::from([("default", 1), ("named", 2)]) })
        .await;
    until("orphans too", || async { numbers().orphans_waiting == 1 }).await;
    assert_eq!(numbers().retrying, BTreeMap::from([("default", 1), ("named", 0)]));
    until("nothing waits for a consumer, and the oldest is what waits for its retry", || async {
        numbers().pending == 0 && numbers().oldest_pending >= 2
    })
    .await;
    let text = get(&hub, "/metrics").await.body;
    for line in [
        "eventflow_events_retrying{group=\"default\"} 1",
        "eventflow_events_retrying{group=\"named\"} 0",
        "eventflow_events_dead{group=\"default\"} 1",
        "eventflow_events_dead{group=\"named\"} 2",
        "eventflow_orphans 1",
    ] {
        assert!(text.lines().any(|of| of == line), "{line} is missing: {text}");
    }

    let spoke = hub.spoke().await;
    assert!(spoke.group("billing").redrive("e1").await.unwrap());
    spoke.delete("e1").await.unwrap();
    until("what is gone is counted no more", || async {
        numbers().dead["named"] == 1 && numbers().retrying["default"] == 0 && numbers().oldest_pending == 0
    })
    .await;
    spoke.close().await;
    hub.stop().await;
}
