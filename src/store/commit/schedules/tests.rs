use sea_orm::sqlx::{Connection, Executor, SqliteConnection, sqlite::SqliteConnectOptions};

use super::{
    super::super::{MAX_DUE, Store, tests::*},
    *,
};
use crate::{
    event::{Data, Outcome, code},
    wire::Published,
};

fn now() -> i64 {
    time::now()
}

/// A schedule that comes now.
fn schedule(id_text: &str, due: i64) -> Write {
    Write::Schedule {
        event: Event { timestamp: now(), ..event(id_text) },
        due,
        publisher: uid("SPOKE-1"),
        replaces: None,
    }
}

fn cancel_of(event_id: &str) -> Write {
    Write::Cancel { event_id: id(event_id), by: uid("SPOKE-3"), hub: hub(), at: AT }
}

/// As the journal places it: at the millisecond of `seq`, here counted from `AT`.
fn running(event_id: &str, seq: u64) -> Running {
    Running { id: id(event_id), seq, timestamp: AT + signed(seq) }
}

fn run_due(events: &[(&str, u64)]) -> Write {
    let events = events.iter().map(|(event, seq)| running(event, *seq)).collect();
    Write::RunDue { events, hub: hub() }
}

fn word(answer: &Answer) -> String {
    match answer {
        Ok(Written::Scheduled { fresh: true, .. }) => "new".into(),
        Ok(Written::Scheduled { fresh: false, .. }) => "duplicate".into(),
        Ok(Written::Cancelled) => "cancelled".into(),
        Ok(Written::Ran(ran)) => ran.iter().map(|ran| format!("{}:{} ", ran.event.id, ran.seq)).collect(),
        Ok(other) => format!("{other:?}"),
        Err(error) => error.code().into(),
    }
}

async fn words(store: &Store, batch: Vec<Write>) -> Vec<String> {
    store.commit(batch).await.iter().map(word).collect()
}

async fn state(store: &Store, event_id: &str) -> String {
    store.trace(&id(event_id)).await.unwrap().map_or_else(|| "gone".into(), |(_, trace)| trace.state)
}

#[tokio::test]
async fn what_is_scheduled_is_stored_and_served_by_nobody_until_it_ran() {
    let store = fresh().await;
    let due = now() - 5;
    assert_eq!(words(&store, vec![schedule("e", due)]).await, ["new"]);
    let (_, trace) = store.trace(&id("e")).await.unwrap().unwrap();
    assert_eq!((trace.state.as_str(), trace.scheduled), ("scheduled", Some(due)));
    assert_eq!((trace.published, trace.hub, trace.seq), (None, None, None));
    assert_eq!(trace.publisher, Some(uid("SPOKE-1")), "who scheduled it");
    assert!(open_page(&store, 0, 9, 9_999).await.0.is_empty());
    let counts = store.counts(&hub()).await.unwrap();
    assert_eq!((counts.events, counts.published, counts.open), (1, 0, 0));
    let rounded = "SELECT @ms(scheduled) - (SELECT due FROM v1_schedule) FROM event_scheduled";
    assert!((0..1_000).contains(&number(&store, rounded).await));

    let answers = store.commit(vec![run_due(&[("e", 7)])]).await;
    let Ok(Written::Ran(ran)) = &answers[0] else { panic!("{answers:?}") };
    assert_eq!((ran.len(), ran[0].seq, ran[0].due), (1, 7, due));
    assert_eq!((&ran[0].event.data, ran[0].event.timestamp), (&event("e").data, AT + 7));
    assert_eq!(store.event(&id("e")).await.unwrap().as_ref(), Some(&ran[0].event), "it happened when it ran");
    let (_, trace) = store.trace(&id("e")).await.unwrap().unwrap();
    assert_eq!((trace.state.as_str(), trace.scheduled, trace.seq), ("orphan", Some(due), Some(7)));
    assert!(trace.published.unwrap() >= engines::held(due) && trace.hub == Some(hub()));
    assert_eq!(open_page(&store, 0, 9, 9_999).await.0[0].seq, 7);
    assert_eq!(store.last_seq(&hub()).await.unwrap(), 7);
    let all = "SELECT count(*) FROM event_scheduled s JOIN event_published p USING (event_id) WHERE \
               s.executed = s.success AND s.failed IS NULL AND p.hub = 'HUB-1' AND p.consumed_hub = @utc(p.published)";
    assert_eq!(number(&store, all).await, 1);
    one(&store, finish("e", 7, Outcome::Success)).await.unwrap();
}

