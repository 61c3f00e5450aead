use sea_orm::ConnectionTrait;

use super::{
    super::super::{Place, Store, StoreConfig, occurrence_id, tests::*},
    *,
};
use crate::{
    event::code,
    wire::{Missed, PublishState, Published},
};

fn name(text: &str) -> RecurringName {
    RecurringName::parse(text.to_owned()).unwrap()
}

fn recurring(rule: &str) -> Recurring {
    let event = event("e");
    Recurring::new(event.domain, event.name, rule.to_owned())
}

fn recur(name_text: &str, what: Recurring, replace: bool) -> Write {
    let recur = Recur { name: name(name_text), replace, what, data: event("e").data };
    Write::Recur { recur: Box::new(recur), by: uid("SPOKE-1"), hub: hub(), at: AT }
}

fn change(name_text: &str, change: RecurChange) -> Write {
    Write::RecurChange { name: name(name_text), change, by: uid("SPOKE-1"), hub: hub(), at: AT }
}

fn run(names: &[&str], first: u64) -> Write {
    let places = (first..first + 300).map(|seq| (seq, AT)).collect();
    Write::RunRecurring { names: names.iter().map(|text| name(text)).collect(), places, hub: hub() }
}

fn extra(name_text: &str, event_id: &str, seq: u64) -> Write {
    Write::RunExtra {
        name: name(name_text),
        id: id(event_id),
        seq,
        timestamp: AT,
        by: uid("SPOKE-3"),
        hub: hub(),
    }
}

/// As if the schedule had been made so long ago, and nothing had run since.
async fn age(store: &Store, ms: i64) {
    sql(store, &format!("UPDATE v1_recurring SET made = made - {ms}, due = due - {ms}")).await;
}

async fn ran(store: &Store, names: &[&str], first: u64) -> Vec<super::super::super::Recurred> {
    match one(store, run(names, first)).await.unwrap() {
        Written::Recurred(recurred) => recurred,
        other => panic!("{other:?}"),
    }
}

async fn word(store: &Store, write: Write) -> String {
    match one(store, write).await {
        Ok(Written::Recurring { made, .. }) => made.as_str().into(),
        Ok(other) => format!("{other:?}"),
        Err(error) => error.code().into(),
    }
}

#[tokio::test]
async fn the_same_again_is_a_duplicate_and_other_content_a_conflict_unless_it_replaces() {
    let store = fresh().await;
    let berlin = Recurring { zone: "europe/berlin".into(), ..recurring("@daily") };
    assert_eq!(word(&store, recur("a", berlin.clone(), false)).await, "new");
    let (shown, data) = store.recurring(&name("a"), 2, time::now()).await.unwrap();
    assert_eq!((shown.state.what.zone.as_str(), data), ("Europe/Berlin", event("e").data));
    assert_eq!((shown.runs.len(), shown.state.next), (2, Some(shown.runs[0].due)));
    assert!(shown.runs[0].local.contains("T00:00:00+0"), "{:?}", shown.runs);

    let paused = Recurring { zone: "Europe/Berlin".into(), paused: true, ..berlin.clone() };
    for replace in [false, true] {
        assert_eq!(word(&store, recur("a", paused.clone(), replace)).await, "duplicate");
    }
    let hourly = Recurring { rule: "@hourly".into(), ..berlin };
    let error = one(&store, recur("a", hourly.clone(), false)).await.unwrap_err();
    assert_eq!(error.code(), code::RECURRING_CONFLICT);
    assert!(error.to_string().contains("another rule"), "{error}");
    assert_eq!(word(&store, recur("a", hourly, true)).await, "replaced");
    assert_eq!(number(&store, "SELECT count(*) FROM log WHERE message LIKE 'replaced: %'").await, 1);
    for (what, expected) in [
        (recurring("61 * * * *"), code::INVALID_RULE),
        (recurring("0 0 30 2 *"), code::INVALID_RULE),
        (Recurring { zone: "Mars".into(), ..recurring("@daily") }, code::INVALID_ZONE),
        (Recurring { end: Some(5), ..recurring("@daily") }, code::INVALID_RULE),
        (Recurring { window_ms: 999, ..recurring("@daily") }, code::INVALID_RULE),
    ] {
        assert_eq!(word(&store, recur("b", what, false)).await, expected);
    }
    assert_eq!(store.recurring_page("", 9).await.unwrap().0.len(), 1, "of what is refused nothing is left");
}

