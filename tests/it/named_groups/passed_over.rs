//! What was passed over and is wanted again, or was held meanwhile and fails.

use std::time::Duration;

use eventflow::spoke::GroupChange;

use super::{ids, orders, publish, settled, standing, take};
use crate::support::{TestHub, until};

#[tokio::test]
async fn a_dead_event_that_was_passed_over_is_served_when_it_is_redriven() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let billing = spoke.group("billing");
    billing.set(GroupChange::new().max_attempts(1)).await.unwrap();
    let mut claims = spoke.claims(orders("billing")).await.unwrap();
    publish(&spoke, ids("a", 2)).await;
    for _ in 0..2 {
        claims.next().await.unwrap().nack("no").await.unwrap();
    }
    billing.purge().await.unwrap();
    assert!(billing.redrive("a000").await.unwrap());
    assert_eq!(take(&mut claims, 1).await, ["a000"]);

    // It waits over a restart, too, for who comes.
    claims.stop().await.unwrap();
    assert!(billing.redrive("a001").await.unwrap());
    spoke.close().await;
    let hub = TestHub::on(hub.stop().await, |_| {}).await;
    let spoke = hub.spoke().await;
    let mut claims = spoke.claims(orders("billing")).await.unwrap();
    assert_eq!(take(&mut claims, 1).await, ["a001"]);
    settled(&spoke, "billing").await;
    until("nothing waits for an attempt", || async { standing(&spoke, "billing").await.retrying == 0 }).await;
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn what_is_held_while_its_group_is_purged_and_fails_is_tried_again() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let billing = spoke.group("billing");
    billing.set(GroupChange::new().delay(Duration::from_millis(10))).await.unwrap();
    let mut claims = spoke.claims(orders("billing").credit(1)).await.unwrap();
    publish(&spoke, ids("a", 3)).await;
    let held = claims.next().await.unwrap();
    billing.purge().await.unwrap();
    held.nack("not now").await.unwrap();
    let again = claims.next().await.unwrap();
    assert_eq!((again.event().id.as_str(), again.attempt()), ("a000", 2));
    again.ack().await.unwrap();
    publish(&spoke, ids("b", 1)).await;
    assert_eq!(take(&mut claims, 1).await, ids("b", 1), "the others were passed over");
    until("nothing waits for an attempt", || async { standing(&spoke, "billing").await.retrying == 0 }).await;
    spoke.close().await;
    hub.stop().await;
}
