//! Subscriptions of all hubs, in one lane.

use super::*;
use crate::{
    event::{Position, Uid},
    spoke::{Delivery, Subscription},
    wire::{Since, Sub},
};

impl FakeLink {
    /// The next subscribe, confirmed here; from where it was asked.
    async fn asked_from(&mut self, position: u64) -> (Sub, Option<Since>) {
        match self.work().await {
            Request::Subscribe { req, sub, options, .. } => {
                self.ok(req, Answer::Position(position)).await;
                (sub, options.from)
            }
            other => panic!("expected a subscribe: {other:?}"),
        }
    }
}

fn at(hubs: &[(&str, u64)]) -> Position {
    let mut position = Position::default();
    for (hub, seq) in hubs {
        position.reach(&Uid::from_stored((*hub).to_owned()), *seq);
    }
    position
}

async fn next(subscription: &mut Subscription) -> (Delivery, Option<String>) {
    let delivery = timeout(PATIENCE, subscription.next()).await.unwrap().expect("a delivery");
    (delivery, subscription.hub().map(ToOwned::to_owned))
}

async fn seq(subscription: &mut Subscription) -> (u64, String) {
    match next(subscription).await {
        (Delivery::Event { seq, .. }, Some(hub)) => (seq, hub),
        other => panic!("expected an event: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn events_of_all_hubs_come_in_one_lane_and_a_gap_is_of_its_hub() {
    let Two { spoke, mut b, mut to_a, mut to_b, .. } = two().await;
    let (events, (a, _), (sub, _)) =
        tokio::join!(spoke.subscribe("orders", "*"), to_a.asked_from(10), to_b.asked_from(20));
    let mut events = events.unwrap();
    assert_eq!(*events.position(), at(&[("HUB-A", 10), ("HUB-B", 20)]));
    to_a.event(a, 11).await;
    assert_eq!(seq(&mut events).await, (11, "HUB-A".to_owned()));
    to_b.event(sub, 21).await;
    assert_eq!(seq(&mut events).await, (21, "HUB-B".to_owned()));
    drop(to_b);
    let mut to_b = b.linked(&[]).await;
    to_b.asked_from(30).await;
    let gap = (Delivery::Gap { from: 21, to: 30 }, Some("HUB-B".to_owned()));
    assert_eq!(next(&mut events).await, gap);
    to_a.event(a, 12).await;
    assert_eq!(seq(&mut events).await, (12, "HUB-A".to_owned()));
    assert_eq!(*events.position(), at(&[("HUB-A", 12), ("HUB-B", 30)]));
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_comes_later_joins_at_its_live_end_or_from_the_same_point() {
    let Two { spoke, ports, mut to_a, mut to_b, .. } = two().await;
    let (live, ..) = tokio::join!(spoke.subscribe("orders", "*"), to_a.asked_from(10), to_b.asked_from(20));
    let since = Since::Position(at(&[("HUB-A", 5), ("HUB-B", 7)]));
    let (from, (_, to_hub_a), (_, to_hub_b)) = tokio::join!(
        spoke.subscribe_from("orders", "*", since.clone()),
        to_a.asked_from(5),
        to_b.asked_from(7)
    );
    assert_eq!((to_hub_a.as_ref(), to_hub_b.as_ref()), (Some(&since), Some(&since)), "each has its number");
    let (mut live, mut from) = (live.unwrap(), from.unwrap());

    let mut c = One::new(2, &ports);
    to_a.send(Reply::Online(c.address())).await;
    let mut to_c = c.linked(&[]).await;
    let (sub, since) = to_c.asked_from(100).await;
    assert_eq!(since, None);
    let (replay, since) = to_c.asked_from(0).await;
    let all = at(&[("HUB-A", 5), ("HUB-B", 7), ("HUB-C", 0)]);
    assert_eq!(since, Some(Since::Position(all)), "of this one the reader has had nothing");
    to_c.event(sub, 101).await;
    to_c.event(replay, 99).await;
    assert_eq!(seq(&mut live).await, (101, "HUB-C".to_owned()), "nothing was missed: no gap");
    assert_eq!(seq(&mut from).await, (99, "HUB-C".to_owned()));
    assert_eq!(*from.position(), at(&[("HUB-A", 5), ("HUB-B", 7), ("HUB-C", 99)]));

    // Given up and found again, it goes on where its readers stand.
    c.away();
    drop(to_c);
    let given_up = spoke.status_when(|status| status.links.len() == 2);
    meanwhile(&mut to_a, meanwhile(&mut to_b, given_up)).await;
    c.back();
    to_a.send(Reply::Online(c.address())).await;
    let mut to_c = c.linked(&[]).await;
    to_c.asked_from(120).await;
    let (_, since) = to_c.asked_from(99).await;
    let Some(Since::Position(position)) = since else { panic!("expected a position: {since:?}") };
    assert_eq!(position.seq("HUB-C"), Some(99));
    let gap = (Delivery::Gap { from: 101, to: 120 }, Some("HUB-C".to_owned()));
    assert_eq!(next(&mut live).await, gap);
}

#[tokio::test(start_paused = true)]
async fn from_an_event_the_hubs_that_have_not_published_it_begin_with_its_moment() {
    let Two { spoke, mut to_a, mut to_b, .. } = two().await;
    let since = Since::Id(EventId::parse("e1").unwrap());
    let moment = 1_796_030_712_007_u64;
    let other = async {
        match to_b.request().await {
            Request::Subscribe { req, .. } => to_b.refuse(req, code::EVENT_NOT_FOUND).await,
            other => panic!("expected a subscribe: {other:?}"),
        }
        to_b.asked_from(1).await
    };
    let position = moment * 1_000 + 7;
    let subscribing = spoke.subscribe_from("orders", "*", since);
    let (events, _, (sub, since)) = tokio::join!(subscribing, to_a.asked_from(position), other);
    assert_eq!(since, Some(Since::Time(moment as i64)));
    let mut events = events.unwrap();
    to_b.event(sub, 9).await;
    assert_eq!(seq(&mut events).await, (9, "HUB-B".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn an_event_or_a_position_that_no_hub_knows_is_refused() {
    let Two { spoke, mut to_a, mut to_b, .. } = two().await;
    for (since, refusal) in [
        (Since::Id(EventId::parse("e1").unwrap()), code::EVENT_NOT_FOUND),
        (Since::Position(at(&[("ELSEWHERE", 1)])), code::INVALID_POSITION),
    ] {
        let asked = since.clone();
        let refusing = async |link: &mut FakeLink| loop {
            match link.work().await {
                Request::Subscribe { req, options, .. } => {
                    assert_eq!(options.from, Some(asked.clone()));
                    return link.refuse(req, refusal).await;
                }
                Request::Unsubscribe { req, .. } => link.ok(req, Answer::Done).await,
                other => panic!("expected a subscribe: {other:?}"),
            }
        };
        let (events, ..) = tokio::join!(
            spoke.subscribe_from("orders", "*", since),
            refusing(&mut to_a),
            refusing(&mut to_b)
        );
        assert_eq!(events.unwrap_err().code(), refusal);
    }
    assert_eq!(spoke.status().subscriptions, 0);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_begins_without_a_hub_that_is_lost_meanwhile_and_is_taken_off_all() {
    let Two { spoke, mut b, mut to_a, mut to_b, .. } = two().await;
    let losing = async {
        assert!(matches!(to_b.request().await, Request::Subscribe { .. }));
        drop(to_b);
        b.linked(&[]).await
    };
    let (events, _, mut to_b) = tokio::join!(spoke.subscribe("orders", "*"), to_a.asked_from(10), losing);
    let events = events.unwrap();
    to_b.asked_from(30).await;
    let closing = async |link: &mut FakeLink| match link.work().await {
        Request::Unsubscribe { req, .. } => link.ok(req, Answer::Done).await,
        other => panic!("expected an unsubscribe: {other:?}"),
    };
    let (closed, ..) = tokio::join!(events.close(), closing(&mut to_a), closing(&mut to_b));
    closed.unwrap();
}
