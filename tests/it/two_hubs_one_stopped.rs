//! Promise: of two hubs on one database one stands still for longer than its lease, and the other goes on with its work; when the
//! first wakes up it commits nothing in its old place: late outcomes are refused, no event has a second one, and it hands out
//! nothing that the other has taken.
//!
//! It stands still until the other has done all, with `EVENTFLOW_TEST_LONG=1` for 30 s at least.

use std::time::Duration;

use eventflow::spoke::{Consume, Publish};
use tokio::time::{Instant, sleep_until, timeout};

use crate::support::{
    PATIENCE, load,
    pair::{Book, Pair, count, texts, until_count},
};

const EVENTS: usize = 200;
/// Those that a consumer at the stopped hub has in hands.
const HELD: usize = 20;

fn order(n: usize) -> Publish {
    Publish::new("orders", "created", format!("order-{n}")).id(format!("e-{n}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_it_says_when_it_wakes_up_is_refused() {
    let Some(pair) = Pair::start().await else { return };
    let database = pair.database().await;
    let Pair { one: (home, hub), two: (other, _beside) } = pair;
    let (one, two) = (home.lone_spoke().await, other.lone_spoke().await);
    let credit = u32::try_from(HELD).unwrap();
    let mut claims = one.claims(Consume::new("orders", "*").credit(credit)).await.unwrap();
    let book = Book::default();
    book.work(&two, 2, Consume::new("orders", "*"), Duration::ZERO).await;
    for n in 0..EVENTS {
        one.publish(order(n)).await.unwrap();
    }
    let mut held = Vec::new();
    while held.len() < HELD {
        held.push(timeout(PATIENCE, claims.next()).await.expect("a claim in time").unwrap());
    }
    let epoch = format!("SELECT epoch FROM v1_hub_epoch WHERE hub_id = '{}'", home.hub_id());
    let before = count(&database, &epoch).await;

    let stopped = Instant::now();
    hub.signal("STOP");
    let all = i64::try_from(EVENTS).unwrap();
    let done = "SELECT count(*) FROM event_published WHERE success IS NOT NULL";
    until_count(&database, done, all).await;
    assert_eq!(count(&database, &epoch).await, before + 1, "the adoption raised it");
    assert_eq!(book.acked(), EVENTS, "the other one did all of it");
    if load::is_long() {
        sleep_until(stopped + Duration::from_secs(30)).await;
    }
    let consumers = "SELECT concat(event_id, ' ', success) FROM event_published ORDER BY event_id";
    let outcomes = texts(&database, consumers).await;
    hub.signal("CONT");

    for claim in held {
        let id = claim.event().id.to_string();
        let late = timeout(PATIENCE, claim.ack()).await.expect("an answer in time");
        assert!(late.is_err(), "{id}: a late ack counts");
    }
    // It takes its place again, and goes on with what is new.
    until_count(&database, &epoch, before + 2).await;
    one.publish(order(EVENTS)).await.unwrap();
    let new = timeout(PATIENCE, claims.next()).await.expect("a claim in time").unwrap();
    assert_eq!(new.event().id.as_str(), format!("e-{EVENTS}"), "what was taken is handed out by nobody else");
    new.ack().await.unwrap();
    until_count(&database, done, all + 1).await;
    let now = texts(&database, consumers).await;
    assert!(outcomes.iter().all(|outcome| now.contains(outcome)), "an outcome has changed");
    assert_eq!(count(&database, "SELECT count(*) FROM event").await, all + 1);
    book.check();
    database.close().await.unwrap();
    drop((one, two));
}
