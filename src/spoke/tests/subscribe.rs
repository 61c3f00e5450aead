//! Subscriptions: deliveries, gaps after a cut, a reader that lags.

use super::*;
use crate::{
    spoke::{Delivery, SubscribeError, Subscription},
    wire::Sub,
};

impl FakeLink {
    pub(super) async fn subscribed(&mut self, position: u64) -> Sub {
        match self.request().await {
            Request::Subscribe { req, sub, .. } => {
                self.ok(req, Answer::Position(position)).await;
                sub
            }
            other => panic!("expected a subscribe: {other:?}"),
        }
    }

    pub(super) async fn event(&mut self, sub: Sub, seq: u64) {
        self.send(Reply::Event { subs: vec![sub], seq, event: event(&format!("e{seq}")) }).await;
    }
}

async fn subscription(spoke: &Spoke, link: &mut FakeLink, position: u64) -> (Subscription, Sub) {
    let (subscription, sub) = tokio::join!(spoke.subscribe("orders", "*"), link.subscribed(position));
    (subscription.unwrap(), sub)
}

async fn seq(subscription: &mut Subscription) -> u64 {
    match timeout(PATIENCE, subscription.next()).await.unwrap() {
        Some(Delivery::Event { seq, .. }) => seq,
        other => panic!("expected an event: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn after_each_cut_a_subscription_yields_one_gap_and_goes_on() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let (mut events, sub) = subscription(&spoke, &mut link, 10).await;
    link.event(sub, 11).await;
    assert_eq!(seq(&mut events).await, 11);
    drop(link);

    let mut link = hub.relinked().await;
    let sub = link.subscribed(20).await;
    link.event(sub, 21).await;
    assert_eq!(events.next().await, Some(Delivery::Gap { from: 11, to: 20 }));
    assert_eq!(seq(&mut events).await, 21);
    drop(link);

    let mut link = hub.relinked().await;
    link.subscribed(30).await;
    assert_eq!(events.next().await, Some(Delivery::Gap { from: 21, to: 30 }));
    drop(link);

    // Nothing came in between: the gap begins where the last one ended.
    let mut link = hub.relinked().await;
    link.subscribed(40).await;
    assert_eq!(events.next().await, Some(Delivery::Gap { from: 30, to: 40 }));
    drop(link);

    // A hub that has just started stands before what it sent last: nothing was missed.
    let mut link = hub.relinked().await;
    link.subscribed(35).await;
    assert_eq!(events.next().await, Some(Delivery::Gap { from: 40, to: 40 }));
}

#[tokio::test(start_paused = true)]
async fn a_lagging_subscription_is_taken_off_and_comes_back_when_its_reader_has_caught_up() {
    let mut hub = FakeHub::new();
    let mut config = config();
    config.subscription_events = 3;
    let (spoke, mut link) = hub.connected(config, limits()).await;
    let (mut events, sub) = subscription(&spoke, &mut link, 0).await;
    for seq in 1..=5 {
        link.event(sub, seq).await;
    }
    match link.request().await {
        Request::Unsubscribe { req, sub: off } => {
            assert_eq!(off, sub);
            link.ok(req, Answer::Done).await;
        }
        other => panic!("expected an unsubscribe: {other:?}"),
    }
    // The link does its other work meanwhile.
    let pending = spoke.publish_later(publish("a")).await.unwrap();
    let (req, _) = link.publish().await;
    link.committed(req, true, 6).await;
    assert!(pending.await.is_ok());
    assert_eq!(spoke.status().lagged, 1);

    for expected in 1..=3 {
        assert_eq!(seq(&mut events).await, expected);
    }
    assert_eq!(events.next().await, Some(Delivery::Lagged));
    let again = link.subscribed(9).await;
    assert_ne!(again, sub, "a number is never used twice");
    link.event(sub, 8).await;
    link.event(again, 10).await;
    assert_eq!(events.next().await, Some(Delivery::Gap { from: 3, to: 9 }));
    assert_eq!(seq(&mut events).await, 10);
}

#[tokio::test(start_paused = true)]
async fn an_event_for_several_subscriptions_reaches_each() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let (mut one, first) = subscription(&spoke, &mut link, 0).await;
    let (mut two, second) = subscription(&spoke, &mut link, 0).await;
    link.send(Reply::Event { subs: vec![first, second], seq: 1, event: event("e1") }).await;
    assert_eq!((seq(&mut one).await, seq(&mut two).await), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn dropping_a_subscription_takes_it_off_the_hub() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let (events, sub) = subscription(&spoke, &mut link, 0).await;
    drop(events);
    match link.request().await {
        Request::Unsubscribe { sub: off, .. } => assert_eq!(off, sub),
        other => panic!("expected an unsubscribe: {other:?}"),
    }
    assert_eq!(spoke.status().subscriptions, 0);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_given_up_while_it_is_asked_is_taken_off() {
    let mut hub = FakeHub::new();
    let mut config = config();
    config.request_deadline = Duration::from_secs(2);
    let (spoke, mut link) = hub.connected(config, limits()).await;
    let error = spoke.subscribe("orders", "*").await.unwrap_err();
    assert_eq!(error, SubscribeError::TimedOut { waited: Duration::from_secs(2) });
    let sub = link.subscribed(5).await;
    match link.request().await {
        Request::Unsubscribe { sub: off, .. } => assert_eq!(off, sub),
        other => panic!("expected an unsubscribe: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_the_hub_refuses_to_restore_ends_with_the_reason() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let (mut events, _) = subscription(&spoke, &mut link, 0).await;
    drop(link);
    let mut link = hub.relinked().await;
    let Request::Subscribe { req, .. } = link.request().await else { panic!("expected a subscribe") };
    let fault = Fault::refused(code::TOO_MANY_SUBSCRIPTIONS, "the link has 0 subscriptions already");
    link.send(Reply::Err { req, fault: fault.clone() }).await;
    assert_eq!(events.next().await, None);
    assert_eq!(events.fault(), Some(fault));
}
