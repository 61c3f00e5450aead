//! Promise: what failed is tried again, each time after a longer wait, at most so often; then it is dead.

use eventflow::{pki::Bundle, spoke::Publish, wire::Attempt};
use tokio::time::{Duration, Instant};

use crate::support::{Raw, TestHub, process::Home, until};

const SOON: &str = r#"{"delay":100,"max_delay":300,"max_attempts":10}"#;

async fn nack(link: &mut Raw, options: &str) -> u32 {
    let claim = link.claim().await;
    assert_eq!(link.ask(&["nack", "9", &claim.token, options]).await, ["ok", "9"]);
    claim.attempt
}

/// From the end of each attempt to the beginning of the next, in milliseconds.
fn waits(attempts: &[Attempt]) -> Vec<i64> {
    attempts.windows(2).map(|pair| pair[1].started - pair[0].ended).collect()
}

#[tokio::test]
async fn each_wait_is_twice_as_long_up_to_the_cap_and_the_last_attempt_is_the_end() {
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    link.set("", SOON).await;
    link.consume("", "orders", r#"{"credit":4}"#).await;
    link.publish("orders", "e1").await;
    for attempt in 1..=10 {
        assert_eq!(nack(&mut link, r#"{"reason":"no"}"#).await, attempt);
    }
    let spoke = hub.spoke().await;
    let trace = spoke.show("e1").await.unwrap().1;
    assert_eq!((&*trace.state, trace.attempts.len()), ("dead", 10));
    assert!(trace.attempts.iter().all(|attempt| (&*attempt.reason, &*attempt.error) == ("nack", "no")));
    let waits = waits(&trace.attempts);
    println!("waits {waits:?}");
    // Give or take a fifth; above, the machine adds what it needs to read, and to stall.
    let [first, second, capped @ ..] = &*waits else { panic!("{waits:?}") };
    assert_eq!(capped.len(), 7);
    for (wait, least) in [(first, 80), (second, 160)].into_iter().chain(capped.iter().map(|wait| (wait, 240)))
    {
        assert!((least..least + 5_000).contains(wait), "{waits:?}: without a cap the last would be 20 s");
    }
    // It doesn't stall each time: the quickest shows the cap.
    assert!(capped.iter().any(|wait| *wait < 460), "{waits:?}: with twice the cap each would be 480 ms");
    let metrics = hub.handle.metrics().hub;
    assert_eq!((metrics.retries, metrics.outcomes["dead"]), (9, 1));

    // It is over: not even a new start offers it again.
    spoke.close().await;
    drop(link);
    let hub = TestHub::on(hub.stop().await, |_| {}).await;
    let mut link = hub.v1().await;
    link.consume("", "orders", r#"{"credit":4}"#).await;
    link.publish("orders", "e2").await;
    assert_eq!(link.claim().await.id, "e2");
    drop(link);
    hub.stop().await;
}

#[tokio::test]
async fn a_nack_may_name_its_own_wait_or_give_up() {
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    link.set("", r#"{"delay":60000,"max_delay":60000}"#).await;
    link.consume("", "orders", r#"{"credit":4}"#).await;
    link.publish("orders", "e1").await;
    assert_eq!(nack(&mut link, r#"{"reason":"busy","delay":300}"#).await, 1);
    assert_eq!(nack(&mut link, r#"{"reason":"never","final":true}"#).await, 2);
    let spoke = hub.spoke().await;
    let trace = spoke.show("e1").await.unwrap().1;
    assert_eq!((&*trace.state, trace.attempts.len()), ("dead", 2));
    assert!((300..10_000).contains(&waits(&trace.attempts)[0]), "{trace:?}");
    assert_eq!((&*trace.attempts[1].reason, &*trace.attempts[1].error), ("given up", "never"));
    spoke.close().await;
    drop(link);
    hub.stop().await;
}

#[tokio::test]
async fn what_waits_holds_nobody_up_and_needs_no_consumer() {
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    link.set("", r#"{"delay":200,"max_delay":200}"#).await;
    link.consume("", "orders", r#"{"credit":1}"#).await;
    link.publish("orders", "e1").await;
    nack(&mut link, "{}").await;
    link.publish("orders", "e2").await;
    let other = link.claim().await;
    assert_eq!(other.id, "e2", "the next one comes while the first waits");
    assert_eq!(link.ask(&["ack", "9", &other.token]).await, ["ok", "9"]);
    drop(link);
    until("nobody consumes", || async { hub.handle.metrics().hub.in_flight == 0 }).await;

    let mut link = hub.v1().await;
    link.consume("", "orders", r#"{"credit":1}"#).await;
    let again = link.claim().await;
    assert_eq!((&*again.id, again.attempt), ("e1", 2));
    assert_eq!(link.ask(&["ack", "9", &again.token]).await, ["ok", "9"]);
    let spoke = hub.spoke().await;
    assert_eq!(spoke.show("e1").await.unwrap().1.state, "success");
    spoke.close().await;
    drop(link);
    hub.stop().await;
}

#[tokio::test]
async fn a_consumer_that_takes_nothing_holds_up_no_retries_of_another_binding() {
    const STALLED: u32 = 1_500;
    let hub = TestHub::with(|config| config.limits.credit = STALLED).await;
    let (mut stalled, mut ready) = (hub.v1().await, hub.v1().await);
    stalled.set("", r#"{"delay":100,"max_delay":100}"#).await;
    let credit = format!(r#"{{"credit":{STALLED}}}"#);
    stalled.consume("", "orders", &credit).await;
    ready.consume("", "bills", r#"{"credit":1}"#).await;
    let spoke = hub.spoke().await;
    let events: Vec<_> = (0..STALLED).map(|_| Publish::new("orders", "created", "p-1")).collect();
    for part in events.chunks(500) {
        spoke.publish_all(part.to_vec()).await.unwrap();
    }
    spoke.close().await;
    let mut tokens = Vec::new();
    while tokens.len() < STALLED as usize {
        tokens.push(stalled.claim().await.token);
    }
    // Each once: what comes back meanwhile lies there.
    for part in tokens.chunks(100) {
        for token in part {
            stalled.send(&["nack", token, token, r#"{"delay":1}"#]).await;
        }
        for token in part {
            assert_eq!(stalled.reply(token).await, ["ok", token.as_str()]);
        }
    }
    // From now on all of them are due, more than memory takes, for somebody who takes one and does nothing with it.
    drop(stalled);
    until("nobody has one", || async { hub.handle.metrics().hub.in_flight == 0 }).await;
    let mut stalled = hub.v1().await;
    stalled.consume("", "orders", r#"{"credit":1}"#).await;
    assert!(stalled.claim().await.attempt > 1);

    ready.publish("bills", "b1").await;
    assert_eq!(nack(&mut ready, r#"{"delay":200}"#).await, 1);
    let again = ready.claim().await;
    assert_eq!((&*again.id, again.attempt), ("b1", 2));
    assert_eq!(ready.ask(&["ack", "9", &again.token]).await, ["ok", "9"]);
    drop((stalled, ready));
    hub.stop().await;
}

#[tokio::test]
async fn each_group_tries_again_by_its_own_settings() {
    let hub = TestHub::start().await;
    let (mut patient, mut quick) = (hub.v1().await, hub.v1().await);
    quick.set("quick", r#"{"delay":10,"max_attempts":2}"#).await;
    patient.consume("", "orders", r#"{"credit":1}"#).await;
    quick.consume("quick", "orders", r#"{"credit":1}"#).await;
    quick.publish("orders", "e1").await;
    assert_eq!(nack(&mut quick, "{}").await, 1);
    assert_eq!(nack(&mut quick, "{}").await, 2);
    let mine = patient.claim().await;
    assert_eq!(mine.attempt, 1, "the attempts of another group don't count");
    assert_eq!(patient.ask(&["ack", "9", &mine.token]).await, ["ok", "9"]);
    until("both ended", || async {
        let outcomes = hub.handle.metrics().hub.outcomes;
        (outcomes["success"], outcomes["dead"]) == (1, 1)
    })
    .await;
    drop((patient, quick));
    hub.stop().await;
}

#[tokio::test]
async fn a_killed_hub_keeps_when_each_is_due_and_how_often_it_failed() {
    let home = Home::new();
    let hub = home.start().await;
    let bundle = Bundle::read(home.data().join("operator.toml")).unwrap();
    let link = async || Raw::connect(&bundle, ("127.0.0.1", home.port())).await.greeted().await;
    let mut worker = link().await;
    worker.set("", r#"{"delay":100,"max_delay":100,"max_attempts":3}"#).await;
    worker.consume("", "orders", r#"{"credit":1}"#).await;
    worker.publish("orders", "soon").await;
    assert_eq!(nack(&mut worker, "{}").await, 1);
    assert_eq!(nack(&mut worker, r#"{"delay":1}"#).await, 2);
    let last = worker.claim().await;
    assert_eq!(last.attempt, 3);
    // This one is in a consumer's hands when the hub dies; the other waits.
    worker.publish("orders", "later").await;
    assert_eq!(worker.ask(&["extend", "9", &last.token, "{}"]).await, ["ok", "9"]);
    let mut other = link().await;
    other.consume("", "orders", r#"{"credit":1}"#).await;
    let began = Instant::now();
    assert_eq!(nack(&mut other, r#"{"delay":3000}"#).await, 1);
    hub.kill().await;
    drop((worker, other));

    let mut hub = home.start().await;
    let mut worker = link().await;
    worker.consume("", "orders", r#"{"credit":2}"#).await;
    let again = worker.claim().await;
    assert_eq!((&*again.id, again.attempt), ("soon", 3), "a hub that dies counts for nothing");
    assert_eq!(worker.ask(&["nack", "9", &again.token, "{}"]).await, ["ok", "9"]);
    let again = worker.claim().await;
    assert_eq!((&*again.id, again.attempt), ("later", 2));
    assert!(began.elapsed() >= Duration::from_secs(3), "{:?}", began.elapsed());
    assert_eq!(worker.ask(&["ack", "9", &again.token]).await, ["ok", "9"]);
    let spoke = home.spoke().await;
    assert_eq!(spoke.show("soon").await.unwrap().1.state, "dead", "three attempts were all");
    assert_eq!(spoke.show("later").await.unwrap().1.state, "success");
    spoke.close().await;
    drop(worker);
    hub.signal("TERM");
    assert!(hub.ended().await.success());
}
