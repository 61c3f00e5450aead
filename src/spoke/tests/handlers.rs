//! Handlers by event name: who gets what, and what becomes of errors.

use std::sync::Mutex;

use super::*;
use crate::{
    spoke::{Consume, Handlers, Received},
    wire::{Sub, Token},
};

type Notes = Arc<Mutex<Vec<String>>>;

fn named(id: &str, name: &str) -> Event {
    Event { name: Name::parse(name.to_owned()).unwrap(), ..event(id) }
}

fn note(notes: &Notes, text: String) {
    notes.lock().unwrap().push(text);
}

/// `created` succeeds, `paid` fails, `broken` panics; errors of `e5` are forgiven.
fn handlers(notes: &Notes) -> Handlers {
    let (created, failed) = (notes.clone(), notes.clone());
    Handlers::new()
        .on("created", move |event: Received| {
            note(&created, format!("{} {} {} {}", event.id, event.name, event.seq, event.attempt));
            async { Ok(()) }
        })
        .on("paid", |_| async { Err("no funds".into()) })
        .on("broken", |_| async { panic!("out of order") })
        .on_error(move |error, event| {
            note(&failed, format!("{}: {error}", event.id));
            async move { if event.id.as_str() == "e5" { Ok(()) } else { Err(error) } }
        })
}

/// What the hub is told of a claim: nothing for an ack, or the reason of a nack.
async fn end(link: &mut FakeLink, sub: Sub, token: Token, name: &str) -> Option<String> {
    let event = named(&format!("e{token}"), name);
    link.send(Reply::Claim { sub, token, attempt: 2, seq: 100 + token, event }).await;
    let (req, reason) = match link.request().await {
        Request::Ack { req, .. } => (req, None),
        Request::Nack { req, options, .. } => (req, Some(options.reason)),
        other => panic!("expected an ack or a nack: {other:?}"),
    };
    link.ok(req, Answer::Done).await;
    reason
}

#[tokio::test(start_paused = true)]
async fn a_consumers_handler_is_found_by_name_and_errors_go_to_the_error_handler_first() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let notes = Notes::default();
    let consume = Consume::new("orders", "*");
    let (consumer, sub) = tokio::join!(spoke.consume_with(consume, handlers(&notes)), link.consuming());
    let consumer = consumer.unwrap();
    assert_eq!(end(&mut link, sub, 1, "created").await, None);
    assert_eq!(end(&mut link, sub, 2, "paid").await.unwrap(), "no funds");
    let unknown = end(&mut link, sub, 3, "shipped").await.unwrap();
    assert!(unknown.starts_with("no handler for events of the name \"shipped\""), "{unknown}");
    assert_eq!(end(&mut link, sub, 4, "broken").await.unwrap(), "the handler panicked: out of order");
    assert_eq!(end(&mut link, sub, 5, "paid").await, None, "the error handler forgave it");
    let told = notes.lock().unwrap().clone();
    assert_eq!(told[..2], ["e1 created 101 2", "e2: no funds"]);
    assert!(told[2].starts_with("e3: no handler") && told[3] == "e5: no funds", "{told:?}");
    let (counts, ()) = tokio::join!(consumer.stop(), link.stopped(sub));
    let counts = counts.unwrap();
    assert_eq!((counts.acked, counts.nacked, counts.lost), (2, 3, 0));
}

#[tokio::test(start_paused = true)]
async fn the_fallback_gets_what_has_no_handler_of_its_own() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let handlers = Handlers::new()
        .on("created", |_| async { Ok(()) })
        .otherwise(|event| async move { Err(format!("{} is new to me", event.name).into()) });
    let consume = Consume::new("orders", "*");
    let (_consumer, sub) = tokio::join!(spoke.consume_with(consume, handlers), link.consuming());
    assert_eq!(end(&mut link, sub, 1, "created").await, None);
    assert_eq!(end(&mut link, sub, 2, "shipped").await.unwrap(), "shipped is new to me");
}

#[tokio::test(start_paused = true)]
async fn a_subscribers_handlers_run_in_order_and_none_ends_it() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let notes = Notes::default();
    let subscribing = spoke.subscribe_with("orders", "*", handlers(&notes));
    let (subscriber, sub) = tokio::join!(subscribing, link.subscribed(10));
    let subscriber = subscriber.unwrap();
    for (seq, name) in [(11, "created"), (12, "paid"), (13, "broken"), (14, "shipped"), (15, "created")] {
        let event = named(&format!("e{}", seq - 10), name);
        link.send(Reply::Event { subs: vec![sub], seq, event }).await;
    }
    timeout(PATIENCE, async {
        while subscriber.counts().handled < 2 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    drop(link);
    let mut link = hub.relinked().await;
    let sub = link.subscribed(20).await;
    link.event(sub, 21).await;
    timeout(PATIENCE, async {
        while subscriber.counts().handled < 3 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    let counts = subscriber.stop().await;
    assert_eq!((counts.handled, counts.failed, counts.passed, counts.gaps), (3, 2, 1, 1));
    let told = notes.lock().unwrap().clone();
    assert_eq!(told, ["e1 created 11 1", "e2: no funds", "e5 created 15 1", "e21 created 21 1"]);
    let Request::Unsubscribe { .. } = link.request().await else { panic!("it unsubscribes") };
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_ends_with_its_spoke_and_says_why() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let (subscriber, _) =
        tokio::join!(spoke.subscribe_with("orders", "*", Handlers::new()), link.subscribed(10));
    let mut subscriber = subscriber.unwrap();
    tokio::join!(spoke.close(), async { drop(link) });
    assert_eq!(subscriber.ended().await.unwrap().code, code::CLOSED);
    assert_eq!(subscriber.ended().await, None);
}
