//! Groups that are set, sought, purged, unbound and removed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use eventflow::{
    event::EventId,
    spoke::{Consume, GroupChange, Nack, SettleError, StartAt, Timestamp},
};

use super::{ids, orders, publish, settled, standing, take};
use crate::support::{TestHub, until};

#[tokio::test]
async fn settings_are_changed_one_by_one_and_stay_over_a_restart() {
    let hub = TestHub::with(|config| config.groups.max_attempts = 7).await;
    let spoke = hub.spoke().await;
    let billing = spoke.group("billing");
    let settings = billing.set(GroupChange::new().delay(Duration::from_millis(10))).await.unwrap();
    assert_eq!(
        (settings.max_attempts, settings.delay, settings.max_delay),
        (Some(7), Some(10), Some(300_000))
    );
    let settings = billing.set(GroupChange::new().key_order(true).dead_letter("failures")).await.unwrap();
    assert_eq!((settings.key_order, settings.delay), (Some(true), Some(10)));
    assert_eq!(settings.dead_letter.as_deref(), Some("failures"));
    spoke.default_group().set(GroupChange::new().max_attempts(2)).await.unwrap();
    let refused = spoke.default_group().set(GroupChange::new().key_order(true)).await.unwrap_err();
    assert_eq!(refused.code(), "E_EVENTFLOW_INVALID_RECORD");
    let refused = billing.set(GroupChange::new().max_delay(Duration::from_millis(9))).await.unwrap_err();
    assert!(refused.to_string().contains("max_delay"), "{refused}");
    spoke.close().await;

    let hub = TestHub::on(hub.stop().await, |_| {}).await;
    let spoke = hub.spoke().await;
    let stands = spoke.backlog().await.unwrap();
    assert_eq!(stands[0].settings.max_attempts, Some(2));
    let settings = &stands[1].settings;
    assert_eq!((settings.max_attempts, settings.delay, settings.key_order), (Some(5), Some(10), Some(true)));
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn seek_serves_again_what_was_done_and_purge_passes_over_what_waits() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let billing = spoke.group("billing");
    let mut claims = spoke.claims(orders("billing")).await.unwrap();
    publish(&spoke, ids("a", 10)).await;
    assert_eq!(take(&mut claims, 10).await, ids("a", 10));
    billing.seek(EventId::parse("a003").unwrap()).await.unwrap();
    assert_eq!(take(&mut claims, 6).await, ids("a", 10)[4..]);
    settled(&spoke, "billing").await;

    claims.stop().await.unwrap();
    publish(&spoke, ids("b", 5)).await;
    until("5 wait", || async { standing(&spoke, "billing").await.pending == Some(5) }).await;
    assert_eq!(billing.purge().await.unwrap(), 5);
    until("none waits", || async { standing(&spoke, "billing").await.pending == Some(0) }).await;
    publish(&spoke, ids("c", 1)).await;
    let mut claims = spoke.claims(orders("billing")).await.unwrap();
    assert_eq!(take(&mut claims, 1).await, ids("c", 1));

    billing.seek(StartAt::All).await.unwrap();
    assert_eq!(take(&mut claims, 16).await.len(), 16, "what was passed over too");
    spoke.close().await;

    // The next start knows it all.
    let hub = TestHub::on(hub.stop().await, |_| {}).await;
    let spoke = hub.spoke().await;
    let mut claims = spoke.claims(orders("billing")).await.unwrap();
    publish(&spoke, ids("d", 1)).await;
    assert_eq!(take(&mut claims, 1).await, ids("d", 1));
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn what_a_consumer_holds_stays_its_own_when_its_group_is_sought_or_purged() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let mut claims = spoke.claims(orders("billing").credit(2)).await.unwrap();
    publish(&spoke, ids("a", 4)).await;
    let held = [claims.next().await.unwrap(), claims.next().await.unwrap()];
    spoke.group("billing").seek(StartAt::All).await.unwrap();
    spoke.group("billing").purge().await.unwrap();
    for claim in held {
        claim.ack().await.unwrap();
    }
    publish(&spoke, ids("b", 1)).await;
    assert_eq!(take(&mut claims, 1).await, ids("b", 1));
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn a_binding_that_is_removed_ends_its_consumers_who_keep_what_they_hold() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let billing = spoke.group("billing");
    let mut created = spoke.claims(Consume::new("orders", "created").group("billing")).await.unwrap();
    let mut mail = spoke.claims(Consume::new("mail", "*").group("billing")).await.unwrap();
    publish(&spoke, ids("a", 1)).await;
    let held = created.next().await.unwrap();
    billing.unbind("orders", "created").await.unwrap();
    assert!(created.next().await.is_none(), "its consumer has ended");
    held.ack().await.unwrap();
    publish(&spoke, ids("b", 1)).await;
    spoke.publish(eventflow::spoke::Publish::new("mail", "sent", "m").id("m1".to_owned())).await.unwrap();
    assert_eq!(take(&mut mail, 1).await, ["m1"], "the others go on");
    settled(&spoke, "billing").await;
    let bindings = standing(&spoke, "billing").await.bindings;
    assert_eq!(bindings.iter().map(|binding| binding.domain.as_str()).collect::<Vec<_>>(), ["mail"]);
    let error = billing.unbind("orders", "created").await.unwrap_err();
    assert_eq!(error.code(), "E_EVENTFLOW_BINDING_NOT_FOUND");
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn a_group_that_is_removed_is_forgotten_with_its_claims_and_outcomes() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let billing = spoke.group("billing");
    let mut claims = spoke.claims(orders("billing").credit(2)).await.unwrap();
    let mut other = spoke.claims(orders("mail")).await.unwrap();
    publish(&spoke, ids("a", 4)).await;
    assert_eq!(take(&mut claims, 1).await, ids("a", 1));
    let held = claims.next().await.unwrap();
    billing.remove().await.unwrap();
    while let Some(claim) = claims.next().await {
        // It came before the end.
        drop(claim);
    }
    assert!(matches!(held.ack().await, Err(SettleError::ClaimLost)));
    let error = billing.backlog().await.unwrap_err();
    assert_eq!(error.code(), "E_EVENTFLOW_GROUP_NOT_FOUND");
    assert_eq!(billing.remove().await.unwrap_err().code(), "E_EVENTFLOW_GROUP_NOT_FOUND");
    assert_eq!(take(&mut other, 4).await, ids("a", 4), "another group isn't touched");

    // One of the same name is another group.
    let mut claims = spoke.claims(orders("billing").from(StartAt::All)).await.unwrap();
    assert_eq!(take(&mut claims, 4).await, ids("a", 4));
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn dead_events_are_listed_and_tried_again_in_their_group() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let billing = spoke.group("billing");
    billing.set(GroupChange::new().max_attempts(1)).await.unwrap();
    let mut claims = spoke.claims(orders("billing")).await.unwrap();
    publish(&spoke, ids("a", 3)).await;
    for _ in 0..3 {
        claims.next().await.unwrap().nack("no").await.unwrap();
    }
    let dead = billing.dead().collect(10).await.unwrap();
    assert_eq!(dead.iter().map(|dead| dead.id.to_string()).collect::<Vec<_>>(), ids("a", 3));
    assert!(billing.redrive("a001").await.unwrap());
    let claim = claims.next().await.unwrap();
    assert_eq!((claim.event().id.as_str(), claim.attempt()), ("a001", 1), "a new round");
    claim.ack().await.unwrap();
    assert_eq!(billing.redrive_all("orders", "*").await.unwrap(), 2);
    assert_eq!(super::set(&take(&mut claims, 2).await), ["a000".to_owned(), "a002".to_owned()].into());
    until("none is dead", || async { standing(&spoke, "billing").await.dead == 0 }).await;
    assert_eq!(billing.outcome("a001", crate::support::PATIENCE).await.unwrap().state, "success");
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn what_is_held_while_its_group_is_sought_counts_from_there_on() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let billing = spoke.group("billing");
    billing.set(GroupChange::new().delay(std::time::Duration::from_millis(10))).await.unwrap();
    let mut claims = spoke.claims(orders("billing").credit(3)).await.unwrap();
    publish(&spoke, ids("a", 3)).await;
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(claims.next().await.unwrap());
    }
    // Ahead of the time is now: nothing is kept for nobody.
    billing.seek(Timestamp::from(i64::MAX)).await.unwrap();
    billing.seek(StartAt::All).await.unwrap();
    let [done, dead, again] = <[_; 3]>::try_from(held).unwrap();
    done.ack().await.unwrap();
    dead.nack(Nack::new("never").give_up()).await.unwrap();
    again.nack("not yet").await.unwrap();
    let second = claims.next().await.unwrap();
    assert_eq!((&*second.event().id, second.attempt()), ("a002", 2));
    second.ack().await.unwrap();
    let patience = crate::support::PATIENCE;
    for (id, state) in [("a000", "success"), ("a001", "dead"), ("a002", "success")] {
        assert_eq!(billing.outcome(id, patience).await.unwrap().state, state, "{id}");
    }
    assert!(billing.redrive("a001").await.unwrap());
    assert_eq!(take(&mut claims, 1).await, ["a001"]);
    settled(&spoke, "billing").await;
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn what_a_consumer_of_a_removed_group_has_not_begun_it_never_begins() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let begun = Arc::new(AtomicUsize::new(0));
    let counter = begun.clone();
    let (go_on, wait) = tokio::sync::watch::channel(false);
    let wanted = Consume::new("orders", "created").group("billing").concurrency(1);
    let mut consumer = spoke
        .consume(wanted, move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
            let mut wait = wait.clone();
            async move { wait.wait_for(|go_on| *go_on).await.map(drop) }
        })
        .await
        .unwrap();
    publish(&spoke, ids("a", 40)).await;
    until("it holds many and has begun one", || async {
        begun.load(Ordering::Relaxed) == 1 && standing(&spoke, "billing").await.in_flight > 20
    })
    .await;
    spoke.group("billing").remove().await.unwrap();
    // Behind its `ended` on the same link.
    assert!(spoke.backlog().await.unwrap().iter().all(|group| group.group.is_none()));
    go_on.send_replace(true);
    consumer.ended().await;
    assert_eq!(begun.load(Ordering::Relaxed), 1);
    assert_eq!(consumer.counts().lost, 1, "what was begun came too late");
    spoke.close().await;
    hub.stop().await;
}
