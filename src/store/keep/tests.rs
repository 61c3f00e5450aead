use std::{sync::Arc, time::Duration};

use super::*;
use crate::{
    event::{Keep, Outcome, Pattern, Policy},
    store::{
        RemovedMark, Sweep, Swept, Write, Written,
        tests::{AT, attempt, binding, engines, event, finish, fresh, hub, id, one, publish, rows, sql, uid},
    },
};

const HOUR: i64 = 3_600_000;
/// Everything that the tests store is older than all that the policies say.
const LATER: i64 = AT + 100 * HOUR;

fn hours(hours: u64) -> Keep {
    Keep::For(Duration::from_secs(hours * 3_600))
}

fn policies(policy: Policy) -> Arc<Policies> {
    Arc::new(Policies::new(Vec::new(), policy))
}

/// Everything goes an hour after its end; orphans stay.
fn an_hour() -> Policy {
    let keep = hours(1);
    Policy {
        keep_success: keep,
        keep_dead: keep,
        keep_expired: keep,
        keep_unknown: keep,
        keep_persisted: keep,
        ..Policy::default()
    }
}

async fn fates(store: &Store, policy: Policy, now: i64) -> Vec<(String, Fate)> {
    let domain = Domain::parse("orders").unwrap();
    let rows = store.keep_page((&hub(), &domain), None, now, 100, (&policies(policy), now)).await.unwrap();
    rows.into_iter().map(|row| (row.id.to_string(), row.fate)).collect()
}

async fn fate(store: &Store, event: &str, policy: Policy, now: i64) -> Fate {
    let all = fates(store, policy, now).await;
    all.into_iter().find(|(id, _)| id == event).unwrap().1
}