fn instead(old: &str, write: Write) -> Write {
    let Write::Schedule { event, due, publisher, .. } = write else { panic!("{write:?}") };
    let replaces = Some(Replaced { event_id: id(old), hub: hub() });
    Write::Schedule { event, due, publisher, replaces }
}

#[tokio::test]
async fn one_that_takes_anothers_place_does_both_or_nothing_and_once() {
    let store = fresh().await;
    let due = now() + 60_000;
    store.commit(vec![schedule("a", due), schedule("ran", now() - 1), publish(event("p"), 1)]).await;
    store.commit(vec![run_due(&[("ran", 2)])]).await;
    let waiting = async || {
        let waiting = "SELECT event_id FROM v1_schedule v WHERE EXISTS (SELECT 1 FROM event_scheduled s \
                       WHERE s.event_id = v.event_id AND s.executed IS NULL) ORDER BY 1";
        texts(&store, waiting).await
    };
    let b = || instead("a", schedule("b", due + 1));
    assert_eq!(words(&store, vec![b()]).await, ["new"]);
    assert_eq!(words(&store, vec![b(), b()]).await, ["duplicate", "duplicate"], "said again");
    assert_eq!(waiting().await, ["b"]);
    assert_eq!(store.schedules_waiting(0).await.unwrap(), 1);

    // Its own place, with another time and other content; and in one batch with what it takes the place of.
    assert_eq!(words(&store, vec![instead("b", schedule("b", due + 2))]).await, ["new"]);
    assert_eq!(words(&store, vec![instead("b", schedule("b", due + 2))]).await, ["duplicate"]);
    let batch =
        vec![schedule("c", due), instead("c", schedule("d", due)), instead("d", schedule("d", due + 9))];
    assert_eq!(words(&store, batch).await, ["new", "new", "new"]);
    assert_eq!(waiting().await, ["b", "d"]);

    // What can't be done leaves everything as it was.
    let refused = [
        (instead("none", schedule("e", due)), code::SCHEDULE_NOT_FOUND),
        (instead("ran", schedule("e", due)), code::SCHEDULE_EXECUTED),
        (instead("b", schedule("e", 5)), code::SCHEDULE_INVALID_DATE),
        (instead("b", schedule("b", 5)), code::SCHEDULE_INVALID_DATE),
        (instead("b", schedule("d", due)), code::EVENT_CONFLICT),
        (instead("b", schedule("p", due)), code::EVENT_CONFLICT),
    ];
    let (writes, codes): (Vec<_>, Vec<_>) = refused.into_iter().unzip();
    assert_eq!(words(&store, writes).await, codes);
    let again = [schedule("b", due + 2), schedule("d", due + 9), instead("b", schedule("b", due + 2))];
    assert_eq!(words(&store, again.into()).await, ["duplicate"; 3]);
    assert_eq!(waiting().await, ["b", "d"]);
}

#[tokio::test]
async fn each_schedule_runs_once_whoever_tries() {
    let store = fresh().await;
    let due = now() - 1;
    store.commit(vec![schedule("a", due), schedule("b", due), schedule("c", due)]).await;
    let twice = vec![run_due(&[("b", 1), ("a", 2), ("b", 3)]), run_due(&[("a", 4), ("c", 5), ("none", 6)])];
    assert_eq!(words(&store, twice).await, ["a:2 b:3 ", "c:5 "]);
    assert_eq!(words(&store, vec![run_due(&[("a", 8), ("b", 9), ("c", 10)])]).await, [""]);
}

