//! Promise: a group that asks for it is handed the events of each process one at a time, in the order of the hub.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use eventflow::spoke::{Claim, Claims, Consume, GroupChange, Nack, Publish, Spoke};
use tokio::task::JoinSet;

use crate::support::{PATIENCE, TestHub, process::Home, until};

const GROUP: &str = "ledger";

/// The group keeps the order of keys and tries again soon.
async fn in_order(spoke: &Spoke, dead_blocks: bool, attempts: u32) {
    let soon = Duration::from_millis(50);
    let change = GroupChange::new().key_order(true).dead_blocks(dead_blocks).max_attempts(attempts);
    spoke.group(GROUP).set(change.delay(soon).max_delay(soon)).await.unwrap();
}

fn orders() -> Consume {
    Consume::new("orders", "*").group(GROUP).from(eventflow::spoke::StartAt::All)
}

async fn publish(spoke: &Spoke, pid: &str, id: &str) {
    spoke.publish(Publish::new("orders", "changed", pid).id(id)).await.unwrap();
}

async fn next(claims: &mut Claims) -> Claim {
    tokio::time::timeout(PATIENCE, claims.next()).await.expect("a claim in time").unwrap()
}

/// The next claim, which is this attempt of this event.
async fn take(claims: &mut Claims, id: &str, attempt: u32) -> Claim {
    let claim = next(claims).await;
    assert_eq!((claim.event().id.as_str(), claim.attempt()), (id, attempt));
    claim
}

#[tokio::test]
async fn an_event_with_three_attempts_holds_back_the_next_of_its_process_and_no_other() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    in_order(&spoke, false, 5).await;
    let mut claims = spoke.claims(orders()).await.unwrap();
    publish(&spoke, "a", "a1").await;
    publish(&spoke, "a", "a2").await;
    publish(&spoke, "b", "b1").await;
    let first = take(&mut claims, "a1", 1).await;
    take(&mut claims, "b1", 1).await.ack().await.unwrap();
    first.nack("not yet").await.unwrap();
    publish(&spoke, "c", "c1").await;
    publish(&spoke, "a", "a3").await;
    // `c1` comes while `a1` waits or, if publishing took longer than that, while it is in hands again.
    let mut two = [next(&mut claims).await, next(&mut claims).await];
    two.sort_by_key(|claim| claim.event().id.to_string());
    let [again, other] = two;
    let which = |claim: &Claim| (claim.event().id.to_string(), claim.attempt());
    assert_eq!([which(&again), which(&other)], [("a1".to_owned(), 2), ("c1".to_owned(), 1)]);
    other.ack().await.unwrap();
    again.nack("not yet").await.unwrap();
    take(&mut claims, "a1", 3).await.ack().await.unwrap();
    take(&mut claims, "a2", 1).await.release().await.unwrap();
    take(&mut claims, "a2", 1).await.ack().await.unwrap();
    take(&mut claims, "a3", 1).await.nack(Nack::new("never").give_up()).await.unwrap();
    publish(&spoke, "a", "a4").await;
    take(&mut claims, "a4", 1).await.ack().await.unwrap();
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn a_dead_event_that_blocks_holds_its_process_until_it_is_redriven_or_deleted() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    in_order(&spoke, true, 1).await;
    let mut claims = spoke.claims(orders()).await.unwrap();
    for id in ["a1", "a2", "a3", "b1"] {
        publish(&spoke, &id[..1], id).await;
    }
    take(&mut claims, "a1", 1).await.nack("broken").await.unwrap();
    take(&mut claims, "b1", 1).await.ack().await.unwrap();
    spoke.close().await;

    // The next start knows it.
    let hub = TestHub::on(hub.stop().await, |_| {}).await;
    let spoke = hub.spoke().await;
    let mut claims = spoke.claims(orders()).await.unwrap();
    publish(&spoke, "b", "b2").await;
    take(&mut claims, "b2", 1).await.ack().await.unwrap();
    assert!(spoke.group(GROUP).redrive("a1").await.unwrap());
    take(&mut claims, "a1", 1).await.ack().await.unwrap();
    take(&mut claims, "a2", 1).await.nack("broken").await.unwrap();
    publish(&spoke, "b", "b3").await;
    take(&mut claims, "b3", 1).await.ack().await.unwrap();
    spoke.delete("a2").await.unwrap();
    take(&mut claims, "a3", 1).await.nack("broken").await.unwrap();

    // Without it, the dead hold back nobody; one that is redriven is the first again.
    publish(&spoke, "a", "a4").await;
    in_order(&spoke, false, 1).await;
    let later = take(&mut claims, "a4", 1).await;
    assert!(spoke.group(GROUP).redrive("a3").await.unwrap());
    publish(&spoke, "a", "a5").await;
    publish(&spoke, "b", "b4").await;
    take(&mut claims, "b4", 1).await.ack().await.unwrap();
    later.ack().await.unwrap();
    take(&mut claims, "a3", 1).await.ack().await.unwrap();
    take(&mut claims, "a5", 1).await.ack().await.unwrap();
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn the_order_is_asked_for_while_events_are_in_hands() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let mut claims = spoke.claims(orders().credit(3)).await.unwrap();
    for id in ["a1", "a2", "b1", "a3", "a4", "b2"] {
        publish(&spoke, &id[..1], id).await;
    }
    let [a1, a2, b1] = [next(&mut claims).await, next(&mut claims).await, next(&mut claims).await];
    in_order(&spoke, false, 5).await;
    a2.ack().await.unwrap();
    b1.ack().await.unwrap();
    take(&mut claims, "b2", 1).await.ack().await.unwrap();
    a1.ack().await.unwrap();
    let third = take(&mut claims, "a3", 1).await;
    spoke.group(GROUP).set(GroupChange::new().key_order(false)).await.unwrap();
    take(&mut claims, "a4", 1).await.ack().await.unwrap();
    third.ack().await.unwrap();
    spoke.close().await;
    hub.stop().await;
}

