//! Consuming: order, concurrency, how claims end, what happens to those of a lost link.

use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::Semaphore;

use super::*;
use crate::{
    spoke::{Claims, Consume, Consumer, SettleError},
    wire::{Sub, Token},
};

impl FakeLink {
    pub(super) async fn consuming(&mut self) -> Sub {
        match self.request().await {
            Request::Consume { req, sub, .. } => {
                self.ok(req, Answer::Position(0)).await;
                sub
            }
            other => panic!("expected a consume: {other:?}"),
        }
    }

    pub(super) async fn claim(&mut self, sub: Sub, token: Token) {
        let event = event(&format!("e{token}"));
        self.send(Reply::Claim { sub, token, attempt: 1, seq: token, event }).await;
    }

    pub(super) async fn acked(&mut self) -> Token {
        match self.request().await {
            Request::Ack { req, token } => {
                self.ok(req, Answer::Done).await;
                token
            }
            other => panic!("expected an ack: {other:?}"),
        }
    }

    async fn released(&mut self) -> Token {
        match self.request().await {
            Request::Release { req, token } => {
                self.ok(req, Answer::Done).await;
                token
            }
            other => panic!("expected a release: {other:?}"),
        }
    }

    pub(super) async fn stopped(&mut self, consumer: Sub) {
        match self.request().await {
            Request::Stop { req, sub } => {
                assert_eq!(sub, consumer);
                self.ok(req, Answer::Done).await;
            }
            other => panic!("expected a stop: {other:?}"),
        }
    }
}

async fn claims(spoke: &Spoke, link: &mut FakeLink) -> (Claims, Sub) {
    let consume = Consume::new("orders", "created");
    let (claims, sub) = tokio::join!(spoke.claims(consume), link.consuming());
    (claims.unwrap(), sub)
}

/// A consumer whose handlers note their event and then wait for a permit of the gate.
async fn gated(
    spoke: &Spoke,
    link: &mut FakeLink,
    concurrency: u32,
    gate: &Arc<Semaphore>,
) -> (Consumer, Sub, Arc<Mutex<Vec<String>>>) {
    let begun = Arc::new(Mutex::new(Vec::new()));
    let (notes, gate) = (begun.clone(), gate.clone());
    let handler = move |event: Event| {
        notes.lock().unwrap().push(event.id.to_string());
        let gate = gate.clone();
        async move {
            gate.acquire().await.unwrap().forget();
            Ok::<(), String>(())
        }
    };
    let consume = Consume::new("orders", "created").concurrency(concurrency);
    let (consumer, sub) = tokio::join!(spoke.consume(consume, handler), link.consuming());
    (consumer.unwrap(), sub, begun)
}

#[tokio::test(start_paused = true)]
async fn handlers_begin_in_order_and_at_most_the_concurrency_run() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let running = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let begun = Arc::new(Mutex::new(Vec::new()));
    let handler = {
        let (running, most, begun) = (running.clone(), most.clone(), begun.clone());
        move |event: Event| {
            begun.lock().unwrap().push(event.id.to_string());
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let running = running.clone();
            async move {
                tokio::time::sleep(Duration::from_millis(event.timestamp as u64)).await;
                running.fetch_sub(1, Ordering::SeqCst);
                Ok::<(), String>(())
            }
        }
    };
    let consume = Consume::new("orders", "created").concurrency(3);
    let (consumer, sub) = tokio::join!(spoke.consume(consume, handler), link.consuming());
    let consumer = consumer.unwrap();
    for token in 1..=20 {
        link.claim(sub, token).await;
    }
    let mut acked = Vec::new();
    for _ in 1..=20 {
        acked.push(link.acked().await);
    }
    acked.sort_unstable();
    assert_eq!(acked, (1..=20).collect::<Vec<_>>());
    assert_eq!(*begun.lock().unwrap(), (1..=20).map(|n| format!("e{n}")).collect::<Vec<_>>());
    assert_eq!(most.load(Ordering::SeqCst), 3);
    let (counts, ()) = tokio::join!(consumer.stop(), link.stopped(sub));
    assert_eq!(counts.unwrap().acked, 20);
}

