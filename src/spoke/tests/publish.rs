//! Publishing: acks, doubt, refusals, deadlines, the window.

use super::*;
use crate::spoke::PublishError;

#[tokio::test(start_paused = true)]
async fn a_publish_is_acked_and_its_id_is_made() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let pending = spoke.publish_later(Publish::new("orders", "created", "order-1")).await.unwrap();
    let (req, id) = link.publish().await;
    assert_eq!(&id, pending.id());
    assert_eq!(id.len(), 26);
    link.committed(req, true, 7).await;
    assert_eq!(pending.await, Ok(Published::fresh(1000, 7)));
}

#[tokio::test(start_paused = true)]
async fn what_a_lost_link_leaves_in_doubt_is_sent_again_once_in_order_under_the_same_id() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let mut pending = Vec::new();
    for id in ["a", "b", "c"] {
        pending.push(spoke.publish_later(publish(id)).await.unwrap());
    }
    let (first, _) = link.publish().await;
    link.publish().await;
    link.publish().await;
    link.committed(first, true, 1).await;
    let acked = pending.remove(0).await.unwrap();
    assert!(acked.fresh);
    drop(link);

    let mut link = hub.relinked().await;
    for (expected, fresh) in [("b", false), ("c", true)] {
        let (req, id) = link.publish().await;
        assert_eq!(id.as_str(), expected);
        link.committed(req, fresh, 2).await;
    }
    link.silence().await;
    assert!(!pending.remove(0).await.unwrap().fresh, "the hub had it already");
    assert!(pending.remove(0).await.unwrap().fresh);
    let status = spoke.status();
    assert_eq!((status.links_lost, status.publishes_retried, status.publishes_in_flight), (1, 2, 0));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_for_now_is_tried_again_and_keeps_the_order() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let first = spoke.publish_later(publish("a")).await.unwrap();
    let second = spoke.publish_later(publish("b")).await.unwrap();
    let (a, _) = link.publish().await;
    let (b, _) = link.publish().await;
    link.send(Reply::Err { req: a, fault: busy(500) }).await;
    link.send(Reply::Err { req: b, fault: busy(500) }).await;
    let began = tokio::time::Instant::now();
    for expected in ["a", "b"] {
        let (req, id) = link.publish().await;
        assert_eq!(id.as_str(), expected);
        link.committed(req, true, 1).await;
    }
    assert!(began.elapsed() >= Duration::from_millis(500));
    assert!(first.await.unwrap().fresh && second.await.unwrap().fresh);
}

#[tokio::test(start_paused = true)]
async fn a_final_refusal_is_told_at_once() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let pending = spoke.publish_later(publish("a")).await.unwrap();
    let (req, _) = link.publish().await;
    let fault = Fault::refused(code::EVENT_CONFLICT, "the event a exists with another pid");
    link.send(Reply::Err { req, fault: fault.clone() }).await;
    let error = pending.await.unwrap_err();
    assert_eq!(error, PublishError::Refused(fault));
    assert_eq!((error.code(), error.is_retryable()), (code::EVENT_CONFLICT, false));
    link.silence().await;
}

#[tokio::test(start_paused = true)]
async fn at_its_deadline_a_publish_fails_with_the_last_fault() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let pending = spoke.publish_later(publish("a").deadline(Duration::from_secs(3))).await.unwrap();
    let (req, _) = link.publish().await;
    link.send(Reply::Err { req, fault: busy(60_000) }).await;
    let waited = Duration::from_secs(3);
    assert_eq!(pending.await, Err(PublishError::TimedOut { waited, last: Some(busy(60_000)) }));
    assert_eq!(spoke.status().publishes_waiting, 0);
}