/// What handlers saw: who is at work for which process, and in which order their events were done first.
#[derive(Default)]
struct Seen {
    at_work: HashMap<String, String>,
    done: BTreeMap<String, Vec<String>>,
    first: HashSet<String>,
}

const PROCESSES: usize = 50;
const EVENTS: usize = 40;

/// Takes claims until the link ends: does most of them, fails some, and leaves with some.
async fn work(home: Arc<Home>, seen: Arc<Mutex<Seen>>, mut dice: fastrand::Rng) {
    let Ok(spoke) = Spoke::connect(home.spoke_config()).await else { return };
    let Ok(mut claims) = spoke.claims(orders().credit(8)).await else { return };
    while let Some(claim) = claims.next().await {
        let (pid, id) = (claim.event().pid.to_string(), claim.event().id.to_string());
        {
            let mut seen = seen.lock().unwrap();
            let other = seen.at_work.insert(pid.clone(), id.clone());
            assert!(other.is_none(), "{id} is handed out while {other:?} is in hands");
        }
        tokio::task::yield_now().await;
        let choice = dice.u8(..);
        // Whoever hears of the next one hears it after this.
        let leave = |done: bool| {
            let mut seen = seen.lock().unwrap();
            seen.at_work.remove(&pid);
            if done && seen.first.insert(id.clone()) {
                seen.done.entry(pid.clone()).or_default().push(id.clone());
            }
        };
        match choice {
            0..20 => {
                leave(false);
                _ = claim.nack("not now").await;
            }
            20..24 => {
                // Its handler is stopped with the link.
                leave(false);
                break;
            }
            24..40 => {
                leave(false);
                _ = claim.release().await;
            }
            _ => {
                leave(true);
                _ = claim.ack().await;
            }
        }
        if claims.fault().is_some() {
            break;
        }
    }
    // Claims that nobody looked at yet go back with the link.
    drop(claims);
    spoke.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_process_is_handled_in_order_whatever_fails_and_ends() {
    let home = Arc::new(Home::new());
    let mut hub = home.start().await;
    let spoke = home.spoke().await;
    in_order(&spoke, false, 100).await;
    drop(spoke.claims(orders()).await.unwrap());
    let mut sent: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut batch = Vec::new();
    for nth in 0..EVENTS {
        for process in 0..PROCESSES {
            let (pid, id) = (format!("p{process:02}"), format!("p{process:02}-{nth:02}"));
            batch.push(Publish::new("orders", "changed", pid.clone()).id(id.clone()));
            sent.entry(pid).or_default().push(id);
        }
    }
    for part in batch.chunks(500) {
        spoke.publish_all(part.to_vec()).await.unwrap();
    }

    let seen = Arc::new(Mutex::new(Seen::default()));
    let mut dice = fastrand::Rng::with_seed(11);
    let mut workers = JoinSet::new();
    let mut killed = false;
    let all = PROCESSES * EVENTS;
    let deadline = tokio::time::Instant::now() + 2 * PATIENCE;
    while seen.lock().unwrap().first.len() < all {
        assert!(tokio::time::Instant::now() < deadline, "{} are done", seen.lock().unwrap().first.len());
        while workers.len() < 6 {
            workers.spawn(work(home.clone(), seen.clone(), dice.fork()));
        }
        if !killed && seen.lock().unwrap().first.len() > all / 2 {
            killed = true;
            hub.kill().await;
            hub = home.start().await;
        }
        match tokio::time::timeout(Duration::from_millis(20), workers.join_next()).await {
            Ok(Some(ended)) => ended.expect("a handler saw the order kept"),
            _ => continue,
        }
    }
    workers.abort_all();
    while workers.join_next().await.is_some() {}
    assert!(killed);
    assert_eq!(seen.lock().unwrap().done, sent);
    until("all is settled", || async {
        let stands = spoke.group(GROUP).backlog().await.unwrap();
        (stands.pending, stands.in_flight, stands.retrying) == (Some(0), 0, 0)
    })
    .await;
    spoke.close().await;
    hub.kill().await;
}