#[tokio::test]
async fn nothing_runs_before_its_time_by_the_clock_of_the_database() {
    let store = fresh().await;
    store.commit(vec![schedule("soon", now() + 60_000), schedule("past", now() - 1)]).await;
    assert_eq!(words(&store, vec![run_due(&[("soon", 1), ("past", 2)])]).await, ["past:2 "]);
    assert_eq!(state(&store, "soon").await, "scheduled");
    assert_eq!(store.schedules_waiting(0).await.unwrap(), 1);
}

#[tokio::test]
async fn what_others_scheduled_runs_too() {
    let store = fresh().await;
    let insert = |id: &str, published: &str, at: &str| {
        format!(
            "INSERT INTO event (id, domain, pid, name, data) VALUES ('{id}', 'orders', 'order-1', 'created', '1'); \
             {published} INSERT INTO event_scheduled (event_id, scheduled) VALUES ('{id}', '{at}')"
        )
    };
    let published = |id: &str, more: &str, values: &str| {
        format!("INSERT INTO event_published (event_id, publisher{more}) VALUES ('{id}', 'NPM-1'{values});")
    };
    let past = "2026-01-02 03:04:05";
    sql(&store, &insert("npm", &published("npm", "", ""), past)).await;
    sql(&store, &insert("bare", "", past)).await;
    sql(&store, &insert("taken", &published("taken", ", v1_hub, seq", ", 'HUB-9', 3"), past)).await;
    sql(&store, &insert("future", &published("future", "", ""), "2999-01-02 03:04:05")).await;
    let ran = words(&store, vec![run_due(&[("npm", 1), ("bare", 2), ("taken", 3), ("future", 4)])]).await;
    assert_eq!(ran, ["npm:1 bare:2 "], "one of another hub stays there");
    let publisher = "SELECT count(*) FROM event_published WHERE event_id = 'npm' AND publisher = 'NPM-1'";
    assert_eq!(number(&store, publisher).await, 1);
    let (_, trace) = store.trace(&id("bare")).await.unwrap().unwrap();
    assert_eq!((trace.publisher, trace.scheduled), (Some(hub()), Some(1_767_323_045_000)));
    assert_eq!(state(&store, "future").await, "scheduled");
    let timestamp = async |event_id| store.event(&id(event_id)).await.unwrap().unwrap().timestamp;
    assert_eq!((timestamp("npm").await, timestamp("bare").await), (AT + 1, AT + 2));
    assert!(timestamp("taken").await > AT + 4 && timestamp("future").await > AT + 4, "those keep theirs");
}

#[tokio::test]
async fn scheduling_twice_is_once_and_other_times_or_content_conflict() {
    let store = fresh().await;
    let due = now() + 60_000;
    let other = Event { data: Data::parse("2".to_owned()).unwrap(), timestamp: now(), ..event("e") };
    let other = Write::Schedule { event: other, due, publisher: uid("SPOKE-1"), replaces: None };
    let batch = vec![schedule("e", due), schedule("e", due), schedule("e", due + 1), other.clone()];
    let conflict = code::EVENT_CONFLICT;
    assert_eq!(words(&store, batch).await, ["new", "duplicate", conflict, conflict]);
    let error = one(&store, schedule("e", due + 1)).await.unwrap_err();
    assert!(error.to_string().contains(&time::utc(due)), "{error}");
    assert_eq!(words(&store, vec![other]).await, [conflict]);

    let duplicate = one(&store, publish(event("e"), 3)).await.unwrap();
    let Written::Published(Published { fresh: false, seq: 0, .. }) = duplicate else {
        panic!("{duplicate:?}")
    };
    assert_eq!(state(&store, "e").await, "scheduled", "it stays so");

    let past = now() - 59_000;
    assert_eq!(words(&store, vec![schedule("ran", past), run_due(&[("ran", 4)])]).await, ["new", "ran:4 "]);
    // As a try that comes long after it.
    let late = Write::Schedule {
        event: Event { timestamp: now() + 999_999, ..event("ran") },
        due: past,
        publisher: hub(),
        replaces: None,
    };
    assert_eq!(words(&store, vec![late]).await, ["duplicate"]);

    one(&store, publish(event("published"), 5)).await.unwrap();
    assert_eq!(words(&store, vec![schedule("published", due)]).await, [conflict]);
}

