//! What is shared with npm peers: takes and claims.

use super::*;
use crate::event::EventId;

fn take(event_id: &str, hub: &str, seq: u64) -> Write {
    Write::Take { event_id: id(event_id), hub: uid(hub), seq, at: AT }
}

fn claim(event_id: &str, consumer: &str) -> Write {
    Write::Claim { event_id: id(event_id), consumer: uid(consumer), at: AT }
}

/// As npm spokes insert.
async fn npm_event(store: &Store, event_id: &str, published: bool) {
    let event = "insert into event (id, domain, pid, name, data) values";
    sql(store, &format!("{event} ('{event_id}', 'orders', 'order-1', 'created', '{{\"a\":1}}')")).await;
    if published {
        let row = "insert into event_published (event_id, publisher) values";
        sql(store, &format!("{row} ('{event_id}', 'NPM-1')")).await;
    }
}

async fn npm_claim(store: &Store, event_id: &str) {
    let claim = "update event_published set consumed_spoke = '2026-12-01 00:00:00', consumer = 'NPM-2'";
    sql(store, &format!("{claim} where event_id = '{event_id}' and consumed_spoke is null")).await;
}

/// Who has told npm spokes and who serves our links, after a take.
fn taken(answer: &Answer) -> (bool, bool, bool) {
    match answer {
        Ok(Written::Taken(taken)) => (taken.broadcasts, taken.serves, taken.claimed),
        other => panic!("{other:?}"),
    }
}

async fn consumer(store: &Store, event_id: &str) -> Option<String> {
    let sql = format!("select consumer from event_published where event_id = '{event_id}'");
    rows(store, &sql).await[0].try_get_by_index(0).unwrap()
}

#[tokio::test]
async fn the_two_claims_of_a_take_are_independent_and_made_once() {
    let store = fresh().await;
    store.register_hub(&hub_row("HUB-2")).await.unwrap();
    for event in ["fresh", "told", "served", "claimed"] {
        npm_event(&store, event, true).await;
    }
    sql(&store, "update event_published set consumed_hub = published, hub = 'HUB-2' where event_id = 'told'")
        .await;
    sql(&store, "update event_published set v1_hub = 'HUB-2', seq = 3 where event_id = 'served'").await;
    npm_claim(&store, "claimed").await;
    let batch = ["fresh", "told", "served", "claimed", "fresh"];
    let writes = batch.iter().zip(10..).map(|(event, seq)| take(event, "HUB-1", seq)).collect();
    let answers: Vec<_> = store.commit(writes).await.iter().map(taken).collect();
    let expected = [
        (true, true, false),
        (false, true, false),
        (true, false, false),
        (true, true, true),
        (false, false, false),
    ];
    assert_eq!(answers, expected);
    assert_eq!(store.last_seq(&hub()).await.unwrap(), 13, "the last number that was given, not only offered");
    let Ok(Written::Taken(again)) = one(&store, take("fresh", "HUB-2", 99)).await else { panic!("a take") };
    assert!(!again.broadcasts && !again.serves);
    assert_eq!((again.event.domain.as_str(), again.event.data.as_str()), ("orders", r#"{"a":1}"#));
    assert_eq!(store.last_seq(&uid("HUB-2")).await.unwrap(), 0);
}

#[tokio::test]
async fn what_cant_be_taken_is_told_apart_and_the_others_are_taken() {
    let store = fresh().await;
    npm_event(&store, "unpublished", false).await;
    for event in ["waits", "ran", "plain"] {
        npm_event(&store, event, true).await;
    }
    let schedules = "('waits', '2026-01-01', null), ('ran', '2026-01-01', '2026-01-02')";
    let into = "insert into event_scheduled (event_id, scheduled, executed) values";
    sql(&store, &format!("{into} {schedules}")).await;
    let batch = ["unknown", "unpublished", "waits", "ran", "plain"];
    let mut writes: Vec<_> = batch.iter().map(|event| take(event, "HUB-1", 1)).collect();
    writes.insert(0, publish(event("v1"), 1));
    let answers = store.commit(writes).await;
    assert_eq!(answers[1].as_ref().ok(), Some(&Written::NotTaken(NotTaken::Unknown)));
    assert_eq!(answers[2].as_ref().ok(), Some(&Written::NotTaken(NotTaken::Unpublished)));
    assert_eq!(answers[3].as_ref().ok(), Some(&Written::NotTaken(NotTaken::Scheduled)));
    assert_eq!((taken(&answers[4]), taken(&answers[5])), ((true, true, false), (true, true, false)));
    assert!(published(&answers[0]).fresh);
}

#[tokio::test]
async fn a_claim_is_ours_until_its_outcome_unless_an_npm_spoke_was_quicker() {
    let store = fresh().await;
    store
        .commit(["a", "b", "c"].iter().zip(1..).map(|(text, seq)| publish(event(text), seq)).collect())
        .await;
    npm_claim(&store, "b").await;
    one(&store, finish("c", 3, Outcome::Success)).await.unwrap();
    let answers = store.commit(["c", "b", "a", "gone"].map(|text| claim(text, "W-1")).to_vec()).await;
    let won: Vec<_> = answers.into_iter().map(|answer| answer.unwrap() == Written::Claimed(true)).collect();
    assert_eq!(won, [false, false, true, false]);
    npm_claim(&store, "a").await;
    assert_eq!(
        one(&store, claim("a", "W-2")).await.unwrap(),
        Written::Claimed(true),
        "for the next consumer"
    );
    assert_eq!(consumer(&store, "a").await.as_deref(), Some("W-2"));
    assert_eq!(consumer(&store, "b").await.as_deref(), Some("NPM-2"));

    // What a page shows, and who can record an outcome.
    let (open, _) = open_page(&store, 0, 10, 9_999).await;
    let open: Vec<(&EventId, bool)> = open.iter().map(|open| (&open.event.id, open.claimed)).collect();
    assert_eq!(open, [(&id("a"), true)]);
    assert!(!store.any_unclaimed(&[id("a"), id("b")]).await.unwrap());
    let lost = one(&store, finish("b", 2, Outcome::Success)).await;
    assert_eq!(code_of(&lost), code::CLAIM_LOST);
    assert_eq!(consumer(&store, "b").await.as_deref(), Some("NPM-2"));
    one(&store, finish("a", 1, Outcome::Dead)).await.unwrap();
    assert_eq!(one(&store, claim("a", "W-1")).await.unwrap(), Written::Claimed(false), "it has its outcome");
    assert_eq!(
        number(&store, "select count(*) from v1_claim").await,
        0,
        "claims with an outcome are forgotten"
    );
}

#[tokio::test]
async fn of_an_npm_claim_only_the_acks_that_lost_are_refused() {
    let store = fresh().await;
    let events = (1..=5_u64).map(|n| publish(event(&format!("e{n}")), n));
    store.commit(events.collect()).await;
    npm_claim(&store, "e3").await;
    let finishes = (1..=5).map(|n| finish(&format!("e{n}"), n, Outcome::Success)).collect();
    let codes: Vec<_> = store.commit(finishes).await.iter().map(code_of).collect();
    assert_eq!(codes, ["ok", "ok", code::CLAIM_LOST, "ok", "ok"]);
}