async fn sweep(store: &Store, ids: &[&str], policy: Policy, at: i64) -> Swept {
    let sweep = Sweep {
        hub: hub(),
        domain: Domain::parse("orders").unwrap(),
        ids: ids.iter().map(|text| id(text)).collect(),
        policies: policies(policy),
        at,
    };
    match one(store, Write::Sweep(sweep)).await.unwrap() {
        Written::Swept(swept) => swept,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn each_end_has_its_own_time() {
    let store = fresh().await;
    for (at, name) in (1..).zip(["good", "dead", "lapsed", "alone"]) {
        one(&store, publish(event(name), at)).await.unwrap();
    }
    one(&store, Write::Persist(event("stored"), None)).await.unwrap();
    one(&store, finish("good", 1, Outcome::Success)).await.unwrap();
    one(&store, finish("dead", 2, Outcome::Dead)).await.unwrap();
    one(&store, finish("lapsed", 3, Outcome::Expired)).await.unwrap();
    sql(&store, &format!("UPDATE event_published SET published = @local('{}')", time::text(AT))).await;
    let policy = Policy {
        keep_success: hours(1),
        keep_dead: hours(2),
        keep_expired: hours(3),
        keep_orphan: hours(4),
        keep_persisted: hours(5),
        ..Policy::default()
    };
    // The helper ends events five milliseconds after they were published.
    for (name, kept, end) in [
        ("good", Kept::Success, engines::held(AT + 5) + HOUR),
        ("dead", Kept::Dead, engines::held(AT + 5) + 2 * HOUR),
        ("lapsed", Kept::Expired, engines::held(AT + 5) + 3 * HOUR),
        ("alone", Kept::Orphan, engines::held(AT) + 4 * HOUR),
        ("stored", Kept::Persisted, AT + 5 * HOUR),
    ] {
        let open = matches!(kept, Kept::Orphan | Kept::Persisted);
        let due = if open { Fate::Open(Some(end)) } else { Fate::Due(end) };
        assert_eq!(fate(&store, name, policy, end - 1).await, due, "{name}");
        assert_eq!(fate(&store, name, policy, end).await, Fate::Goes(kept), "{name}");
        let stays = if open { Fate::Open(None) } else { Fate::Stays };
        assert_eq!(fate(&store, name, Policy::default(), LATER).await, stays, "{name}");
    }
}

#[tokio::test]
async fn what_somebody_is_to_get_waits() {
    let store = fresh().await;
    for (at, name) in (1..).zip(["pending", "tried", "claimed", "early"]) {
        one(&store, publish(event(name), at)).await.unwrap();
    }
    one(
        &store,
        Write::Schedule { event: event("scheduled"), due: LATER, publisher: uid("SPOKE-1"), replaces: None },
    )
    .await
    .unwrap();
    let all = Policy { keep_orphan: hours(1), expire_after: hours(1), ..an_hour() };
    one(&store, Write::Attempt(attempt("tried", 1))).await.unwrap();
    let claim = Write::Claim { event_id: id("claimed"), consumer: uid("SPOKE-2"), at: AT };
    one(&store, claim).await.unwrap();
    for name in ["tried", "claimed", "scheduled"] {
        assert_eq!(fate(&store, name, all, LATER).await, Fate::Waits, "{name}");
    }
    assert_eq!(fate(&store, "pending", all, LATER).await, Fate::Goes(Kept::Orphan));
    one(&store, Write::Bind(binding("", "orders", "*", 1))).await.unwrap();
    assert_eq!(fate(&store, "pending", all, LATER).await, Fate::Waits);
    let swept = sweep(&store, &["pending", "tried", "claimed", "early", "scheduled"], all, LATER).await;
    assert_eq!(swept, Swept::default(), "what was decided before is decided again");
}

#[tokio::test]
async fn what_a_named_group_wants_waits_for_it() {
    let store = fresh().await;
    one(&store, publish(event("both"), 1)).await.unwrap();
    one(&store, finish("both", 1, Outcome::Success)).await.unwrap();
    one(&store, publish(event("named"), 2)).await.unwrap();
    one(&store, Write::Bind(binding("billing", "orders", "*", 1))).await.unwrap();
    for name in ["both", "named"] {
        assert_eq!(fate(&store, name, an_hour(), LATER).await, Fate::Waits, "{name}");
    }
    let end = AT + 7 * HOUR;
    let ends = |event: &str, round: i32, outcome: &str, dead: bool| {
        let at = time::text(end);
        let dead = if dead { format!("'{at}'") } else { "NULL".to_owned() };
        format!(
            "INSERT INTO v1_outcome (event_id, grp, round, hub, seq, outcome, consumer, ended, dead) \
             VALUES ('{event}', 'billing', {round}, 'HUB-1', 1, '{outcome}', 'SPOKE-2', '{at}', {dead})"
        )
    };
    sql(&store, &ends("both", 1, "success", false)).await;
    sql(&store, &ends("named", 1, "dead", true)).await;
    // The last end counts; what only a named group wanted stands as there.
    assert_eq!(fate(&store, "both", an_hour(), end).await, Fate::Due(end + HOUR));
    assert_eq!(fate(&store, "both", an_hour(), end + HOUR).await, Fate::Goes(Kept::Success));
    assert_eq!(fate(&store, "named", an_hour(), end + HOUR).await, Fate::Goes(Kept::Dead));
    // A redrive, and a group that begins anew.
    sql(&store, "UPDATE v1_outcome SET dead = NULL WHERE event_id = 'named'").await;
    assert_eq!(fate(&store, "named", an_hour(), LATER).await, Fate::Waits);
    sql(&store, "UPDATE v1_group SET round = 2 WHERE name = 'billing'").await;
    assert_eq!(fate(&store, "both", an_hour(), LATER).await, Fate::Waits);
    sql(&store, &ends("both", 2, "success", false)).await;
    assert_eq!(fate(&store, "both", an_hour(), LATER).await, Fate::Goes(Kept::Success));
    let retry = "INSERT INTO v1_retry (event_id, grp, hub, seq, pid, round, attempts, due) \
                 VALUES ('both', 'other', 'HUB-1', 1, 'order-1', 1, 1, 1)";
    sql(&store, retry).await;
    assert_eq!(fate(&store, "both", an_hour(), LATER).await, Fate::Waits, "another group tries it again");
}

#[tokio::test]
async fn an_npm_claim_is_given_an_hour_and_is_unknown_then() {
    let store = fresh().await;
    one(&store, publish(event("npm"), 1)).await.unwrap();
    let at = engines::held(AT + HOUR);
    sql(&store, &format!("UPDATE event_published SET consumed_spoke = '{}'", time::text(at))).await;
    let policy =
        Policy { expire_after: hours(1), keep_orphan: hours(1), keep_unknown: hours(3), ..an_hour() };
    assert_eq!(fate(&store, "npm", policy, at + HOUR - 1).await, Fate::Due(at + UNHEARD_OF));
    assert_eq!(fate(&store, "npm", policy, at + HOUR).await, Fate::Due(at + 3 * HOUR));
    assert_eq!(fate(&store, "npm", policy, at + 3 * HOUR).await, Fate::Goes(Kept::Unknown));
}

#[tokio::test]
async fn what_another_hub_serves_is_left_to_it() {
    let store = fresh().await;
    one(&store, publish(event("theirs"), 1)).await.unwrap();
    sql(&store, "UPDATE event_published SET v1_hub = 'HUB-9'").await;
    let policy = Policy { expire_after: hours(1), keep_orphan: hours(1), ..an_hour() };
    assert_eq!(fate(&store, "theirs", policy, LATER).await, Fate::Waits);
    sql(&store, "UPDATE event_published SET v1_hub = NULL, seq = NULL").await;
    assert_eq!(fate(&store, "theirs", policy, LATER).await, Fate::Waits, "an npm hub's");
}

#[tokio::test]
async fn an_orphan_expires_once_and_has_its_outcome_then() {
    let store = fresh().await;
    one(&store, publish(event("alone"), 1)).await.unwrap();
    let policy = Policy { expire_after: hours(1), ..an_hour() };
    let swept = sweep(&store, &["alone"], policy, LATER).await;
    assert_eq!(swept, Swept { expired: vec![id("alone")], removed: Vec::new() });
    let crate::store::standing::Standing::Ended(ended) = store.standing(&id("alone")).await.unwrap() else {
        panic!("it has no outcome")
    };
    assert_eq!((ended.state.as_str(), ended.ended), ("expired", engines::held(LATER)));
    assert_eq!(sweep(&store, &["alone"], policy, LATER).await, Swept::default());
    // A binding that comes now doesn't get it, and nobody can give it another outcome.
    one(&store, Write::Bind(binding("", "orders", "*", 1))).await.unwrap();
    assert!(crate::store::tests::open_page(&store, 0, 10, 1_000).await.0.is_empty());
    one(&store, finish("alone", 1, Outcome::Success)).await.unwrap_err();
    assert_eq!(fate(&store, "alone", policy, LATER + HOUR).await, Fate::Goes(Kept::Expired));
}

#[tokio::test]
async fn what_is_answered_goes_with_its_answers_or_after_them() {
    let store = fresh().await;
    for (at, (name, rid)) in
        (1..).zip([("a", None), ("b", Some("a")), ("c", Some("b")), ("x", None), ("y", Some("x"))])
    {
        let asked = crate::event::Event { rid: rid.map(id), ..event(name) };
        one(&store, publish(asked, at)).await.unwrap();
        one(&store, finish(name, at, Outcome::Success)).await.unwrap();
    }
    let removed = |swept: Swept| -> Vec<String> {
        swept.removed.into_iter().map(|(_, gone)| gone.id.to_string()).collect()
    };
    // `c` isn't asked to go: it stays, so `b` stays, so `a` stays.
    assert_eq!(removed(sweep(&store, &["a", "b", "x", "y"], an_hour(), LATER).await), ["x", "y"]);
    assert_eq!(removed(sweep(&store, &["a", "b", "c"], an_hour(), LATER).await), ["a", "b", "c"]);
}

#[tokio::test]
async fn a_row_tells_of_the_gap_in_the_same_transaction() {
    let store = fresh().await;
    for (at, name) in [(3, "a"), (5, "b"), (9, "c"), (12, "d")] {
        one(&store, publish(event(name), at)).await.unwrap();
        if name != "b" {
            one(&store, finish(name, at, Outcome::Success)).await.unwrap();
        }
    }
    one(&store, Write::Persist(event("stored"), None)).await.unwrap();
    let swept = sweep(&store, &["a", "b", "c", "stored"], an_hour(), LATER).await;
    assert_eq!(swept.removed.len(), 3);
    assert_eq!(swept.removed[0].1.seq, Some(3));
    let gaps = store.removed(&hub(), 0).await.unwrap();
    let gap = crate::store::Removed {
        domain: Domain::parse("orders").unwrap(),
        first_seq: 3,
        last_seq: 9,
        events: 2,
    };
    assert_eq!(gaps, [gap], "what was only stored had no number");
    assert_eq!(sweep(&store, &["a"], an_hour(), LATER).await, Swept::default());
    assert_eq!(store.removed(&hub(), 0).await.unwrap().len(), 1, "nothing went, nothing is told");
}

#[tokio::test]
async fn rows_of_gaps_are_merged_and_still_tell_of_all_events() {
    let store = fresh().await;
    let gaps = format!(
        "INSERT INTO v1_removed (hub, domain, first_seq, last_seq, events) \
         SELECT 'HUB-1', 'd' || (n % 4), n * 10, n * 10 + 5, 2 FROM {} ORDER BY n",
        engines::numbers(4)
    );
    sql(&store, &gaps).await;
    let (before, mark) = store.removed_since(&hub(), 0, RemovedMark::default()).await.unwrap();
    one(&store, publish(event("a"), 200_000)).await.unwrap();
    one(&store, finish("a", 200_000, Outcome::Success)).await.unwrap();
    sweep(&store, &["a"], an_hour(), LATER).await;
    let row =
        rows(&store, "SELECT count(*), @whole(sum(events)), min(first_seq) FROM v1_removed").await.remove(0);
    let number = |index| row.try_get_by_index::<i64>(index).unwrap();
    assert!((4_900..5_100).contains(&number(0)), "{} rows", number(0));
    assert_eq!((number(1), number(2)), (20_001, 10));
    let after = store.removed(&hub(), 0).await.unwrap();
    assert_eq!(before[..], after[..4], "each domain's events and ends are the same");
    let (since, _) = store.removed_since(&hub(), 0, mark).await.unwrap();
    assert_eq!((since.len(), since[0].events), (1, 1), "what was told before isn't told again");
}

#[tokio::test]
async fn a_walk_meets_each_event_once_whatever_their_times() {
    let store = fresh().await;
    for number in 0..25_u64 {
        let at = AT + (number as i64 / 10);
        let event = crate::event::Event { timestamp: at, ..event(&format!("e{:02}", (number * 7) % 25)) };
        one(&store, publish(event, number + 1)).await.unwrap();
    }
    let domain = Domain::parse("orders").unwrap();
    let (policies, hub) = (policies(Policy::default()), hub());
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let rows =
            store.keep_page((&hub, &domain), after.as_ref(), AT + 1, 4, (&policies, LATER)).await.unwrap();
        let Some(last) = rows.last() else { break };
        after = Some(last.mark.clone());
        seen.extend(rows.iter().map(|row| row.seq.unwrap()));
    }
    seen.sort_unstable();
    assert_eq!(seen, (1..=20).collect::<Vec<_>>(), "what is younger isn't looked at");
    assert_eq!(store.next_domain("").await.unwrap(), Some(domain));
    assert_eq!(store.next_domain("orders").await.unwrap(), None);
    assert!(Pattern::any().matches("orders"));
}