#[tokio::test]
async fn what_is_only_persisted_can_be_scheduled() {
    let store = fresh().await;
    let insert = "INSERT INTO event (id, timestamp, domain, pid, name, data) \
                  VALUES ('e', '2026-01-02 03:04:05.006', 'orders', 'order-1', 'created', '{\"a\":1}')";
    sql(&store, insert).await;
    assert_eq!(words(&store, vec![schedule("e", now() - 1), run_due(&[("e", 4)])]).await, ["new", "e:4 "]);
    assert_eq!(store.event(&id("e")).await.unwrap().unwrap().timestamp, AT + 4, "it happened when it ran");
}

#[tokio::test]
async fn dates_must_be_to_come_and_within_the_calendar() {
    let store = fresh().await;
    let bad = code::SCHEDULE_INVALID_DATE;
    let answers = vec![
        schedule("a", now() - 61_000),
        schedule("b", MAX_DUE + 1),
        schedule("c", i64::MIN),
        schedule("d", i64::MAX),
        schedule("e", now() - 55_000),
        schedule("f", MAX_DUE),
    ];
    assert_eq!(words(&store, answers).await, [bad, bad, bad, bad, "new", "new"]);
    let error = one(&store, schedule("a", AT - 999_999_999)).await.unwrap_err().to_string();
    assert!(error.contains(&time::utc(AT - 999_999_999)) && error.matches(" UTC").count() == 2, "{error}");
    assert_eq!(number(&store, "SELECT count(*) FROM event").await, 2);
}

#[tokio::test]
async fn a_cancel_takes_the_event_along_until_it_ran() {
    let store = fresh().await;
    one(&store, publish(event("published"), 1)).await.unwrap();
    store
        .commit(vec![schedule("e", now() + 9_999), schedule("ran", now() - 1), run_due(&[("ran", 2)])])
        .await;
    let batch =
        vec![cancel_of("e"), cancel_of("e"), cancel_of("ran"), cancel_of("published"), cancel_of("none")];
    let none = code::SCHEDULE_NOT_FOUND;
    assert_eq!(words(&store, batch).await, ["cancelled", none, code::SCHEDULE_EXECUTED, none, none]);
    assert_eq!(state(&store, "e").await, "gone");
    let left = "SELECT (SELECT count(*) FROM v1_schedule) + (SELECT count(*) FROM event_scheduled) \
                + (SELECT count(*) FROM event_published)";
    assert_eq!(number(&store, left).await, 4, "rows of those that ran or were published");
    // In the form of a deletion's line.
    let line = "SELECT @text(error) FROM log WHERE agent = 'HUB-1' \
                AND message = 'cancelled: the scheduled event \"e\", by SPOKE-3'";
    let lines = texts(&store, line).await;
    let line: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!((lines.len(), line), (1, serde_json::json!({ "by": "SPOKE-3", "id": "e", "count": 1 })));
}

