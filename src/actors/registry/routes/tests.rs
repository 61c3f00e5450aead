//! Who gets what.

use std::time::Duration;

use super::*;
use crate::{
    actors::outlet::{Frame, Outflow},
    event::{Data, Domain, Event, EventId, Name, Pid},
};

fn routes() -> Routes {
    Routes::new(RingLimits { window: Duration::from_secs(5), events: 10, bytes: 10_000 }, 0, 2)
}

fn link(id: u64) -> (Outlet, Outflow) {
    Outlet::new(LinkId(id), usize::MAX)
}

fn pattern(text: &str) -> Pattern {
    Pattern::parse(text.to_owned()).unwrap()
}

fn event(seq: u64, domain: &str) -> Arc<Dispatched> {
    let event = Event {
        id: EventId::parse(format!("e{seq}")).unwrap(),
        timestamp: 0,
        domain: Domain::parse(domain).unwrap(),
        name: Name::parse("created").unwrap(),
        pid: Pid::parse("p").unwrap(),
        rid: None,
        data: Data::parse("{}").unwrap(),
    };
    Arc::new(Dispatched::new(event, seq))
}

/// Link, event and subscriptions of each push; those of npm links have no subscriptions.
fn pushed(routes: &mut Routes, events: &[Arc<Dispatched>]) -> Vec<(u64, u64, Vec<Sub>)> {
    let mut all = Vec::new();
    let pushes = routes.dispatch(events, Instant::now());
    for (outlet, push) in pushes.v1 {
        all.extend(push.into_iter().map(|push| (outlet.id().0, push.event.seq, push.subs)));
    }
    for (seq, links) in pushes.npm {
        all.extend(links.iter().map(|outlet| (outlet.id().0, seq, Vec::new())));
    }
    all
}

#[test]
fn an_event_comes_once_per_link_with_all_its_subscriptions() {
    let (mut routes, now) = (routes(), Instant::now());
    let ((one, _), (two, _)) = (link(1), link(2));
    routes.subscribe(&one, 1, pattern("orders"), pattern("*"), now);
    routes.subscribe(&one, 4, pattern("*"), pattern("created"), now);
    routes.subscribe(&one, 5, pattern("users"), pattern("*"), now);
    routes.subscribe(&two, 1, pattern("orders"), pattern("created"), now);
    let events = [event(1, "orders"), event(2, "users"), event(3, "other")];
    assert_eq!(
        pushed(&mut routes, &events),
        [(1, 1, vec![1, 4]), (1, 2, vec![4, 5]), (1, 3, vec![4]), (2, 1, vec![1])]
    );
    assert_eq!(routes.head(), 3);
}

#[test]
fn an_npm_link_gets_an_event_once_though_two_of_its_wishes_match() {
    let (mut routes, now) = (routes(), Instant::now());
    let (npm, _) = link(7);
    routes.subscribe_npm(&npm, pattern("orders"), Pattern::any(), now);
    routes.subscribe_npm(&npm, pattern("orders"), pattern("created"), now);
    routes.subscribe_npm(&npm, pattern("users"), Pattern::any(), now);
    let events = [event(1, "orders"), event(2, "users")];
    assert_eq!(pushed(&mut routes, &events), [(7, 1, vec![])], "two wishes are the most here");
    routes.unsubscribe_npm(LinkId(7), &pattern("orders"), &Pattern::any());
    assert_eq!(pushed(&mut routes, &[event(3, "orders")]), [(7, 3, vec![])]);
    routes.unsubscribe_npm(LinkId(7), &pattern("orders"), &pattern("created"));
    assert_eq!(pushed(&mut routes, &[event(4, "orders")]), []);
}

#[test]
fn what_ends_leaves_nothing_behind() {
    let (mut routes, now) = (routes(), Instant::now());
    let ((one, _), (two, _), (npm, _)) = (link(1), link(2), link(3));
    routes.subscribe(&one, 1, pattern("a.*"), pattern(">"), now);
    assert!(routes.unsubscribe(LinkId(1), 1));
    assert!(!routes.unsubscribe(LinkId(1), 1), "it is gone");
    routes.watch(&one, 2, pattern("a"), pattern("b"));
    routes.unwatch(LinkId(1), 2);
    routes.subscribe(&two, 1, pattern("a"), pattern("b"), now);
    routes.watch(&two, 2, pattern("a"), pattern("b"));
    routes.link_gone(LinkId(2));
    routes.link_gone(LinkId(2));
    routes.subscribe_npm(&npm, pattern("a"), pattern("b"), now);
    routes.unsubscribe_npm(LinkId(3), &pattern("a"), &pattern("b"));
    assert!(routes.index.is_empty() && routes.links.is_empty());
}

#[test]
fn a_subscription_that_replays_is_live_once_it_has_room_for_what_came_meanwhile() {
    let (mut routes, now) = (routes(), Instant::now());
    let (one, out) = Outlet::new(LinkId(1), 1_000);
    routes.subscribe(&one, 1, pattern("orders"), Pattern::any(), now);
    routes.take_seat(&one, 2, pattern("orders"), Pattern::any());
    assert_eq!(pushed(&mut routes, &[event(1, "orders"), event(2, "users")]), [(1, 1, vec![1])]);

    one.send(Frame::Raw(vec![0; 600].into()));
    let Going::Kept(kept) = routes.go_live(&one, 2) else { panic!("there is no room") };
    assert_eq!(kept.iter().map(|event| event.seq).collect::<Vec<_>>(), [1]);
    assert_eq!(pushed(&mut routes, &[event(3, "orders")]), [(1, 3, vec![1])]);
    drop(out);
    let Going::Live(kept) = routes.go_live(&one, 2) else { panic!("there is room") };
    assert_eq!(
        kept.iter().map(|push| (push.event.seq, push.subs.clone())).collect::<Vec<_>>(),
        [(3, vec![2])]
    );
    assert_eq!(pushed(&mut routes, &[event(4, "orders")]), [(1, 4, vec![1, 2])], "as any other now");

    routes.take_seat(&one, 5, Pattern::any(), Pattern::any());
    assert!(routes.unsubscribe(LinkId(1), 5));
    assert!(matches!(routes.go_live(&one, 5), Going::Behind), "it was taken back");
    routes.take_seat(&one, 6, Pattern::any(), Pattern::any());
    routes.link_gone(LinkId(1));
    assert!(routes.index.is_empty() && routes.links.is_empty() && routes.seats.len() == 0);
}

#[test]
fn only_what_no_link_wanted_is_kept_for_a_late_one() {
    let (mut routes, now) = (routes(), Instant::now());
    let ((consumer, _), (late, _)) = (link(1), link(2));
    routes.watch(&consumer, 1, pattern("orders"), Pattern::any());
    assert_eq!(pushed(&mut routes, &[event(1, "orders"), event(2, "users")]), []);
    let kept = routes.subscribe(&late, 9, Pattern::any(), Pattern::any(), now);
    let kept: Vec<_> = kept.iter().map(|push| (push.event.seq, push.subs.clone())).collect();
    assert_eq!(kept, [(2, vec![9])]);
}