#[tokio::test]
async fn a_run_publishes_and_moves_on_in_one_transaction_and_once() {
    let store = fresh().await;
    let what = Recurring { pid: Some(event("e").pid), ..recurring("@every 60s") };
    one(&store, recur("a", what, false)).await.unwrap();
    assert!(ran(&store, &["a", "none"], 1).await.is_empty(), "it isn't due");
    age(&store, 60_000).await;
    let due = number(&store, "SELECT due FROM v1_recurring").await;
    assert_eq!(store.recurring_due(due - 1, 9).await.unwrap().0, []);
    assert_eq!(store.recurring_due(due, 9).await.unwrap().0[0].id, name("a"));

    let recurred = ran(&store, &["a"], 7).await;
    let [one] = recurred.as_slice() else { panic!("{recurred:?}") };
    assert_eq!((one.ran.len(), one.late, one.left_out), (1, 0, 0));
    assert_eq!(one.next.as_ref().map(|next| next.due), Some(due + 60_000));
    let event = &one.ran[0].event;
    assert_eq!((&event.id, one.ran[0].seq, one.ran[0].due), (&occurrence_id(&name("a"), due), 7, due));
    let (stored, trace) = store.trace(&event.id).await.unwrap().unwrap();
    assert_eq!(&stored, event);
    assert_eq!((trace.recurring, trace.scheduled, trace.seq), (Some(name("a")), Some(due), Some(7)));
    assert_eq!((trace.publisher, trace.hub), (Some(uid("SPOKE-1")), Some(hub())));
    assert_eq!(store.last_seq(&hub()).await.unwrap(), 7);

    assert!(ran(&store, &["a"], 400).await.is_empty(), "once");
    // Somebody sets it back: the key of the occurrence still holds.
    sql(&store, &format!("UPDATE v1_recurring SET due = {due}")).await;
    let again = ran(&store, &["a"], 800).await;
    assert!(again[0].ran.is_empty() && again[0].next.is_some(), "{again:?}");
    assert_eq!(number(&store, "SELECT count(*) FROM v1_occurrence").await, 1);
}

#[tokio::test]
async fn what_was_missed_runs_by_its_policy_and_the_rest_is_told() {
    let store = fresh().await;
    for (text, missed) in [("once", Missed::Once), ("all", Missed::All), ("skip", Missed::Skip)] {
        let what = Recurring { missed, window_ms: 600_000, ..recurring("@every 60s") };
        one(&store, recur(text, what, false)).await.unwrap();
    }
    age(&store, 3_630_000).await;
    let recurred = ran(&store, &["all", "once", "skip"], 1).await;
    let of = |text: &str| recurred.iter().find(|recurred| recurred.name == *text).unwrap();
    assert_eq!((of("once").ran.len(), of("once").late, of("once").left_out), (1, 1, 59));
    assert_eq!((of("all").ran.len(), of("all").late, of("all").left_out), (10, 10, 50));
    assert_eq!((of("skip").ran.len(), of("skip").late, of("skip").left_out), (0, 0, 60));
    let seqs: Vec<u64> = recurred.iter().flat_map(|recurred| &recurred.ran).map(|ran| ran.seq).collect();
    assert!(seqs.is_sorted() && seqs.len() == 11, "{seqs:?}");
    assert_eq!(number(&store, "SELECT count(*) FROM log WHERE message LIKE 'left out: %'").await, 3);
    let state = store.recurring(&name("once"), 1, time::now()).await.unwrap().0.state;
    assert_eq!((state.ran, state.left_out, state.last.is_some()), (1, 59, true));
}