#[tokio::test(start_paused = true)]
async fn an_error_or_a_panic_of_the_handler_is_a_nack_with_its_text() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let handler = |event: Event| {
        assert_ne!(event.id.as_str(), "e3", "a bug before the first await");
        async move {
            assert_ne!(event.id.as_str(), "e2", "a bug");
            Err::<(), _>("no such order")
        }
    };
    let (consumer, sub) = tokio::join!(spoke.consume(Consume::new("orders", "*"), handler), link.consuming());
    let consumer = consumer.unwrap();
    for (token, text) in [(1, "no such order"), (2, "a bug"), (3, "a bug before the first await")] {
        link.claim(sub, token).await;
        match link.request().await {
            Request::Nack { req, token: nacked, options } => {
                assert_eq!(nacked, token);
                assert!(options.reason.contains(text), "{}", options.reason);
                link.ok(req, Answer::Done).await;
            }
            other => panic!("expected a nack: {other:?}"),
        }
    }
    let (counts, ()) = tokio::join!(consumer.stop(), link.stopped(sub));
    assert_eq!(counts.unwrap().nacked, 3);
}

#[tokio::test(start_paused = true)]
async fn stop_releases_what_is_unstarted_and_waits_for_what_runs() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let gate = Arc::new(Semaphore::new(0));
    let (consumer, sub, begun) = gated(&spoke, &mut link, 1, &gate).await;
    for token in 1..=3 {
        link.claim(sub, token).await;
    }
    tokio::task::yield_now().await;
    let stopping = tokio::spawn(consumer.stop());
    let Request::Stop { req, .. } = link.request().await else { panic!("expected a stop") };
    // One more crosses the stop on its way.
    link.claim(sub, 4).await;
    let mut released = Vec::new();
    for _ in 0..3 {
        released.push(link.released().await);
    }
    released.sort_unstable();
    assert_eq!(released, [2, 3, 4]);
    link.ok(req, Answer::Done).await;
    assert!(!stopping.is_finished(), "a handler runs still");
    gate.add_permits(1);
    assert_eq!(link.acked().await, 1);
    assert_eq!(stopping.await.unwrap().unwrap().acked, 1);
    assert_eq!(*begun.lock().unwrap(), ["e1"]);
}

