//! Promise: a claim ends with its holder. What a lost link held is offered again at once, and gets no outcome by it.

use std::{collections::BTreeMap, process::Stdio, time::Duration};

use eventflow::{
    event::code,
    hub::{Hub, HubError},
};
use tokio::time::{Instant, timeout};

use crate::support::{PATIENCE, Raw, TestHub, config, process, until};

/// "At once", as it is measured here: machines stall, but none of the hub's timers is that short.
const AT_ONCE: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Claimed {
    token: String,
    attempt: u32,
    id: String,
}

async fn claims(link: &mut Raw, count: usize) -> Vec<Claimed> {
    let mut claims = Vec::new();
    while claims.len() < count {
        let record = link.answer().await.expect("a claim");
        if let ["claim", _, token, attempt, _, id, ..] =
            record.iter().map(String::as_str).collect::<Vec<_>>()[..]
        {
            let (token, id) = (token.to_owned(), id.to_owned());
            claims.push(Claimed { token, attempt: attempt.parse().unwrap(), id });
        }
    }
    claims
}

async fn publish(hub: &TestHub, count: usize) {
    let mut link = hub.v1().await;
    for n in 0..count {
        link.send(&["publish", "1", &format!("e{n}"), "orders", "created", "o-1", "", "{}"]).await;
        assert_eq!(link.answer().await.unwrap()[0], "ok");
    }
}

const CONSUME: [&str; 6] = ["consume", "1", "1", "", "orders", "*"];

async fn consume(link: &mut Raw, options: &str) {
    link.send(&[&CONSUME[..], &[options]].concat()).await;
}

#[tokio::test]
async fn what_a_lost_link_held_goes_to_the_next_at_once() {
    let hub = TestHub::start().await;
    let mut first = hub.v1().await;
    consume(&mut first, "{\"credit\":5,\"concurrency\":2}").await;
    publish(&hub, 5).await;
    let held = claims(&mut first, 5).await;
    assert!(held.iter().all(|claim| claim.attempt == 1), "{held:?}");
    let mut second = hub.v1().await;
    consume(&mut second, "{\"credit\":64}").await;
    assert_eq!(second.answer().await.unwrap()[..2], ["ok", "1"]);

    let began = Instant::now();
    drop(first);
    let again = claims(&mut second, 5).await;
    println!("offered again after {:?}", began.elapsed());
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    // The two oldest were being worked on.
    let attempts: BTreeMap<_, _> = again.iter().map(|claim| (&*claim.id, claim.attempt)).collect();
    assert_eq!(attempts, [("e0", 2), ("e1", 2), ("e2", 1), ("e3", 1), ("e4", 1)].into());
    let metrics = hub.handle.metrics().hub;
    assert_eq!((metrics.reoffered, metrics.outcomes.values().sum::<u64>()), (5, 0));

    // Old tokens are void, the new ones hold.
    for (held, req) in [(&held[0], "10"), (&held[4], "11")] {
        second.send(&["ack", req, &held.token]).await;
        assert_eq!(second.answer().await.unwrap()[..3], ["err", req, code::CLAIM_LOST]);
    }
    for claim in &again {
        second.send(&["ack", "20", &claim.token]).await;
        assert_eq!(second.answer().await.unwrap(), ["ok", "20"]);
    }
    let spoke = hub.spoke().await;
    let (_, trace) = spoke.show("e0").await.unwrap();
    assert_eq!((&*trace.state, trace.attempts.len()), ("success", 1), "{trace:?}");
    assert_eq!((trace.attempts[0].number, &*trace.attempts[0].reason), (1, "link lost"));
    assert_eq!(spoke.show("e4").await.unwrap().1.attempts.len(), 0);
    spoke.close().await;
    drop(second);
    hub.stop().await;
}

#[tokio::test]
async fn attempts_count_for_a_consumer_that_comes_right_after() {
    let hub = TestHub::start().await;
    publish(&hub, 3).await;
    hub.v1().await.set("", r#"{"delay":10,"max_delay":10}"#).await;
    // From the third on others would be the oldest: what failed twice waits.
    for lost in 1..=3 {
        // Each is the only one: the events go back to the database in between.
        let mut link = hub.v1().await;
        consume(&mut link, "{\"credit\":3}").await;
        let held = claims(&mut link, 3).await;
        let attempts: BTreeMap<_, _> = held.iter().map(|claim| (&*claim.id, claim.attempt)).collect();
        assert_eq!(attempts, [("e0", lost), ("e1", 1), ("e2", 1)].into());
        drop(link);
        until("the claims are back", || async { hub.handle.metrics().hub.in_flight == 0 }).await;
    }
    hub.stop().await;
}

#[tokio::test]
async fn a_killed_consumer_program_holds_nothing() {
    let hub = TestHub::start().await;
    publish(&hub, 1).await;
    let data = hub.data();
    let mut program = tokio::process::Command::new(env!("CARGO_BIN_EXE_eventflow"))
        .args(["consume", "orders", "--exec", "while kill -0 $PPID; do sleep 0.05; done"])
        .env("EVENTFLOW_DATA", &data)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    until("it holds the event", || async { hub.handle.metrics().hub.in_flight == 1 }).await;
    let mut second = hub.v1().await;
    consume(&mut second, "{\"credit\":1}").await;
    assert_eq!(second.answer().await.unwrap()[0], "ok");

    let began = Instant::now();
    process::signal(program.id().unwrap(), "KILL");
    let again = claims(&mut second, 1).await;
    println!("offered again after {:?}", began.elapsed());
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    assert_eq!((&*again[0].id, again[0].attempt), ("e0", 2));
    assert_eq!(hub.handle.metrics().hub.outcomes.values().sum::<u64>(), 0);
    program.wait().await.unwrap();
    drop(second);
    hub.stop().await;
}

#[tokio::test]
async fn a_restart_voids_all_claims() {
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    consume(&mut link, "{\"credit\":1}").await;
    publish(&hub, 1).await;
    let old = claims(&mut link, 1).await;
    drop(link);
    let hub = TestHub::on(hub.stop().await, |_| {}).await;

    let mut link = hub.v1().await;
    link.send(&["ack", "1", &old[0].token]).await;
    assert_eq!(link.answer().await.unwrap()[..3], ["err", "1", code::CLAIM_LOST]);
    consume(&mut link, "{\"credit\":1}").await;
    let new = claims(&mut link, 1).await;
    assert!(new[0].token.parse::<u64>().unwrap() > old[0].token.parse::<u64>().unwrap());
    link.send(&["ack", "2", &old[0].token]).await;
    assert_eq!(link.answer().await.unwrap()[..3], ["err", "2", code::CLAIM_LOST]);
    link.send(&["ack", "3", &new[0].token]).await;
    assert_eq!(link.answer().await.unwrap(), ["ok", "3"]);
    drop(link);
    hub.stop().await;
}

#[tokio::test]
async fn a_second_hub_is_kept_off_the_folder() {
    let hub = TestHub::start().await;
    let second = config(&hub.folder);
    let error = timeout(PATIENCE, Hub::builder().config(second).start()).await.unwrap().unwrap_err();
    assert_eq!(error.code(), code::DB_IN_USE);
    assert!(
        matches!(error, HubError::InUse { .. }) && error.to_string().contains("choose another data folder"),
        "{error}"
    );
    // The first one doesn't notice.
    publish(&hub, 1).await;
    hub.stop().await;
}
