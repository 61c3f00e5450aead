//! Consumers of all hubs.

use super::*;
use crate::spoke::{Claims, Consume};

async fn claims(two: &mut Two) -> (Claims, u32, u32) {
    let consume = Consume::new("orders", "created").credit(2);
    let (claims, a, b) = tokio::join!(two.spoke.claims(consume), two.to_a.consuming(), two.to_b.consuming());
    (claims.unwrap(), a, b)
}

#[tokio::test(start_paused = true)]
async fn claims_of_all_hubs_come_in_one_lane_and_are_settled_where_they_came_from() {
    let mut two = two().await;
    let (mut claims, a, b) = claims(&mut two).await;
    // As many from each as was asked, under the same tokens.
    for token in [1, 2] {
        two.to_a.claim(a, token).await;
        two.to_b.claim(b, token).await;
    }
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(timeout(PATIENCE, claims.next()).await.unwrap().unwrap());
    }
    let settling = async {
        for claim in held {
            claim.ack().await.unwrap();
        }
    };
    let of_a = async { [two.to_a.acked().await, two.to_a.acked().await] };
    let of_b = async { [two.to_b.acked().await, two.to_b.acked().await] };
    let ((), mut of_a, mut of_b) = tokio::join!(settling, of_a, of_b);
    of_a.sort_unstable();
    of_b.sort_unstable();
    assert_eq!((of_a, of_b), ([1, 2], [1, 2]));
    let (stopped, ..) = tokio::join!(claims.stop(), two.to_a.stopped(a), two.to_b.stopped(b));
    stopped.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lost_link_takes_only_its_own_claims_along() {
    let mut two = two().await;
    let (mut claims, a, b) = claims(&mut two).await;
    two.to_b.claim(b, 1).await;
    let lost = timeout(PATIENCE, claims.next()).await.unwrap().unwrap();
    two.to_a.claim(a, 1).await;
    two.to_b.claim(b, 2).await;
    two.spoke.status_when(|status| status.claims_held == 3).await;
    two.b.away();
    drop(two.to_b);
    lost.lost().await;
    assert!(lost.ack().await.is_err());
    let kept = timeout(PATIENCE, claims.next()).await.unwrap().unwrap();
    let (acked, token) = tokio::join!(kept.ack(), two.to_a.acked());
    assert_eq!((acked, token), (Ok(()), 1));
    // It is registered again when it is back.
    two.b.back();
    let mut to_b = two.b.linked(&[]).await;
    let b = to_b.consuming().await;
    to_b.claim(b, 7).await;
    let again = timeout(PATIENCE, claims.next()).await.unwrap().unwrap();
    let (acked, token) = tokio::join!(again.ack(), to_b.acked());
    assert_eq!((acked, token), (Ok(()), 7));
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_stops_gets_back_only_what_it_gave() {
    let mut two = two().await;
    let (mut claims, a, b) = claims(&mut two).await;
    two.to_a.claim(a, 1).await;
    two.to_b.claim(b, 2).await;
    two.spoke.status_when(|status| status.claims_held == 2).await;
    two.to_b.send(Reply::Drain).await;
    assert!(matches!(two.to_b.request().await, Request::Release { token: 2, .. }));
    let kept = timeout(PATIENCE, claims.next()).await.unwrap().unwrap();
    assert_eq!(kept.seq(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_final_refusal_of_one_hub_ends_the_consumer_and_an_absent_one_does_not() {
    let Two { spoke, mut b, mut to_a, to_b, .. } = two().await;
    b.away();
    drop(to_b);
    up(&spoke, 1).await;
    let consume = Consume::new("orders", "created").group("billing");
    let (claims, a) = tokio::join!(spoke.claims(consume), to_a.consuming());
    let mut claims = claims.unwrap();
    b.back();
    let mut to_b = b.linked(&[]).await;
    let Request::Consume { req, .. } = to_b.request().await else { panic!("expected a consume") };
    to_b.refuse(req, code::INVALID_GROUP).await;
    assert!(timeout(PATIENCE, claims.next()).await.unwrap().is_none());
    assert_eq!(claims.fault().unwrap().code, code::INVALID_GROUP);
    drop(claims);
    to_a.stopped(a).await;
}

#[tokio::test(start_paused = true)]
async fn while_the_spoke_closes_a_handler_may_publish_at_any_hub() {
    let Two { spoke, mut to_a, mut to_b, .. } = two().await;
    let publisher = spoke.clone();
    let handler = move |event: Event| {
        let publisher = publisher.clone();
        async move {
            for n in 0..8 {
                let pid = format!("order-{n}");
                publisher.publish(Publish::new("orders", "done", pid)).await?;
            }
            drop(event);
            Ok::<(), crate::spoke::PublishError>(())
        }
    };
    let consume = Consume::new("orders", "created");
    let (consumer, sub, _) =
        tokio::join!(spoke.consume(consume, handler), to_a.consuming(), to_b.consuming());
    let _consumer = consumer.unwrap();
    to_a.claim(sub, 1).await;
    spoke.status_when(|status| status.publishes_in_flight == 1).await;
    let closing = tokio::spawn({
        let spoke = spoke.clone();
        async move { spoke.close().await }
    });
    let serving = async |mut link: FakeLink| {
        let mut published = 0;
        while let Some(request) = link.next().await {
            let req = request.req().unwrap_or_default();
            match request {
                Request::Publish { .. } => {
                    published += 1;
                    link.committed(req, true, 1).await;
                }
                _ => link.ok(req, Answer::Done).await,
            }
        }
        published
    };
    let (at_a, at_b) = tokio::join!(serving(to_a), serving(to_b));
    assert!(closing.await.unwrap().is_clean());
    assert_eq!(at_a + at_b, 8);
    assert!(at_a > 0 && at_b > 0, "{at_a} and {at_b}");
}
