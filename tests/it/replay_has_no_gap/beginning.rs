//! Where a subscription begins, what it gets from there, and what is refused.

use eventflow::{
    event::{EventId, Position, Uid, code},
    spoke::{Handlers, Publish, Schedule, SubscribeError, Timestamp},
};
use tokio::sync::mpsc;

use super::*;

fn id(text: &str) -> Since {
    Since::Id(EventId::parse(text.to_owned()).unwrap())
}

fn order(id: &'static str) -> Publish {
    Publish::new("orders", "created", "p").id(id)
}

#[tokio::test]
async fn from_all_a_time_an_event_or_a_position() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let first = spoke.publish(order("first")).await.unwrap();
    until("the clock goes on", || async { Timestamp::now().as_millis() > first.timestamp }).await;
    let second = spoke.publish(order("second")).await.unwrap();
    spoke.publish(Publish::new("users", "created", "p")).await.unwrap();
    // None of these three is to come.
    spoke.persist(order("stored")).await.unwrap();
    spoke.schedule(order("scheduled"), Schedule::after(PATIENCE * 10)).await.unwrap();
    spoke.publish(order("deleted")).await.unwrap();
    spoke.delete("deleted").await.unwrap();
    let third = spoke.publish(order("third")).await.unwrap();

    let [first, second, third] = [first, second, third].map(|published| (published.seq, published.timestamp));
    let hub_id = Uid::parse(hub.handle.info().id.clone()).unwrap();
    let behind = |seq| Since::Position(Position::of(hub_id.clone(), seq));
    for (since, expected) in [
        (Since::All, vec![first.0, second.0, third.0]),
        (Since::Time(0), vec![first.0, second.0, third.0]),
        (Since::Time(-5), vec![first.0, second.0, third.0]),
        (Since::Time(second.1), vec![second.0, third.0]),
        (id("first"), vec![second.0, third.0]),
        (behind(first.0), vec![second.0, third.0]),
        (behind(third.0 - 1), vec![third.0]),
        (id("third"), vec![]),
        (behind(third.0), vec![]),
        (Since::Time(i64::MAX), vec![]),
    ] {
        let mut subscription = spoke.subscribe_from("orders", "*", since.clone()).await.unwrap();
        for seq in &expected {
            assert_eq!(next(&mut subscription).await, *seq, "{since:?}");
            assert_eq!(subscription.position().seq(&hub_id), Some(*seq));
        }
        silent(&mut subscription).await;
        subscription.close().await.unwrap();
    }

    // What was only stored comes once it is published, and so does what ran.
    let mut subscription = spoke.subscribe_from("orders", "*", id("third")).await.unwrap();
    let stored = spoke.publish(order("stored")).await.unwrap();
    assert_eq!(next(&mut subscription).await, stored.seq);
    let mut again = spoke.subscribe_from("orders", "*", id("third")).await.unwrap();
    assert_eq!(next(&mut again).await, stored.seq);
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn what_no_subscription_can_begin_with_is_refused() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let seq = spoke.publish(order("first")).await.unwrap().seq;
    spoke.persist(order("stored")).await.unwrap();
    spoke.schedule(order("scheduled"), Schedule::after(PATIENCE * 10)).await.unwrap();
    let position = |hub: &str, seq| Since::Position(Position::of(Uid::parse(hub.to_owned()).unwrap(), seq));
    let own = hub.handle.info().id.clone();
    for (since, code, words) in [
        (id("unknown"), code::EVENT_NOT_FOUND, "unknown"),
        (id("stored"), code::EVENT_NOT_FOUND, "not published yet"),
        (id("scheduled"), code::EVENT_NOT_FOUND, "not published yet"),
        (position("OTHER-HUB", seq), code::INVALID_POSITION, "OTHER-HUB"),
        (position(&own, seq + 1), code::INVALID_POSITION, "beyond"),
        (Since::Position(Position::default()), code::INVALID_POSITION, "says nothing"),
    ] {
        let error = spoke.subscribe_from("orders", "*", since).await.unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains(words) && !error.is_retryable(), "{error}");
    }
    assert!(matches!(spoke.subscribe_from("a.>.b", "*", Since::All).await, Err(SubscribeError::Pattern(_))));

    // A number that was refused can be used again at once.
    let mut raw = hub.v1().await;
    let refused = raw.ask(&["subscribe", "1", "7", "orders", "*", r#"{"from":{"id":"unknown"}}"#]).await;
    assert_eq!(refused[..3], ["err", "1", code::EVENT_NOT_FOUND]);
    assert_eq!(raw.ask(&["subscribe", "2", "7", "orders", "*", r#"{"from":"all"}"#]).await[..2], ["ok", "2"]);
    let twice = raw.ask(&["subscribe", "3", "7", "orders", "*", r#"{"from":"all"}"#]).await;
    assert_eq!(twice[..3], ["err", "3", code::SUBSCRIPTION_EXISTS]);
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn until_it_is_live_it_is_a_stream_of_its_own() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let mut raw = hub.v1().await;
    raw.ask(&["subscribe", "1", "1", "orders", "*"]).await;
    let stored = some(&spoke, 2).await;
    for seq in &stored {
        assert_eq!(raw.event().await[..3], ["event".to_owned(), "1".to_owned(), seq.to_string()]);
    }
    let begun = raw.ask(&["subscribe", "2", "2", "orders", "*", r#"{"from":"all"}"#]).await;
    assert_eq!(begun, ["ok", "2", "position", "0"]);
    for seq in stored {
        assert_eq!(raw.event().await[..3], ["event".to_owned(), "2".to_owned(), seq.to_string()]);
    }
    until("it is live", || async { hub.handle.metrics().hub.replays == 0 }).await;
    let live = some(&spoke, 1).await[0];
    assert_eq!(raw.event().await[..3], ["event".to_owned(), "1,2".to_owned(), live.to_string()]);
    assert_eq!(raw.ask(&["unsubscribe", "3", "2"]).await[..2], ["ok", "3"]);
    let live = some(&spoke, 1).await[0];
    assert_eq!(raw.event().await[..3], ["event".to_owned(), "1".to_owned(), live.to_string()]);
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn handlers_go_on_where_others_ended() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let seqs = some(&spoke, 3).await;
    let (told, mut heard) = mpsc::unbounded_channel();
    let handlers = Handlers::new().otherwise(move |event| {
        let told = told.clone();
        async move { Ok(told.send(event.seq)?) }
    });
    let all = spoke.subscribe_from("orders", "*", Since::All).await.unwrap();
    let subscriber = all.handle(handlers.clone());
    for seq in &seqs {
        assert_eq!(heard.recv().await, Some(*seq));
    }
    until("all are handled", || async { subscriber.counts().handled == 3 }).await;
    let hub_id = hub.handle.info().id.clone();
    until("it says so", || async { subscriber.position().seq(&hub_id) == seqs.last().copied() }).await;
    let position = subscriber.position();
    subscriber.stop().await;
    let seqs = some(&spoke, 2).await;
    let subscriber = spoke.subscribe_from("orders", "*", position).await.unwrap().handle(handlers);
    for seq in seqs {
        assert_eq!(heard.recv().await, Some(seq));
    }
    subscriber.stop().await;
    spoke.close().await;
    hub.stop().await;
}
