//! Which hub gets a publish, and what becomes of it when that is gone.

use super::*;
use crate::spoke::{Pending, PublishError};

/// A publish of this process.
fn of(pid: &str, id: &str) -> Publish {
    Publish::new("orders", "created", pid).id(id)
}

/// Processes of the one hub and of the other.
async fn processes(two: &mut Two) -> (String, String) {
    let (mut at_a, mut at_b) = (None, None);
    for n in 0.. {
        let pid = format!("order-{n}");
        let pending = two.spoke.publish_later(of(&pid, &format!("probe-{n}"))).await.unwrap();
        let (link, home) = tokio::select! {
            (req, _) = two.to_a.publish() => ((&mut two.to_a, req), &mut at_a),
            (req, _) = two.to_b.publish() => ((&mut two.to_b, req), &mut at_b),
        };
        link.0.committed(link.1, true, 1).await;
        pending.await.unwrap();
        home.get_or_insert(pid);
        if let (Some(at_a), Some(at_b)) = (&at_a, &at_b) {
            return (at_a.clone(), at_b.clone());
        }
    }
    unreachable!("one hub gets all processes")
}

async fn several(spoke: &Spoke, pid: &str) -> Vec<Pending> {
    let mut pending = Vec::new();
    for n in 0..5 {
        pending.push(spoke.publish_later(of(pid, &format!("{pid}-{n}"))).await.unwrap());
    }
    pending
}

async fn taken(link: &mut FakeLink, pid: &str, is_committed: bool) {
    for n in 0..5 {
        let (req, id) = link.publish().await;
        assert_eq!(id.as_str(), format!("{pid}-{n}"), "in the order of the calls");
        if is_committed {
            link.committed(req, true, n).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_events_of_a_process_go_to_one_hub_and_on_to_the_other_when_that_is_gone() {
    let mut two = two().await;
    let (at_a, at_b) = processes(&mut two).await;
    let (a, b) = (several(&two.spoke, &at_a).await, several(&two.spoke, &at_b).await);
    taken(&mut two.to_a, &at_a, false).await;
    taken(&mut two.to_b, &at_b, true).await;
    for pending in b {
        pending.await.unwrap();
    }
    // Nothing of it was acknowledged.
    two.a.away();
    drop(two.to_a);
    taken(&mut two.to_b, &at_a, true).await;
    for pending in a {
        pending.await.unwrap();
    }
    assert_eq!(two.spoke.status().publishes_retried, 5);

    // It comes back, and has its processes again.
    two.a.back();
    let mut to_a = two.a.linked(&[]).await;
    up(&two.spoke, 2).await;
    let pending = two.spoke.publish_later(of(&at_a, "again")).await.unwrap();
    let (req, _) = to_a.publish().await;
    to_a.committed(req, true, 9).await;
    pending.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_stops_gets_nothing_new_and_what_it_has_not_got_yet_goes_elsewhere() {
    let mut two = two().await;
    let (at_a, _) = processes(&mut two).await;
    let first = two.spoke.publish_later(of(&at_a, "first")).await.unwrap();
    let (req, _) = two.to_a.publish().await;
    two.to_a.send(Reply::Drain).await;
    two.to_a.send(Reply::Ping(1)).await;
    assert_eq!(two.to_a.request().await, Request::Pong(1), "it has heard of it");
    let second = two.spoke.publish_later(of(&at_a, "second")).await.unwrap();
    let (other, id) = two.to_b.publish().await;
    assert_eq!(id.as_str(), "second");
    two.to_b.committed(other, true, 1).await;
    second.await.unwrap();
    // What is under way there may still be done there; what isn't goes on at once.
    two.to_a.send(Reply::Err { req, fault: busy(60_000) }).await;
    let (req, id) = two.to_b.publish().await;
    assert_eq!(id.as_str(), "first");
    two.to_b.committed(req, true, 2).await;
    first.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn without_any_link_publishes_wait_for_the_first_that_comes_or_for_their_deadline() {
    let mut two = two().await;
    let (at_a, _) = processes(&mut two).await;
    two.a.away();
    two.b.away();
    drop((two.to_a, two.to_b));
    up(&two.spoke, 0).await;
    let late = two.spoke.publish_later(of(&at_a, "late").deadline(Duration::from_secs(5))).await.unwrap();
    let pending = several(&two.spoke, &at_a).await;
    assert_eq!(two.spoke.status().publishes_waiting, 6);
    let began = tokio::time::Instant::now();
    let error = late.await.unwrap_err();
    assert!(matches!(error, PublishError::TimedOut { .. }), "{error:?}");
    assert_eq!(began.elapsed().as_secs(), 5);
    two.b.back();
    let mut to_b = two.b.linked(&[]).await;
    taken(&mut to_b, &at_a, true).await;
    for pending in pending {
        pending.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn closing_without_a_link_tells_who_waits() {
    let mut two = two().await;
    two.a.away();
    two.b.away();
    drop((two.to_a, two.to_b));
    up(&two.spoke, 0).await;
    let pending = two.spoke.publish_later(of("order-1", "left")).await.unwrap();
    assert_eq!(two.spoke.close().await.publishes, 1);
    assert_eq!(pending.await.unwrap_err().code(), code::CLOSED);
    assert_eq!(two.spoke.publish(of("order-1", "later")).await.unwrap_err().code(), code::CLOSED);
}
