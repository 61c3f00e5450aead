//! Promise: how long an event without taker is offered, and when it expires, is what its domain says; whoever has it, or
//! is to have it, keeps it.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use eventflow::{
    config::{DomainPolicy, HubConfig, Keep},
    event::Pattern,
    spoke::{Claims, Consume, Publish, Spoke},
};

use crate::support::{TestHub, until};

const SHORT: Duration = Duration::from_millis(200);

fn domain(pattern: &str) -> DomainPolicy {
    DomainPolicy::new(Pattern::parse(pattern.to_owned()).unwrap())
}

/// `short.>` offers orphans for a moment, all others for ever.
fn short_and_long(config: &mut HubConfig) {
    config.orphan_keep = Keep::Forever;
    let mut short = domain("short.>");
    short.orphan_keep = Some(Keep::For(SHORT));
    config.domains = vec![short];
}

/// Orphans of `short.>` expire after a moment, those of others never.
fn expiring(config: &mut HubConfig) {
    config.retention.interval = Duration::from_millis(20);
    let mut short = domain("short.>");
    short.expire_after = Some(Keep::For(SHORT));
    config.domains = vec![short];
}

async fn publish(spoke: &Spoke, domain: &str, id: &str) {
    spoke.publish(Publish::new(domain.to_owned(), "created", "p").id(id.to_owned())).await.unwrap();
}

async fn take(claims: &mut Claims, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..count {
        let claim = claims.next().await.expect("a claim");
        ids.push(claim.event().id.to_string());
        claim.ack().await.unwrap();
    }
    ids
}

async fn state(spoke: &Spoke, id: &str) -> String {
    spoke.show(id).await.unwrap().1.state
}

async fn until_state(spoke: &Spoke, id: &str, wanted: &str) {
    until("the event has that state", || async { state(spoke, id).await == wanted }).await;
}

async fn grown_old(spoke: &Spoke, id: &str) {
    let stored = u128::try_from(spoke.read(id).await.unwrap().timestamp).unwrap();
    until("the event is old", || async {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() > stored + SHORT.as_millis()
    })
    .await;
}