#[tokio::test(start_paused = true)]
async fn the_window_is_kept_by_waiting_and_a_late_publish_still_counts() {
    let mut hub = FakeHub::new();
    let narrow = LinkLimits { window_requests: 2, ..limits() };
    let (spoke, mut link) = hub.connected(config(), narrow).await;
    let first = spoke.publish_later(publish("a").deadline(Duration::from_secs(1))).await.unwrap();
    let _second = spoke.publish_later(publish("b")).await.unwrap();
    let _third = spoke.publish_later(publish("c")).await.unwrap();
    let (a, _) = link.publish().await;
    let (b, _) = link.publish().await;
    assert_eq!(first.await.unwrap_err().code(), code::TIMEOUT);
    // The hub has both still: nothing more may come.
    let more = timeout(Duration::from_secs(10), link.next());
    assert!(more.await.is_err());
    link.committed(b, true, 1).await;
    assert_eq!(link.publish().await.1.as_str(), "c");
    link.committed(a, true, 2).await;
    assert_eq!(spoke.status().publishes_retried, 0);
}

#[tokio::test(start_paused = true)]
async fn data_over_the_hubs_limit_never_reaches_the_hub() {
    let mut hub = FakeHub::new();
    let small = LinkLimits { data_bytes: 10, ..limits() };
    let (spoke, mut link) = hub.connected(config(), small).await;
    let error = spoke.publish(publish("a").data("more than ten bytes").unwrap()).await.unwrap_err();
    assert_eq!(error.code(), code::EVENT_TOO_LARGE);
    let error = spoke.publish(Publish::new("a.*", "created", "order-1")).await.unwrap_err();
    assert_eq!(error.code(), code::INVALID_DOMAIN);
    link.silence().await;
}

#[tokio::test(start_paused = true)]
async fn a_full_publish_buffer_makes_the_caller_wait() {
    let mut hub = FakeHub::new();
    let mut config = config();
    config.publish_buffer = 600;
    let (spoke, mut link) = hub.connected(config, limits()).await;
    let first = spoke.publish_later(publish("a")).await.unwrap();
    let second = spoke.publish_later(publish("b"));
    tokio::pin!(second);
    assert!(timeout(Duration::from_secs(5), &mut second).await.is_err());
    let (req, _) = link.publish().await;
    link.committed(req, true, 1).await;
    assert!(first.await.is_ok());
    let second = second.await.unwrap();
    let (req, _) = link.publish().await;
    link.committed(req, true, 2).await;
    assert_eq!(second.await.unwrap().seq, 2);
}

#[tokio::test(start_paused = true)]
async fn through_many_lost_links_each_publish_arrives_in_order_and_is_acked() {
    let mut hub = FakeHub::new();
    let (spoke, mut link) = hub.connected(config(), limits()).await;
    let publisher = spoke.clone();
    let publishing = tokio::spawn(async move {
        let mut pending = Vec::new();
        for n in 0..2000 {
            let publish = publish(&format!("e{n}")).deadline(Duration::from_secs(3600));
            pending.push(publisher.publish_later(publish).await.unwrap());
        }
        for pending in pending {
            pending.await.unwrap();
        }
    });
    // What the hub has, in the order in which it first came.
    let mut stored: Vec<String> = Vec::new();
    let mut links = 1;
    while stored.len() < 2000 {
        for n in 0..40 + links {
            let (req, id) = link.publish().await;
            let fresh = !stored.contains(&id.to_string());
            if fresh {
                stored.push(id.to_string());
            }
            // Some acks are still on their way when the link is lost.
            if n % 3 != links % 3 {
                link.committed(req, fresh, stored.len() as u64).await;
            }
            if stored.len() == 2000 {
                break;
            }
        }
        drop(link);
        link = hub.relinked().await;
        links += 1;
    }
    while !publishing.is_finished() {
        let Ok((req, id)) = timeout(Duration::from_secs(1), link.publish()).await else { break };
        assert!(stored.contains(&id.to_string()), "nothing is new any more");
        link.committed(req, false, 0).await;
    }
    publishing.await.unwrap();
    assert_eq!(spoke.status().links_lost, links - 1);
    assert!(links > 10);
    assert_eq!(stored, (0..2000).map(|n| format!("e{n}")).collect::<Vec<_>>());
}
