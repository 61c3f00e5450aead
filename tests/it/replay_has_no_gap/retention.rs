//! What retention removed.

use eventflow::event::{Position, Uid};

use super::*;
use crate::support::npm::Npm;

/// What retention does to these events: they go, and a row says so.
async fn remove(hub: &TestHub, domain: &str, seqs: &[u64]) {
    let db = Npm::of(hub).await;
    let (first, last, count) = (seqs[0], seqs[seqs.len() - 1], seqs.len());
    let sql = format!(
        "delete from event where domain = ? and id in (select event_id from event_published \
         where seq between {first} and {last})"
    );
    assert_eq!(db.run(&sql, &[domain]).await, count as u64);
    let sql = format!(
        "insert into v1_removed (hub, domain, first_seq, last_seq, events, removed) \
         values (?, ?, {first}, {last}, {count}, utc_timestamp())"
    );
    db.run(&sql, &[&hub.handle.info().id, domain]).await;
}

async fn of(spoke: &Spoke, domain: &'static str, events: usize) -> Vec<u64> {
    let order = || Publish::new(domain, "created", "p");
    let published = spoke.publish_all((0..events).map(|_| order()).collect()).await.unwrap();
    published.iter().map(|published| published.seq).collect()
}

async fn removed(subscription: &mut Subscription) -> (u64, u64, u64) {
    match timeout(PATIENCE, subscription.next()).await.expect("a word in time") {
        Some(Delivery::Removed { from, to, events }) => (from, to, events),
        other => panic!("what was removed, not {other:?}"),
    }
}

#[tokio::test]
async fn what_retention_removed_is_told_before_what_is_left() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let orders = of(&spoke, "orders", 10).await;
    let users = of(&spoke, "users", 3).await;
    remove(&hub, "orders", &orders[2..6]).await;
    let behind = |seq| Position::of(Uid::parse(hub.handle.info().id.clone()).unwrap(), seq);

    let mut subscription = spoke.subscribe_from("orders", "*", Since::All).await.unwrap();
    assert_eq!(removed(&mut subscription).await, (orders[2], orders[5], 4));
    let left = [&orders[..2], &orders[6..]].concat();
    assert_eq!(numbers_to(&mut subscription, orders[9]).await, left);
    // Whoever begins within sees where he is.
    let mut subscription = spoke.subscribe_from("*", "*", behind(orders[3])).await.unwrap();
    assert_eq!(removed(&mut subscription).await, (orders[3] + 1, orders[5], 4));
    assert_eq!(next(&mut subscription).await, orders[6]);
    // It concerns neither who comes later nor who wants another domain.
    let mut subscription = spoke.subscribe_from("orders", "*", behind(orders[5])).await.unwrap();
    assert_eq!(next(&mut subscription).await, orders[6]);
    let mut subscription = spoke.subscribe_from("users", "*", Since::All).await.unwrap();
    assert_eq!(numbers_to(&mut subscription, users[2]).await, users);

    // Several batches are one word.
    remove(&hub, "orders", &orders[7..9]).await;
    remove(&hub, "users", &users[..1]).await;
    let mut subscription = spoke.subscribe_from(">", "*", Since::All).await.unwrap();
    assert_eq!(removed(&mut subscription).await, (orders[2], users[0], 7));
    let left = [&orders[..2], &orders[6..7], &orders[9..], &users[1..]].concat();
    assert_eq!(numbers_to(&mut subscription, users[2]).await, left);

    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_eventflow"));
    command
        .args(["subscribe", "users", "*", "--from", "all", "--count", "2"])
        .env("EVENTFLOW_DATA", hub.data());
    let output = timeout(PATIENCE, command.output()).await.expect("it ends").unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let told = format!(r#"{{"removed":{{"events":1,"from":{0},"to":{0}}}}}"#, users[0]);
    assert_eq!(said.lines().next(), Some(&*told));
    assert_eq!(said.lines().count(), 3, "{said}");
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.contains("1 event numbered") && words.contains("retention"), "{words}");
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn what_retention_removes_meanwhile_is_told_too() {
    let hub = TestHub::with(pace::narrow).await;
    let spoke = hub.spoke().await;
    // Several pages.
    let orders = large(&spoke, 2_000).await;
    let mut raw = hub.v1().await;
    raw.ask(&["subscribe", "1", "1", "orders", "*", r#"{"from":"all"}"#]).await;
    assert_eq!(raw.event().await[2], orders[0].to_string());
    // It has one page at hand, of 4 MiB.
    remove(&hub, "orders", &orders[1_500..1_700]).await;
    let (mut seen, mut gaps) = (vec![orders[0]], Vec::new());
    while seen.last() != orders.last() {
        let record = raw.event().await;
        match &*record[0] {
            "gap" => gaps.push((seen.len(), record[2].clone())),
            _ => seen.push(record[2].parse().unwrap()),
        }
    }
    assert_eq!(seen, [&orders[..1_500], &orders[1_700..]].concat());
    let told = format!(r#"{{"from":{},"to":{},"events":200}}"#, orders[1_500], orders[1_699]);
    assert!(matches!(&*gaps, [(before, gap)] if *gap == told && *before <= 1_500), "{gaps:?}");
    spoke.close().await;
    hub.stop().await;
}
