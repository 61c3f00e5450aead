//! Lost links and killed hubs.

use std::collections::BTreeSet;

use eventflow::spoke::SpokeConfig;

use super::*;
use crate::support::{process::Home, wire::Wire};

#[tokio::test]
async fn a_lost_link_is_no_gap() {
    let hub = TestHub::start().await;
    let wire = Wire::to(hub.handle.info().address).await;
    let config =
        SpokeConfig::from_bundle(hub.bundle()).hub(wire.address.ip().to_string(), wire.address.port());
    let cut = Spoke::connect(config).await.unwrap();
    let steady = hub.spoke().await;
    let mut seqs = some(&steady, 10).await;
    let mut subscription = cut.subscribe_from("orders", "*", Since::All).await.unwrap();
    for seq in &seqs[..5] {
        assert_eq!(next(&mut subscription).await, *seq);
    }
    for round in 1..=3 {
        wire.whole.send_replace(false);
        until("the link is lost", || async {
            cut.status().links_lost == round && cut.status().hub.is_none()
        })
        .await;
        seqs.extend(some(&steady, 10).await);
        wire.whole.send_replace(true);
        until("there is another", || async { cut.status().hub.is_some() }).await;
        seqs.extend(some(&steady, 10).await);
    }
    assert_eq!(numbers_to(&mut subscription, seqs[seqs.len() - 1]).await, seqs[5..]);
    silent(&mut subscription).await;
    steady.close().await;
    cut.close().await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_hub_is_no_gap() {
    let kills = if is_long() { 20 } else { 3 };
    let home = Home::new();
    let mut hub = home.start().await;
    let publisher = home.spoke().await;
    let reader = home.spoke().await;
    let mut subscription = reader.subscribe_from("orders", "*", Since::All).await.unwrap();
    let mut published = BTreeSet::new();
    let mut seen = Vec::new();
    for _ in 0..kills {
        let mut pending = Vec::new();
        for _ in 0..500 {
            pending.push(publisher.publish_later(Publish::new("orders", "created", "p")).await.unwrap());
        }
        // Some of them were seen, the others are on their way.
        let goal = seen.len() + fastrand::usize(1..400);
        while seen.len() < goal {
            seen.push(next(&mut subscription).await);
        }
        hub.kill().await;
        hub = home.start().await;
        for pending in pending {
            published.insert(pending.await.unwrap().seq);
        }
    }
    let last = some(&publisher, 1).await[0];
    published.insert(last);
    seen.extend(numbers_to(&mut subscription, last).await);
    let published: Vec<_> = published.into_iter().collect();
    assert!(seen == published, "{} events instead of {}", seen.len(), published.len());
    assert!(reader.status().links_lost >= kills, "{:?}", reader.status());
    reader.close().await;
    publisher.close().await;
    hub.signal("TERM");
    assert_eq!(hub.ended().await.code(), Some(0));
    assert!(!home.words().contains("panicked"), "{}", home.words());
}
