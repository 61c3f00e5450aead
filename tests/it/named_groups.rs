//! Promise: each named group gets every event that it wants, once, with an outcome of its own, whoever else wants it
//! and whether it is there or not.

mod changes;
mod limits;
mod passed_over;
mod removal;
mod starts;

use std::{collections::BTreeSet, time::Duration};

use eventflow::{
    spoke::{Claims, Consume, Publish, Spoke},
    wire::Backlog,
};

use serde_json::Value;

use crate::support::{PATIENCE, TestHub, admin::Admin, process::Home, until};

/// Publishes these as events `created` of the domain `orders`, in order.
async fn publish(spoke: &Spoke, ids: impl IntoIterator<Item = String>) {
    for id in ids {
        let publish = Publish::new("orders", "created", format!("order-{id}")).id(id);
        spoke.publish(publish).await.unwrap();
    }
}

fn ids(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{prefix}{n:03}")).collect()
}

/// A consumer of all orders in this group.
fn orders(group: &str) -> Consume {
    Consume::new("orders", "*").group(group)
}

/// Takes so many claims and acks each. Their ids, in the order in which they came.
async fn take(claims: &mut Claims, count: usize) -> Vec<String> {
    let mut taken = Vec::new();
    while taken.len() < count {
        let claim = tokio::time::timeout(PATIENCE, claims.next()).await.expect("a claim in time").unwrap();
        taken.push(claim.event().id.to_string());
        claim.ack().await.unwrap();
    }
    taken
}

async fn standing(spoke: &Spoke, group: &str) -> Backlog {
    spoke.group(group).backlog().await.unwrap()
}

/// Waits until nothing of the group waits or is held, and that is known.
async fn settled(spoke: &Spoke, group: &str) {
    until("all is settled", || async {
        let stands = standing(spoke, group).await;
        (stands.pending, stands.in_flight) == (Some(0), 0)
    })
    .await;
}

fn set(ids: &[String]) -> BTreeSet<String> {
    ids.iter().cloned().collect()
}

#[tokio::test]
async fn each_group_gets_every_event_once_and_has_an_outcome_of_its_own() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let mut billing = spoke.claims(orders("billing")).await.unwrap();
    // Two bindings of one group that match an event are one delivery.
    let mut mail = spoke.claims(orders("mail")).await.unwrap();
    let mut also_mail = spoke.claims(Consume::new("*", "created").group("mail")).await.unwrap();
    let mut default = spoke.claims(Consume::new("orders", "*")).await.unwrap();
    let sent = ids("e", 40);
    publish(&spoke, sent.clone()).await;

    assert_eq!(take(&mut billing, 40).await, sent, "in the order of the hub");
    assert_eq!(set(&take(&mut default, 40).await), set(&sent));
    let mut both = Vec::new();
    while both.len() < 40 {
        let claim = tokio::select! {
            claim = mail.next() => claim.unwrap(),
            claim = also_mail.next() => claim.unwrap(),
        };
        both.push(claim.event().id.to_string());
        if claim.event().id.as_str() == "e007" {
            claim.nack(eventflow::spoke::Nack::new("no such address").give_up()).await.unwrap();
        } else {
            claim.ack().await.unwrap();
        }
    }
    assert_eq!(set(&both), set(&sent));
    for group in ["billing", "mail"] {
        settled(&spoke, group).await;
    }
    let outcome = async |group: &str| {
        spoke.group(group).outcome("e007", PATIENCE).await.map(|ended| (ended.state, ended.error)).unwrap()
    };
    assert_eq!(outcome("billing").await, ("success".to_owned(), String::new()));
    assert_eq!(outcome("mail").await, ("dead".to_owned(), "no such address".to_owned()));
    assert_eq!(spoke.outcome("e007", PATIENCE).await.unwrap().state, "success");
    assert_eq!(standing(&spoke, "mail").await.dead, 1);
    assert_eq!(hub.handle.metrics().hub.outcomes.get("success"), Some(&119));
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn what_is_published_while_nobody_of_the_group_is_there_waits_for_it() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let mut billing = spoke.claims(orders("billing")).await.unwrap();
    publish(&spoke, ids("a", 3)).await;
    assert_eq!(take(&mut billing, 3).await, ids("a", 3));
    billing.stop().await.unwrap();
    publish(&spoke, ids("b", 30)).await;
    until("30 wait", || async { standing(&spoke, "billing").await.pending == Some(30) }).await;
    let stands = standing(&spoke, "billing").await;
    assert_eq!((stands.consumers, stands.bindings.len()), (0, 1));
    assert!(stands.oldest.is_some());

    let mut billing = spoke.claims(orders("billing")).await.unwrap();
    assert_eq!(take(&mut billing, 30).await, ids("b", 30));
    settled(&spoke, "billing").await;
    assert_eq!(standing(&spoke, "billing").await.oldest, None);
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn a_group_goes_on_where_it_was_after_a_restart() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let mut billing = spoke.claims(orders("billing")).await.unwrap();
    drop(spoke.claims(orders("mail")).await.unwrap());
    publish(&spoke, ids("a", 20)).await;
    assert_eq!(take(&mut billing, 12).await, ids("a", 12));
    spoke.close().await;
    let folder = hub.stop().await;

    let hub = TestHub::on(folder, |_| {}).await;
    let spoke = hub.spoke().await;
    let mut billing = spoke.claims(orders("billing")).await.unwrap();
    let mut mail = spoke.claims(orders("mail")).await.unwrap();
    assert_eq!(take(&mut billing, 8).await, ids("a", 20)[12..]);
    assert_eq!(take(&mut mail, 20).await, ids("a", 20));
    for group in ["billing", "mail"] {
        settled(&spoke, group).await;
    }
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn a_kill_of_the_hub_loses_nothing_of_a_group_and_doubles_no_outcome() {
    let home = Home::new();
    let running = home.start().await;
    let spoke = home.spoke().await;
    let mut billing = spoke.claims(orders("billing").credit(5)).await.unwrap();
    publish(&spoke, ids("a", 50)).await;
    let before = take(&mut billing, 20).await;
    spoke.close().await;
    running.kill().await;

    let running = home.start().await;
    let spoke = home.spoke().await;
    let mut billing = spoke.claims(orders("billing")).await.unwrap();
    let after = take(&mut billing, 30).await;
    assert!(set(&before).is_disjoint(&set(&after)), "what was acked doesn't come again");
    assert_eq!(set(&[before, after].concat()), set(&ids("a", 50)));
    settled(&spoke, "billing").await;
    spoke.close().await;
    running.kill().await;
}