#[tokio::test]
async fn a_binding_over_several_domains_is_offered_what_each_of_them_keeps() {
    let hub = TestHub::with(short_and_long).await;
    let spoke = hub.spoke().await;
    publish(&spoke, "short.a", "short-old").await;
    publish(&spoke, "long.a", "long-old").await;
    grown_old(&spoke, "long-old").await;
    publish(&spoke, "short.b", "short-young").await;
    let mut claims = spoke.claims(Consume::new(">", "*")).await.unwrap();
    publish(&spoke, "short.a", "short-new").await;
    assert_eq!(take(&mut claims, 3).await, ["long-old", "short-young", "short-new"]);
    assert_eq!(state(&spoke, "short-old").await, "orphan");
    until("nothing waits", || async { hub.handle.metrics().hub.pending == 0 }).await;

    // One that is for `short` alone finds nothing either; what waits for a binding waits without limit.
    let narrow = spoke.claims(Consume::new("short.*", "*")).await.unwrap();
    narrow.stop().await.unwrap();
    claims.stop().await.unwrap();
    publish(&spoke, "short.a", "short-waits").await;
    grown_old(&spoke, "short-waits").await;
    drop((claims, narrow));
    spoke.close().await;

    // What a binding is offered was said when it was made: other policies don't change it.
    let hub = TestHub::on(hub.stop().await, |config| config.orphan_keep = Keep::Forever).await;
    let spoke = hub.spoke().await;
    let mut claims = spoke.claims(Consume::new(">", "*")).await.unwrap();
    assert_eq!(take(&mut claims, 1).await, ["short-waits"]);
    until("nothing waits", || async { hub.handle.metrics().hub.pending == 0 }).await;
    assert_eq!(state(&spoke, "short-old").await, "orphan");
    // A new one is offered what they say now.
    let mut new = spoke.claims(Consume::new("short.a", "*")).await.unwrap();
    assert_eq!(take(&mut new, 1).await, ["short-old"]);
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn an_orphan_expires_and_who_waits_for_its_outcome_is_told() {
    let hub = TestHub::with(expiring).await;
    let spoke = hub.spoke().await;
    let mut link = hub.v1().await;
    publish(&spoke, "short.a", "lapses").await;
    publish(&spoke, "long.a", "stays").await;
    let answer = link.ask(&["outcome", "1", "lapses", r#"{"timeout_ms":20000}"#]).await;
    assert_eq!(answer[2], "outcome", "{answer:?}");
    let ended: serde_json::Value = serde_json::from_str(&answer[3]).unwrap();
    assert_eq!(ended["state"], "expired", "{ended}");
    assert_eq!(state(&spoke, "lapses").await, "expired");
    assert_eq!(state(&spoke, "stays").await, "orphan");
    assert_eq!(hub.handle.metrics().hub.outcomes["expired"], 1);

    // Nobody gets it any more.
    let mut claims = spoke.claims(Consume::new("short.a", "*")).await.unwrap();
    publish(&spoke, "short.a", "new").await;
    assert_eq!(take(&mut claims, 1).await, ["new"]);
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn what_waits_for_a_binding_or_is_held_never_expires() {
    let hub = TestHub::with(expiring).await;
    let spoke = hub.spoke().await;
    let mut claims = spoke.claims(Consume::new("short.a", "*").credit(1)).await.unwrap();
    publish(&spoke, "short.a", "held").await;
    publish(&spoke, "short.a", "waits").await;
    let held = claims.next().await.unwrap();
    publish(&spoke, "short.b", "lapses").await;
    until_state(&spoke, "lapses", "expired").await;
    assert_eq!(state(&spoke, "waits").await, "pending");
    held.ack().await.unwrap();
    assert_eq!(take(&mut claims, 1).await, ["waits"]);
    assert_eq!(
        (state(&spoke, "held").await, state(&spoke, "waits").await),
        ("success".into(), "success".into())
    );
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn a_consumer_that_comes_while_orphans_expire_gets_each_or_none_of_it() {
    let hub = TestHub::with(expiring).await;
    let spoke = hub.spoke().await;
    let some = async |round: usize, numbers: std::ops::Range<usize>| {
        let mut later = Vec::new();
        for number in numbers {
            let publish =
                Publish::new(format!("short.d{round}"), "created", "p").id(format!("e{round}-{number}"));
            later.push(spoke.publish_later(publish).await.unwrap());
        }
        for publish in later {
            publish.await.unwrap();
        }
    };
    for round in 0..8 {
        some(round, 0..40).await;
    }
    // They come when the first have expired, and others were published just before.
    until("the first expire", || async { hub.handle.metrics().hub.outcomes["expired"] > 0 }).await;
    let mut taken = 0;
    let mut running = Vec::new();
    for round in 0..8 {
        some(round, 40..50).await;
        let domain = format!("short.d{round}");
        let mut claims = spoke.claims(Consume::new(domain.clone(), "*").credit(200)).await.unwrap();
        publish(&spoke, &domain, &format!("last-{domain}")).await;
        // The last event is newer than all that the binding is offered.
        loop {
            let claim = claims.next().await.unwrap();
            let id = claim.event().id.to_string();
            claim.ack().await.expect("what is handed out hasn't expired, and doesn't");
            taken += 1;
            if id.starts_with("last-") {
                break;
            }
        }
        running.push(claims);
    }
    let mut states: BTreeMap<String, usize> = BTreeMap::new();
    for round in 0..8 {
        for number in 0..50 {
            *states.entry(state(&spoke, &format!("e{round}-{number}")).await).or_default() += 1;
        }
    }
    let of = |state: &str| states.get(state).copied().unwrap_or_default();
    assert_eq!(of("success") + of("expired"), 400, "{states:?}");
    assert_eq!(of("success") + 8, taken, "{states:?}");
    assert!(of("success") > 0 && of("expired") > 0, "both kinds were there: {states:?}");
    assert_eq!(hub.handle.metrics().hub.claims_lost, 0);
    drop(running);
    spoke.close().await;
    hub.stop().await;
}