#[tokio::test]
async fn a_batch_is_taken_in_the_order_in_which_it_came() {
    let store = fresh().await;
    let due = now() + 60_000;
    let answers = |id_text: &str, rid: &str| Event { rid: Some(id(rid)), timestamp: now(), ..event(id_text) };
    let batch = vec![
        schedule("a", due),
        publish(answers("b", "a"), 1),
        Write::Schedule { event: answers("c", "b"), due, publisher: hub(), replaces: None },
        cancel_of("a"),
        publish(event("a"), 2),
        schedule("d", due),
        cancel_of("d"),
        schedule("d", due),
    ];
    let answers = words(&store, batch).await;
    let fresh =
        |seq| format!("Published(Published {{ fresh: true, timestamp: {AT}, seq: {seq}, state: None }})");
    assert!(answers[1].contains("fresh: true"), "{answers:?}");
    assert_eq!(answers[4], fresh(2));
    let others: Vec<_> = [0, 2, 3, 5, 6, 7].iter().map(|at| answers[*at].as_str()).collect();
    assert_eq!(others, ["new", "new", "cancelled", "new", "cancelled", "new"]);
    let unknown = Write::Schedule {
        event: Event { rid: Some(id("x")), ..event("y") },
        due: AT,
        publisher: hub(),
        replaces: None,
    };
    assert_eq!(words(&store, vec![unknown]).await, [code::RID_NOT_FOUND]);
}

/// Crash points: a hub that is killed leaves either nothing of a run or all of it.
#[tokio::test]
async fn a_run_that_was_cut_off_before_its_commit_comes_again_and_one_after_it_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let config = engines::kept(&folder).await;
    let store = file(&config).await;
    one(&store, schedule("e", now() - 1)).await.unwrap();
    let transaction = store.writer.begin().await.unwrap();
    assert_eq!(run(&transaction.db(), &[running("e", 7)], &hub()).await.unwrap().len(), 1);
    // The process ends here: nobody commits.
    drop(transaction);
    store.close().await;

    let store = file(&config).await;
    assert_eq!(state(&store, "e").await, "scheduled");
    assert_eq!(store.due_page(0, now(), 9).await.unwrap().0.len(), 1);
    assert_eq!(words(&store, vec![run_due(&[("e", 8)])]).await, ["e:8 "]);
    // And here: nobody was told.
    store.close().await;

    let store = file(&config).await;
    assert!(store.due_page(0, now(), 9).await.unwrap().0.is_empty());
    assert_eq!(words(&store, vec![run_due(&[("e", 9)])]).await, [""]);
    assert_eq!(open_page(&store, 0, 9, 9_999).await.0[0].seq, 8, "consumers get it all the same");
}

#[tokio::test]
async fn a_full_database_refuses_schedules_and_runs_what_is_due() {
    if engines::is_only_for_sqlite("a file that is full") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let store = file(&crate::store::StoreConfig { max_bytes: Some(1 << 20), ..in_file(&folder) }).await;
    one(&store, schedule("e", now() - 1)).await.unwrap();
    let large = |id_text: &str| {
        let event = Event {
            data: Data::from_value(&"x".repeat(700_000)).unwrap(),
            timestamp: now(),
            ..event(id_text)
        };
        Write::Schedule { event, due: now(), publisher: hub(), replaces: None }
    };
    let answers = words(&store, vec![large("a"), run_due(&[("e", 3)]), large("b")]).await;
    assert_eq!(answers, [code::DB_FULL, "e:3 ", code::DB_FULL]);
}

#[tokio::test]
async fn a_locked_database_refuses_a_run_as_retryable() {
    if engines::is_only_for_sqlite("a lock of a whole file") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let store = file(&in_file(&folder)).await;
    one(&store, schedule("e", now() - 1)).await.unwrap();
    let options = SqliteConnectOptions::new().filename(folder.path().join("eventflow.db"));
    let mut other = SqliteConnection::connect_with(&options).await.unwrap();
    other.execute("BEGIN IMMEDIATE").await.unwrap();
    let error = one(&store, run_due(&[("e", 1)])).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    other.execute("ROLLBACK").await.unwrap();
    assert_eq!(words(&store, vec![run_due(&[("e", 2)])]).await, ["e:2 "]);
}
