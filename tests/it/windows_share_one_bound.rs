//! Promise: what waits in memory for consumers has one bound, however many groups and patterns there are; nobody is starved
//! by it, and nothing is lost.

use std::{collections::BTreeSet, sync::Arc};

use eventflow::spoke::{Claims, Consume, Publish};
use tokio::{sync::Barrier, time::timeout};

use crate::support::{PATIENCE, TestHub, until};

const GROUPS: usize = 24;
const EVENTS: usize = 40;
const DATA: usize = 16 * 1024;
const BOUND: usize = 256 * 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_stalled_consumers_hold_no_more_than_the_bound_and_all_get_everything() {
    let hub = TestHub::with(|config| config.limits.pending_bytes = BOUND as u64).await;
    let spoke = hub.spoke().await;
    let mut consumers = Vec::new();
    for n in 0..GROUPS {
        let consume = Consume::new("orders", "*").group(format!("g{n}")).credit(1);
        consumers.push(spoke.claims(consume).await.unwrap());
    }
    let most = || hub.handle.metrics().hub.windows_bytes;
    // One event of each binding, beside the bound; an event weighs a little more than its data.
    let allowed = i64::try_from(BOUND + GROUPS * (DATA + 1_024)).unwrap();
    let data = "x".repeat(DATA);
    for n in 0..EVENTS {
        let event = Publish::new("orders", "created", "p").id(format!("e{n:02}")).data(&data).unwrap();
        spoke.publish(event).await.unwrap();
        assert!(most() <= allowed, "{} of {allowed} bytes", most());
    }
    until("the room is used up", || async { hub.handle.metrics().hub.windows_refused > 0 }).await;
    assert!(most() > 0 && most() <= allowed, "{} of {allowed} bytes", most());

    // All take what they want at once, each in order; none waits for another to end.
    let together = Arc::new(Barrier::new(GROUPS));
    let work = consumers.into_iter().map(|claims| tokio::spawn(take_all(claims, together.clone())));
    for worker in work.collect::<Vec<_>>() {
        worker.await.unwrap();
        assert!(most() <= allowed, "{} of {allowed} bytes", most());
    }
    until("nothing waits", || async { hub.handle.metrics().hub.windows_bytes == 0 }).await;
    spoke.close().await;
    hub.stop().await;
}

/// Takes half of the events, waits until everybody has, and takes the rest.
async fn take_all(mut claims: Claims, together: Arc<Barrier>) {
    let mut seen = BTreeSet::new();
    for n in 0..EVENTS {
        if n == EVENTS / 2 {
            timeout(PATIENCE, together.wait()).await.expect("nobody is starved");
        }
        let claim = timeout(PATIENCE, claims.next()).await.expect("an event in time").unwrap();
        assert!(seen.insert(claim.event().id.to_string()), "once");
        claim.ack().await.unwrap();
    }
    assert_eq!(seen.len(), EVENTS);
}
