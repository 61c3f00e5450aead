//! Promise: an event that nobody saw is given to a subscriber that comes a moment later, and nothing else is.

use std::time::{Duration, Instant};

use crate::support::{Raw, TestHub, npm::taken, until};

async fn publish(raw: &mut Raw, id: &str) -> u64 {
    let answer = raw.ask(&["publish", "1", id, "orders", "created", "p", "", "1"]).await;
    assert_eq!(answer[..3], ["ok", "1", "committed"]);
    answer[4].parse().unwrap()
}

async fn subscribe(raw: &mut Raw, sub: &str, domain: &str, name: &str) -> u64 {
    let answer = raw.ask(&["subscribe", sub, sub, domain, name]).await;
    assert_eq!(answer[..3], ["ok", sub, "position"]);
    answer[3].parse().unwrap()
}

/// Subscriptions and id of the next event.
async fn event(raw: &mut Raw) -> (String, String) {
    let event = raw.event().await;
    assert_eq!(event[0], "event");
    (event[1].clone(), event[3].clone())
}

fn is(subs: &str, id: &str) -> (String, String) {
    (subs.to_owned(), id.to_owned())
}

#[tokio::test]
async fn what_was_published_a_moment_before_arrives_once_per_link() {
    let hub = TestHub::start().await;
    let mut publisher = hub.v1().await;
    let first = publish(&mut publisher, "e1").await;
    let second = publish(&mut publisher, "e2").await;

    let mut late = hub.v1().await;
    let position = subscribe(&mut late, "1", "orders", "*").await;
    assert!(first < second && second <= position, "they lie at or below the position");
    subscribe(&mut late, "2", "*", "created").await;
    assert_eq!(event(&mut late).await, is("1", "e1"));
    assert_eq!(event(&mut late).await, is("1", "e2"));

    // Another link that comes in time gets them as well, one that wants something else doesn't.
    let mut other = hub.v1().await;
    subscribe(&mut other, "1", "users", "*").await;
    let mut later = hub.v1().await;
    subscribe(&mut later, "7", "orders", "created").await;
    assert_eq!(event(&mut later).await, is("7", "e1"));
    assert_eq!(event(&mut later).await, is("7", "e2"));

    // From here on it is live, with all numbers that match; nothing came twice in between.
    publish(&mut publisher, "e3").await;
    assert_eq!(event(&mut late).await, is("1,2", "e3"));
    assert_eq!(event(&mut later).await, is("7", "e3"));

    // Unsubscribing and subscribing again brings nothing back.
    assert_eq!(late.ask(&["unsubscribe", "3", "1"]).await, ["ok", "3"]);
    assert_eq!(late.ask(&["unsubscribe", "4", "2"]).await, ["ok", "4"]);
    subscribe(&mut late, "5", "orders", "*").await;
    publish(&mut publisher, "e4").await;
    assert_eq!(event(&mut late).await, is("5", "e4"));
    drop((publisher, late, other, later));
    hub.stop().await;
}

#[tokio::test]
async fn after_the_window_it_is_too_late() {
    let window = Duration::from_millis(30);
    let hub = TestHub::with(|config| config.limits.late_window = window).await;
    let mut publisher = hub.v1().await;
    publish(&mut publisher, "old").await;
    let answered = Instant::now();
    until("the window is over", || async { answered.elapsed() > window }).await;
    let mut late = hub.v1().await;
    subscribe(&mut late, "1", "orders", "*").await;
    publish(&mut publisher, "new").await;
    assert_eq!(event(&mut late).await, is("1", "new"));
    drop((publisher, late));
    hub.stop().await;
}

#[tokio::test]
async fn what_others_saw_is_no_news() {
    let hub = TestHub::start().await;
    let mut publisher = hub.v1().await;
    let mut seeing = hub.v1().await;
    subscribe(&mut seeing, "1", "orders", "created").await;
    publish(&mut publisher, "subscribed").await;
    assert_eq!(event(&mut seeing).await, is("1", "subscribed"));
    seeing.ask(&["unsubscribe", "2", "1"]).await;

    // A consumer counts, too, even one that has no room for it.
    seeing.ask(&["consume", "3", "1", "", "*", "*", r#"{"credit":1}"#]).await;
    publish(&mut publisher, "consumed").await;
    publish(&mut publisher, "waiting").await;
    // Publishers hear of a commit first: it has to have come to those whom it is for.
    taken(&hub, "Committed", 3).await;
    seeing.ask(&["stop", "4", "1"]).await;

    // Whoever stopped doesn't.
    publish(&mut publisher, "unseen").await;
    let mut late = hub.v1().await;
    subscribe(&mut late, "1", "orders", "*").await;
    assert_eq!(event(&mut late).await, is("1", "unseen"));
    publish(&mut publisher, "end").await;
    assert_eq!(event(&mut late).await, is("1", "end"));
    drop((publisher, seeing, late));
    hub.stop().await;
}

#[tokio::test]
async fn the_number_of_events_that_are_kept_is_bounded() {
    let hub = TestHub::with(|config| config.limits.late_events = 2).await;
    let mut publisher = hub.v1().await;
    for id in ["e1", "e2", "e3"] {
        publish(&mut publisher, id).await;
    }
    let mut late = hub.v1().await;
    subscribe(&mut late, "1", "orders", "*").await;
    assert_eq!(event(&mut late).await, is("1", "e2"));
    assert_eq!(event(&mut late).await, is("1", "e3"));
    drop((publisher, late));
    hub.stop().await;
}
