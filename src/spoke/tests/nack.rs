//! How work fails: what the hub is told of it.

use super::*;
use crate::{
    spoke::{BoxError, Claim, Consume, Handlers, Nack},
    wire::NackOptions,
};

fn options(reason: &str, delay: Option<u64>, is_final: bool) -> NackOptions {
    NackOptions { reason: reason.to_owned(), delay, is_final }
}

impl FakeLink {
    async fn nacked(&mut self) -> NackOptions {
        match self.work().await {
            Request::Nack { req, options, .. } => {
                self.ok(req, Answer::Done).await;
                options
            }
            other => panic!("expected a nack: {other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_nack_by_hand_says_when_to_try_again_or_to_give_up() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let (claims, sub) = tokio::join!(spoke.claims(Consume::new("orders", "*")), link.consuming());
    let mut claims = claims.unwrap();
    let nacks = [
        (Nack::from("no"), options("no", None, false)),
        (Nack::new("busy").after(Duration::from_secs(2)), options("busy", Some(2_000), false)),
        (Nack::new("never").give_up(), options("never", None, true)),
    ];
    for (token, (nack, expected)) in (1..).zip(nacks) {
        link.claim(sub, token).await;
        let claim: Claim = claims.next().await.unwrap();
        let (nacked, told) = tokio::join!(claim.nack(nack), link.nacked());
        assert_eq!((nacked, told), (Ok(()), expected));
    }
}

#[tokio::test(start_paused = true)]
async fn a_handlers_error_decides_and_the_error_handler_may_change_it() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let handlers = Handlers::new()
        .on("created", |event| async move {
            match event.id.as_str() {
                "e1" => Err(Nack::new("busy").after(Duration::from_millis(1_500)).into()),
                "e2" => Err(Nack::new("never").give_up().into()),
                _ => Err("no".into()),
            }
        })
        .on_error(|error, event| async move {
            match event.id.as_str() {
                "e3" => Err(Nack::new(format!("{error} stock")).give_up().into()),
                _ => Err::<(), BoxError>(error),
            }
        });
    let consume = Consume::new("orders", "*");
    let (_consumer, sub) = tokio::join!(spoke.consume_with(consume, handlers), link.consuming());
    let expected = [
        options("busy", Some(1_500), false),
        options("never", None, true),
        options("no stock", None, true),
        options("no", None, false),
    ];
    for (token, expected) in (1..).zip(expected) {
        link.claim(sub, token).await;
        assert_eq!(link.nacked().await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_takes_too_long_is_dropped_and_the_event_has_failed() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let alive = Arc::new(());
    let handler = {
        let alive = alive.clone();
        move |_: Event| {
            let alive = alive.clone();
            async move {
                std::future::pending::<()>().await;
                drop(alive);
                Ok::<(), BoxError>(())
            }
        }
    };
    let consume = Consume::new("orders", "*").handler_timeout(Duration::from_secs(5));
    let (consumer, sub) = tokio::join!(spoke.consume(consume, handler), link.consuming());
    let consumer = consumer.unwrap();
    link.claim(sub, 1).await;
    let began = tokio::time::Instant::now();
    let told = link.nacked().await;
    assert_eq!(began.elapsed().as_secs(), 5);
    assert_eq!((told.delay, told.is_final), (None, false));
    assert!(told.reason.starts_with("the handler didn't end within 5s"), "{}", told.reason);
    assert_eq!(Arc::strong_count(&alive), 2, "only the handler itself has one more");
    let (counts, ()) = tokio::join!(consumer.stop(), link.stopped(sub));
    assert_eq!(counts.unwrap().nacked, 1);
}
