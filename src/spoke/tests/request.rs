//! Requests and their answers; publishing to wait for the outcome.

use super::*;
use crate::{
    spoke::{RequestError, WaitError},
    wire::{Ended, WaitFor},
};

#[tokio::test(start_paused = true)]
async fn a_request_is_published_and_then_its_answer_is_waited_for_within_one_time() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let (answer, ()) = tokio::join!(spoke.request(publish("q1"), Duration::from_secs(10)), async {
        let (req, id) = link.publish().await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        link.committed(req, true, 1).await;
        let Request::Wait { req, wait } = link.request().await else { panic!("expected a wait") };
        assert_eq!(wait.wanted, WaitFor::Answer { rid: id });
        assert!(wait.timeout <= Duration::from_secs(7), "{:?}", wait.timeout);
        link.found(req, "a1").await;
    });
    assert_eq!(answer, Ok(event("a1")));
}

#[tokio::test(start_paused = true)]
async fn an_error_says_whether_the_request_is_published() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let timeout = Duration::from_secs(2);
    let (answer, req) = tokio::join!(spoke.request(publish("q1"), timeout), link.publish());
    assert!(matches!(answer, Err(RequestError::Publish(_))), "{answer:?}");
    link.committed(req.0, true, 1).await;

    let (answer, ()) = tokio::join!(spoke.request(publish("q2"), timeout), async {
        let (req, _) = link.publish().await;
        link.committed(req, true, 7).await;
    });
    let error = answer.unwrap_err();
    assert_eq!((error.code(), error.is_retryable()), (code::WAIT_TIMEOUT, true));
    let RequestError::Unanswered { id, published, error: WaitError::TimedOut { .. } } = error else {
        panic!("expected a time-out: {error:?}")
    };
    assert_eq!((id.as_str(), published.seq), ("q2", 7));
}

#[tokio::test(start_paused = true)]
async fn a_publish_and_its_outcome_come_together() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let dead = Ended { state: "dead".to_owned(), consumer: None, ended: 2000, error: "no stock".to_owned() };
    let (both, ()) = tokio::join!(spoke.publish_and_wait(publish("a"), Duration::from_secs(10)), async {
        let (req, _) = link.publish().await;
        link.committed(req, true, 7).await;
        let (req, id, _) = link.outcome().await;
        assert_eq!(id.as_str(), "a");
        link.ok(req, Answer::Outcome(Some(Box::new(dead.clone())))).await;
    });
    assert_eq!(both, Ok((Published::fresh(1000, 7), dead)));
}

#[tokio::test(start_paused = true)]
async fn a_reply_names_the_event_that_it_answers() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let question = event("q1");
    let elsewhere = Publish::reply_to(&question, "answered").domain("replies").pid("other");
    let replies = [
        (Publish::reply_to(&question, "answered"), "orders", "order-1"),
        (elsewhere, "replies", "other"),
        (Publish::new("replies", "answered", "p"), "replies", "p"),
    ];
    for (reply, domain, pid) in replies {
        let (done, ()) = tokio::join!(spoke.reply(&question, reply), async {
            let Request::Publish { req, event, .. } = link.request().await else {
                panic!("expected a publish")
            };
            assert_eq!(event.rid.as_ref().map(|rid| rid.as_str()), Some("q1"));
            assert_eq!((event.domain.as_str(), event.pid.as_str()), (domain, pid));
            link.committed(req, true, 1).await;
        });
        done.unwrap();
    }
}
