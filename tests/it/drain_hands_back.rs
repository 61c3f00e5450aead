//! Promise: a drain doesn't wait for what consumers hold but haven't begun: it comes back, uncounted, and the next
//! start delivers it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use eventflow::spoke::{Consume, Publish};
use tokio::sync::Semaphore;

use crate::support::{TestHub, until};

const EVENTS: u64 = 64;

#[tokio::test]
async fn what_is_not_begun_is_handed_back_and_delivered_by_the_next_start() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let gate = Arc::new(Semaphore::new(0));
    let begun = Arc::new(AtomicUsize::new(0));
    let handler = {
        let (gate, begun) = (gate.clone(), begun.clone());
        move |_event| {
            begun.fetch_add(1, Ordering::Relaxed);
            let gate = gate.clone();
            async move {
                gate.acquire().await.map_err(|error| error.to_string())?.forget();
                Ok::<(), String>(())
            }
        }
    };
    let consume = Consume::new("orders", "*").credit(64).concurrency(2);
    let consumer = spoke.consume(consume, handler).await.unwrap();
    for n in 0..EVENTS {
        spoke.publish(Publish::new("orders", "created", format!("order-{n}"))).await.unwrap();
    }
    until("64 claims, two of them begun", || async {
        spoke.status().claims_held == 64 && begun.load(Ordering::Relaxed) == 2
    })
    .await;

    let stopping = Instant::now();
    let folder = tokio::spawn(hub.stop());
    until("what isn't begun is handed back", || async { spoke.status().claims_held == 2 }).await;
    assert!(!folder.is_finished(), "what runs may end");
    gate.add_permits(2);
    let folder = folder.await.unwrap();
    assert!(stopping.elapsed() < Duration::from_secs(10), "{:?}", stopping.elapsed());
    assert_eq!(consumer.counts().acked, 2);
    assert_eq!(begun.load(Ordering::Relaxed), 2);

    let hub = TestHub::on(folder, |_| {}).await;
    let spoke = hub.spoke().await;
    let mut claims = spoke.claims(Consume::new("orders", "*")).await.unwrap();
    for _ in 2..EVENTS {
        let claim = claims.next().await.unwrap();
        assert_eq!(claim.attempt(), 1, "{} was not begun", claim.event().id);
        claim.ack().await.unwrap();
    }
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn a_link_is_told_of_the_drain_before_its_end() {
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    link.send(&["consume", "1", "1", "", "orders", "*", r#"{"credit":8}"#]).await;
    assert_eq!(link.answer().await.unwrap()[..3], ["ok", "1", "position"]);
    let spoke = hub.spoke().await;
    spoke.publish(Publish::new("orders", "created", "order-1")).await.unwrap();
    let claim = link.answer().await.unwrap();
    assert_eq!(claim[0], "claim");
    let stopping = tokio::spawn(hub.stop());
    assert_eq!(link.answer().await.unwrap(), ["drain"]);
    link.send(&["release", "2", &claim[2]]).await;
    assert_eq!(link.answer().await.unwrap(), ["ok", "2"]);
    let bye = link.answer().await.unwrap();
    assert_eq!(bye[..2], ["bye", "E_EVENTFLOW_HUB_DRAINING"]);
    assert!(link.answer().await.is_none());
    drop(link);
    stopping.await.unwrap();
}

#[tokio::test]
async fn a_half_closed_link_gets_its_answers() {
    use tokio::io::AsyncWriteExt;

    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    for n in 1..=20 {
        link.send(&["publish", &n.to_string(), &format!("e{n}"), "orders", "created", "p", "", "{}"]).await;
    }
    link.stream.shutdown().await.unwrap();
    for _ in 1..=20 {
        assert_eq!(link.answer().await.unwrap()[0], "ok");
    }
    assert!(link.answer().await.is_none());
    hub.stop().await;
}