#[tokio::test]
async fn a_long_absence_is_made_up_for_step_by_step() {
    let store = fresh().await;
    let what = Recurring { missed: Missed::All, ..recurring("@every 10s") };
    one(&store, recur("a", what, false)).await.unwrap();
    age(&store, 20_000_000).await;
    let (mut all, mut left_out, mut first) = (0, 0, 1);
    loop {
        let recurred = ran(&store, &["a"], first).await;
        let Some(step) = recurred.first() else { break };
        assert!(step.ran.len() <= 64);
        all += step.ran.len();
        left_out += step.left_out;
        first += 1_000;
    }
    assert!((1_000..=1_001).contains(&all), "{all}");
    assert!((999..=1_001).contains(&left_out), "{left_out}");
}

#[tokio::test]
async fn replaced_or_paused_while_due_it_doesnt_run_and_resumed_it_skips() {
    let store = fresh().await;
    one(&store, recur("a", recurring("@every 60s"), false)).await.unwrap();
    age(&store, 3_600_000).await;
    one(&store, recur("a", recurring("@every 90s"), true)).await.unwrap();
    assert!(ran(&store, &["a"], 1).await.is_empty());

    age(&store, 3_600_000).await;
    assert_eq!(one(&store, change("a", RecurChange::Pause)).await.unwrap(), Written::Changed(None));
    assert!(ran(&store, &["a"], 1).await.is_empty());
    assert!(store.recurring_due(i64::MAX, 9).await.unwrap().0.is_empty());
    let before = time::now();
    let Written::Changed(Some(next)) = one(&store, change("a", RecurChange::Resume)).await.unwrap() else {
        panic!("it has a next run");
    };
    assert!(next.due > before, "what it missed is skipped");
    assert!(ran(&store, &["a"], 1).await.is_empty());
    assert_eq!(one(&store, change("a", RecurChange::Resume)).await.unwrap(), Written::Changed(Some(next)));

    one(&store, change("a", RecurChange::Remove)).await.unwrap();
    for wanted in [RecurChange::Pause, RecurChange::Resume, RecurChange::Remove] {
        assert_eq!(one(&store, change("a", wanted)).await.unwrap_err().code(), code::RECURRING_NOT_FOUND);
    }
}

#[tokio::test]
async fn a_run_by_itself_leaves_the_times_alone_and_is_one_under_its_id() {
    let store = fresh().await;
    one(&store, recur("a", recurring("@hourly"), false)).await.unwrap();
    one(&store, publish(event("taken"), 1)).await.unwrap();
    let due = number(&store, "SELECT due FROM v1_recurring").await;
    let answers = store.commit(vec![extra("a", "x", 5), extra("a", "x", 6), extra("a", "y", 7)]).await;
    let published = |answer: &Answer| match answer {
        Ok(Written::RanExtra(_, published)) => *published,
        other => panic!("{other:?}"),
    };
    assert_eq!(published(&answers[0]), Published::fresh(AT, 5));
    assert_eq!(
        published(&answers[1]),
        Published { fresh: false, timestamp: AT, seq: 5, state: Some(PublishState::Pending) }
    );
    assert!(published(&answers[2]).fresh);
    let (event, trace) = store.trace(&id("x")).await.unwrap().unwrap();
    assert_eq!((event.pid.as_str(), trace.recurring, trace.scheduled), ("x", Some(name("a")), None));
    assert_eq!(trace.publisher, Some(uid("SPOKE-3")));
    assert_eq!(one(&store, extra("a", "taken", 9)).await.unwrap_err().code(), code::EVENT_CONFLICT);
    assert_eq!(one(&store, extra("none", "z", 9)).await.unwrap_err().code(), code::RECURRING_NOT_FOUND);
    assert_eq!(number(&store, "SELECT due FROM v1_recurring").await, due);
    assert_eq!(number(&store, "SELECT ran FROM v1_recurring").await, 2);
}