#[tokio::test]
async fn a_slow_group_holds_back_no_other() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let mut slow = spoke.claims(orders("slow").credit(2)).await.unwrap();
    let mut quick = spoke.claims(orders("quick")).await.unwrap();
    publish(&spoke, ids("e", 100)).await;
    let held = [slow.next().await.unwrap(), slow.next().await.unwrap()];
    assert_eq!(take(&mut quick, 100).await, ids("e", 100));
    assert_eq!(standing(&spoke, "slow").await.in_flight, 2);
    until("the rest is counted", || async { standing(&spoke, "slow").await.pending == Some(98) }).await;
    let all = spoke.backlog().await.unwrap();
    let names: Vec<_> = all.iter().map(|group| group.group.as_ref().map(|name| name.to_string())).collect();
    assert_eq!(names, [None, Some("quick".to_owned()), Some("slow".to_owned())]);
    for claim in held {
        claim.ack().await.unwrap();
    }
    assert_eq!(take(&mut slow, 98).await.len(), 98);
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn a_wait_for_the_outcome_in_a_group_hears_of_that_group_alone() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let mut billing = spoke.claims(orders("billing")).await.unwrap();
    let mut default = spoke.claims(Consume::new("orders", "*")).await.unwrap();
    let waiting = {
        let spoke = spoke.clone();
        let publish = Publish::new("orders", "created", "order-1").id("e1".to_owned());
        tokio::spawn(async move { spoke.group("billing").publish_and_wait(publish, PATIENCE).await })
    };
    assert_eq!(take(&mut default, 1).await, ["e1"]);
    spoke.outcome("e1", PATIENCE).await.unwrap();
    let claim = billing.next().await.unwrap();
    assert_eq!(spoke.group("billing").outcome_now("e1").await.unwrap(), None, "it is still open there");
    let (_, traced) = spoke.show("e1").await.unwrap();
    let of_group = traced.groups.iter().find(|group| group.group.is_some()).expect("its group is told of");
    assert_eq!((of_group.state.as_str(), of_group.round), ("claimed", 1));
    assert!(of_group.consumer.is_some() && of_group.since.is_some() && of_group.due.is_some());
    assert!(!waiting.is_finished());
    claim.ack().await.unwrap();
    let (_, ended) = tokio::time::timeout(Duration::from_secs(20), waiting).await.unwrap().unwrap().unwrap();
    assert_eq!(ended.state, "success");
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn an_operator_sees_how_the_groups_stand() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let mut billing = spoke.claims(orders("billing").credit(1)).await.unwrap();
    publish(&spoke, ids("e", 3)).await;
    let held = billing.next().await.unwrap();
    let admin = Admin::of(&hub);
    until("two wait", || async {
        let (status, groups) = admin.json("GET", "/backlog", Value::Null).await;
        assert_eq!((status, groups.as_array().unwrap().len()), (200, 2));
        groups[1]["pending"] == 2
    })
    .await;
    let (_, one) = admin.json("GET", "/backlog?group=billing", Value::Null).await;
    assert_eq!((&one[0]["in_flight"], &one[0]["consumers"]), (&1.into(), &1.into()));
    assert_eq!(
        (&one[0]["bindings"][0]["domain"], &one[0]["connected"][0]["holds"]),
        (&"orders".into(), &1.into())
    );
    assert_eq!(admin.json("GET", "/backlog?group=nobody", Value::Null).await.0, 404);
    assert_eq!(admin.json("GET", "/backlog?groop=x", Value::Null).await.0, 400);
    until("the age of the oldest is shown", || async { hub.handle.metrics().hub.oldest_pending >= 1 }).await;
    held.ack().await.unwrap();
    assert_eq!(take(&mut billing, 2).await.len(), 2);
    until("none waits", || async { hub.handle.metrics().hub.oldest_pending == 0 }).await;
    spoke.close().await;
    hub.stop().await;
}
