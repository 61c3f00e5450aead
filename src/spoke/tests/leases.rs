//! Leases: who is extended when, and what becomes of claims that the hub has given away.

use super::*;
use crate::{
    spoke::{Claims, Consume, Handlers, Received, SettleError},
    wire::{ConsumeOptions, ExtendOptions, StartAt, Sub, Token},
};

const THIRD: Duration = Duration::from_secs(20);

fn consume() -> Consume {
    Consume::new("orders", "created").lease(3 * THIRD)
}

impl FakeLink {
    /// The next request is an `extend` of one of these claims.
    async fn asked_to_extend(&mut self) -> (Req, Token, ExtendOptions) {
        match self.work().await {
            Request::Extend { req, token, options } => (req, token, options),
            other => panic!("expected an extend: {other:?}"),
        }
    }

    async fn extended(&mut self) -> Token {
        let (req, token, options) = self.asked_to_extend().await;
        assert_eq!(options, ExtendOptions::default());
        self.ok(req, Answer::Done).await;
        token
    }
}

async fn claims(spoke: &Spoke, link: &mut FakeLink) -> (Claims, Sub) {
    let (claims, sub) = tokio::join!(spoke.claims(consume()), link.consuming());
    (claims.unwrap(), sub)
}

#[tokio::test(start_paused = true)]
async fn a_consumer_asks_for_its_group_its_lease_and_its_start() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let start = EventId::parse("e0").unwrap();
    let consume = consume().group("billing").from(start);
    let (_claims, ()) = tokio::join!(spoke.claims(consume), async {
        let Request::Consume { req, group, options, .. } = link.request().await else { panic!("a consume") };
        assert_eq!(group.unwrap().as_str(), "billing");
        let from = Some(StartAt::Id(EventId::parse("e0").unwrap()));
        assert_eq!(options, ConsumeOptions { lease: Some(60_000), from, ..ConsumeOptions::new(64, 1) });
        link.ok(req, Answer::Position(0)).await;
    });
}

#[tokio::test(start_paused = true)]
async fn what_is_held_is_extended_at_a_third_of_its_lease_until_it_is_settled() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let (mut claims, sub) = claims(&spoke, &mut link).await;
    let began = tokio::time::Instant::now();
    for token in 1..=3 {
        link.claim(sub, token).await;
    }
    // One is pulled, two wait in the queue: all are held.
    let first = claims.next().await.unwrap();
    for round in 1..=3 {
        let mut extended = Vec::new();
        for _ in 1..=3 {
            extended.push(link.extended().await);
        }
        extended.sort_unstable();
        assert_eq!(extended, [1, 2, 3]);
        assert_eq!(began.elapsed().as_secs() / THIRD.as_secs(), round);
    }
    let (acked, token) = tokio::join!(first.ack(), link.acked());
    assert_eq!((acked, token), (Ok(()), 1));
    let mut extended = [link.extended().await, link.extended().await];
    extended.sort_unstable();
    assert_eq!(extended, [2, 3]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_for_claims_that_end_in_time() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let (mut claims, sub) = claims(&spoke, &mut link).await;
    for token in 1..=20 {
        link.claim(sub, token).await;
        let claim = claims.next().await.unwrap();
        tokio::time::sleep(THIRD / 2).await;
        let acking = tokio::spawn(claim.ack());
        let Request::Ack { req, token: acked } = link.work().await else { panic!("an ack and nothing else") };
        assert_eq!(acked, token);
        link.ok(req, Answer::Done).await;
        acking.await.unwrap().unwrap();
    }
    assert_eq!(spoke.status().claims_held, 0);
}

#[tokio::test(start_paused = true)]
async fn a_lost_claim_is_told_and_one_that_nobody_has_pulled_vanishes() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let (mut claims, sub) = claims(&spoke, &mut link).await;
    link.claim(sub, 1).await;
    link.claim(sub, 2).await;
    let first = claims.next().await.unwrap();
    assert!(!first.is_lost());
    for _ in 0..2 {
        let (req, ..) = link.asked_to_extend().await;
        link.refuse(req, code::CLAIM_LOST).await;
    }
    timeout(PATIENCE, first.lost()).await.expect("it is told");
    assert!(first.is_lost());
    link.claim(sub, 3).await;
    let next = claims.next().await.unwrap();
    assert_eq!(next.event().id.as_str(), "e3", "the second one vanished");
    assert_eq!(first.ack().await, Err(SettleError::ClaimLost));
    let (acked, token) = tokio::join!(next.ack(), link.acked());
    assert_eq!((acked, token), (Ok(()), 3), "nothing was sent for the lost ones");
    assert_eq!((spoke.status().claims_lost, spoke.status().claims_held), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_watch_and_its_late_end_is_counted_once() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let handlers = Handlers::new().on("created", |event: Received| async move {
        event.hold.lost().await;
        assert!(event.hold.is_lost());
        Err("it was given away".into())
    });
    let (consumer, sub) = tokio::join!(spoke.consume_with(consume(), handlers), link.consuming());
    let consumer = consumer.unwrap();
    link.claim(sub, 1).await;
    let (req, ..) = link.asked_to_extend().await;
    link.refuse(req, code::CLAIM_LOST).await;
    let (counts, ()) = tokio::join!(consumer.stop(), link.stopped(sub));
    let counts = counts.unwrap();
    assert_eq!((counts.acked, counts.nacked, counts.lost), (0, 0, 1));
    assert_eq!(spoke.status().claims_lost, 1);
}