#[tokio::test(start_paused = true)]
async fn claims_of_a_lost_link_are_void() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let (mut claims, sub) = claims(&spoke, &mut link).await;
    link.claim(sub, 1).await;
    link.claim(sub, 2).await;
    let old = claims.next().await.unwrap();
    drop(link);
    let mut link = hub.relinked().await;
    let sub = link.consuming().await;
    link.claim(sub, 11).await;
    // The second one was not pulled: it vanished with its link.
    let new = claims.next().await.unwrap();
    assert_eq!(new.event().id.as_str(), "e11");
    assert_eq!(old.ack().await, Err(SettleError::LinkLost));
    let (acked, token) = tokio::join!(new.ack(), link.acked());
    assert_eq!((acked, token), (Ok(()), 11));
    assert_eq!(spoke.status().claims_lost, 1);
    link.silence().await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_lost_or_whose_event_was_deleted_is_told_and_counted() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let (mut claims, sub) = claims(&spoke, &mut link).await;
    let ends =
        [(code::CLAIM_LOST, SettleError::ClaimLost), (code::EVENT_NOT_FOUND, SettleError::EventDeleted)];
    for (token, (code, error)) in (1..).zip(ends) {
        link.claim(sub, token).await;
        let claim = claims.next().await.unwrap();
        let (acked, ()) = tokio::join!(claim.ack(), async {
            let Request::Ack { req, .. } = link.request().await else { panic!("expected an ack") };
            link.send(Reply::Err { req, fault: Fault::refused(code, "there is no such claim") }).await;
        });
        assert_eq!(acked, Err(error));
        assert_eq!((spoke.status().claims_lost, spoke.status().claims_held), (token, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_claim_is_released_and_dropped_claims_stop_the_consumer() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let (mut claims, sub) = claims(&spoke, &mut link).await;
    link.claim(sub, 1).await;
    drop(claims.next().await.unwrap());
    assert_eq!(link.released().await, 1);
    link.claim(sub, 2).await;
    tokio::task::yield_now().await;
    drop(claims);
    assert_eq!(link.released().await, 2);
    link.stopped(sub).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!((spoke.status().consumers, spoke.status().claims_held), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn closing_lets_a_handler_end_and_even_publish() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let gate = Arc::new(Semaphore::new(0));
    let handler = {
        let (spoke, gate) = (spoke.clone(), gate.clone());
        move |_| {
            let (spoke, gate) = (spoke.clone(), gate.clone());
            async move {
                gate.acquire().await.unwrap().forget();
                spoke.publish(publish("answer")).await.map(drop)
            }
        }
    };
    let consume = Consume::new("orders", "created");
    let (consumer, sub) = tokio::join!(spoke.consume(consume, handler), link.consuming());
    let _consumer = consumer.unwrap();
    link.claim(sub, 1).await;
    tokio::task::yield_now().await;
    let closing = tokio::spawn({
        let spoke = spoke.clone();
        async move { spoke.close().await }
    });
    link.stopped(sub).await;
    gate.add_permits(1);
    let (req, _) = link.publish().await;
    link.committed(req, true, 2).await;
    assert_eq!(link.acked().await, 1);
    assert_eq!(link.next().await, None, "the link is shut down");
    drop(link);
    assert!(closing.await.unwrap().is_clean());
    assert!(spoke.status().closed);
}

#[tokio::test(start_paused = true)]
async fn when_the_hub_drains_what_is_unstarted_goes_back_and_new_work_waits_for_the_next_link() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let gate = Arc::new(Semaphore::new(0));
    let (_consumer, sub, begun) = gated(&spoke, &mut link, 1, &gate).await;
    for token in 1..=3 {
        link.claim(sub, token).await;
    }
    tokio::task::yield_now().await;
    link.send(Reply::Drain).await;
    // One more crosses it on its way.
    link.claim(sub, 4).await;
    let mut released = Vec::new();
    for _ in 0..3 {
        released.push(link.released().await);
    }
    released.sort_unstable();
    assert_eq!(released, [2, 3, 4]);
    let publishing = tokio::spawn({
        let spoke = spoke.clone();
        async move { spoke.publish(publish("later")).await }
    });
    tokio::task::yield_now().await;
    gate.add_permits(1);
    assert_eq!(link.acked().await, 1, "what runs comes to its end, and no publish stands before it");
    assert_eq!(*begun.lock().unwrap(), ["e1"]);
    let stopping = Fault::retryable(code::HUB_DRAINING, "the hub is stopping", Duration::from_millis(10));
    link.send(Reply::Bye(stopping)).await;
    let mut link = hub.relinked().await;
    let sub = link.consuming().await;
    let (req, id) = link.publish().await;
    assert_eq!(id.as_str(), "later");
    link.committed(req, true, 9).await;
    publishing.await.unwrap().unwrap();
    gate.add_permits(1);
    link.claim(sub, 5).await;
    assert_eq!(link.acked().await, 5);
}

#[tokio::test(start_paused = true)]
async fn an_ack_that_the_hub_is_too_busy_for_is_sent_again() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let (mut claims, sub) = claims(&spoke, &mut link).await;
    link.claim(sub, 1).await;
    let acking = tokio::spawn(claims.next().await.unwrap().ack());
    let Request::Ack { req, .. } = link.request().await else { panic!("expected an ack") };
    link.send(Reply::Err { req, fault: busy(50) }).await;
    assert_eq!(link.acked().await, 1);
    acking.await.unwrap().unwrap();
    assert_eq!(spoke.status().claims_held, 0);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_can_be_neither_acked_nor_handed_back_at_once_is_handed_back_later() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let (mut claims, sub) = claims(&spoke, &mut link).await;
    link.claim(sub, 1).await;
    let acking = tokio::spawn(claims.next().await.unwrap().ack());
    let full = |req| Reply::Err { req, fault: Fault::refused(code::DB_FAULT, "no") };
    let Request::Ack { req, .. } = link.request().await else { panic!("expected an ack") };
    link.send(full(req)).await;
    assert!(matches!(acking.await.unwrap(), Err(SettleError::Refused(_))));
    let Request::Release { req, .. } = link.request().await else { panic!("expected a release") };
    link.send(Reply::Err { req, fault: busy(50) }).await;
    assert_eq!(link.released().await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_restored_consumer_that_the_hub_is_too_busy_for_is_asked_for_again() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let (mut claims, _) = claims(&spoke, &mut link).await;
    drop(link);
    let mut link = hub.relinked().await;
    let Request::Consume { req, sub: refused, .. } = link.request().await else { panic!("a consume") };
    link.send(Reply::Err { req, fault: busy(50) }).await;
    let sub = link.consuming().await;
    assert_ne!(sub, refused);
    link.claim(sub, 1).await;
    let acking = tokio::spawn(claims.next().await.unwrap().ack());
    assert_eq!(link.acked().await, 1);
    acking.await.unwrap().unwrap();
}