#[tokio::test]
async fn a_rule_that_somebody_else_broke_rests_and_is_told() {
    let store = fresh().await;
    for text in ["a", "b"] {
        one(&store, recur(text, recurring("@every 60s"), false)).await.unwrap();
    }
    age(&store, 61_000).await;
    sql(&store, "UPDATE v1_recurring SET rule = 'now and then' WHERE name = 'a'").await;
    let recurred = ran(&store, &["a", "b"], 1).await;
    let broken = recurred.iter().find(|recurred| recurred.broken.is_some()).unwrap();
    assert_eq!((broken.name.as_str(), broken.ran.len(), &broken.next), ("a", 0, &None));
    assert!(recurred.iter().any(|recurred| recurred.name == *"b" && recurred.ran.len() == 1));
    assert!(store.recurring_due(i64::MAX, 9).await.unwrap().0.iter().all(|due| due.id == *"b"));
    assert_eq!(number(&store, "SELECT count(*) FROM log WHERE message LIKE '%can''t run%'").await, 1);
}

/// What a run changes: the schedule, its events and the hub's number.
async fn stands(store: &Store) -> (i64, i64, i64, i64, u64) {
    (
        number(store, "SELECT due FROM v1_recurring").await,
        number(store, "SELECT ran FROM v1_recurring").await,
        number(store, "SELECT count(*) FROM event_published").await,
        number(store, "SELECT count(*) FROM v1_occurrence").await,
        store.last_seq(&hub()).await.unwrap(),
    )
}

/// Crash points: a hub that is killed leaves either nothing of a run or all of it.
#[tokio::test]
async fn a_run_that_was_cut_off_before_its_commit_comes_again_and_one_after_it_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let store = file(&in_file(&folder)).await;
    one(&store, recur("a", recurring("@every 60s"), false)).await.unwrap();
    age(&store, 60_000).await;
    let before = stands(&store).await;
    let transaction = store.writer.begin().await.unwrap();
    let recurred = run::due(&transaction.db(), &[name("a")], &[(7, AT)], &hub()).await.unwrap();
    assert_eq!(recurred[0].ran.len(), 1);
    // The process ends here: nobody commits.
    drop(transaction);
    store.close().await;

    let store = file(&in_file(&folder)).await;
    assert_eq!(stands(&store).await, before);
    assert_eq!(ran(&store, &["a"], 8).await[0].ran[0].seq, 8);
    let after = stands(&store).await;
    assert_eq!(after, (before.0 + 60_000, 1, 1, 1, 8));
    // And here: nobody was told.
    store.close().await;

    let store = file(&in_file(&folder)).await;
    assert!(ran(&store, &["a"], 9).await.is_empty());
    assert_eq!(stands(&store).await, after);
    assert_eq!(open_page(&store, 0, 9, 9_999).await.0[0].seq, 8, "consumers get it all the same");
}

#[tokio::test]
async fn a_run_that_fails_in_any_of_its_statements_leaves_nothing() {
    // Triggers in SQLite's words.
    let store = file(&StoreConfig::new(Place::Memory)).await;
    one(&store, recur("a", recurring("@every 60s"), false)).await.unwrap();
    age(&store, 60_000).await;
    let before = stands(&store).await;
    // Of each table that a run writes: none is written without the others.
    for write in
        ["UPDATE ON v1_recurring", "INSERT ON event", "INSERT ON event_published", "INSERT ON v1_occurrence"]
    {
        let trouble =
            format!("CREATE TRIGGER trouble BEFORE {write} BEGIN SELECT RAISE(ABORT, 'trouble'); END");
        // Whole: a trigger has a semicolon within.
        store.writer.raw().execute_unprepared(&trouble).await.unwrap();
        for run in [run(&["a"], 7), extra("a", "x", 7)] {
            assert_eq!(one(&store, run).await.unwrap_err().code(), code::DB_FAULT, "{write}");
            assert_eq!(stands(&store).await, before, "{write}");
        }
        sql(&store, "DROP TRIGGER trouble").await;
    }
    assert_eq!(ran(&store, &["a"], 7).await[0].ran.len(), 1);
    one(&store, extra("a", "x", 308)).await.unwrap();
    assert_eq!(stands(&store).await, (before.0 + 60_000, 2, 2, 2, 308));
}