#[tokio::test(start_paused = true)]
async fn claims_of_a_lost_link_are_lost_and_are_not_extended_on_the_next() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let (mut claims, sub) = claims(&spoke, &mut link).await;
    link.claim(sub, 1).await;
    let claim = claims.next().await.unwrap();
    drop(link);
    timeout(PATIENCE, claim.lost()).await.expect("it is told");
    let mut link = hub.relinked().await;
    link.consuming().await;
    assert_eq!(claim.extend(THIRD).await, Err(SettleError::LinkLost));
    drop(claim);
    tokio::time::sleep(2 * THIRD).await;
    let Some(Request::Ping(_)) = link.next().await else { panic!("nothing but a ping") };
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_is_busy_is_asked_again_soon_and_one_without_leases_no_more() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let (mut claims, sub) = claims(&spoke, &mut link).await;
    link.claim(sub, 1).await;
    let claim = claims.next().await.unwrap();
    let began = tokio::time::Instant::now();
    let (req, ..) = link.asked_to_extend().await;
    link.send(Reply::Err { req, fault: busy(50) }).await;
    let (req, ..) = link.asked_to_extend().await;
    assert!(began.elapsed() < THIRD * 3 / 2, "not only after another third");
    link.refuse(req, code::UNSUPPORTED).await;
    tokio::time::sleep(2 * THIRD).await;
    assert!(!claim.is_lost());
    let acking = tokio::spawn(claim.ack());
    let Request::Ack { .. } = link.work().await else { panic!("an ack, and no extend before it") };
    acking.abort();
}

#[tokio::test(start_paused = true)]
async fn a_claim_can_be_held_for_longer_by_hand() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let (mut claims, sub) = claims(&spoke, &mut link).await;
    link.claim(sub, 1).await;
    let claim = claims.next().await.unwrap();
    let began = tokio::time::Instant::now();
    let (extended, ()) = tokio::join!(claim.extend(30 * THIRD), async {
        let (req, token, options) = link.asked_to_extend().await;
        assert_eq!((token, options), (1, ExtendOptions { lease: Some(600_000) }));
        link.ok(req, Answer::Done).await;
    });
    assert_eq!(extended, Ok(()));
    assert_eq!(link.extended().await, 1);
    assert_eq!(began.elapsed().as_secs() / THIRD.as_secs(), 28, "when two thirds of a lease are left");
    let (extended, ()) = tokio::join!(claim.extend(THIRD), async {
        let (req, ..) = link.asked_to_extend().await;
        link.refuse(req, code::CLAIM_LOST).await;
    });
    assert_eq!(extended, Err(SettleError::ClaimLost));
    assert!(claim.is_lost());
}

/// Not with paused time: a thread that blocks is what it is about.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_blocks_its_thread_holds_up_no_extend() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let ended = Arc::new(std::sync::Mutex::new(ended));
    let handler = move |_: Event| {
        let ended = ended.clone();
        async move {
            // Blocks one of two threads until it was extended often enough.
            let told = ended.lock().map(|ended| ended.recv_timeout(PATIENCE).is_ok());
            if told.unwrap_or_default() { Ok(()) } else { Err("it wasn't extended") }
        }
    };
    let consume = Consume::new("orders", "created").lease(Duration::from_secs(1));
    let (consumer, sub) = tokio::join!(spoke.consume(consume, handler), link.consuming());
    let consumer = consumer.unwrap();
    link.claim(sub, 1).await;
    for _ in 0..3 {
        assert_eq!(link.extended().await, 1);
    }
    end.send(()).unwrap();
    assert_eq!(link.acked().await, 1);
    let (counts, ()) = tokio::join!(consumer.stop(), link.stopped(sub));
    assert_eq!(counts.unwrap().acked, 1);
}
