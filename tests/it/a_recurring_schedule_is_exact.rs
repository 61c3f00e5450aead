//! Promise: a recurring schedule publishes once for each time of its rule, never before it; what it missed runs or is left out
//! by its policy, and is told; whatever happens to the hub meanwhile.
//!
//! 1,000 schedules; the hub is killed 4 times while they are due again and again, and each is followed until all times that
//! its rule says have run, two at least. `EVENTFLOW_TEST_LONG=1` makes that 20 times in
//! a minute. `EVENTFLOW_TEST_SEED` repeats a run.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use eventflow::{
    event::code,
    metrics::ActorKind,
    spoke::{Delivery, Recurrence, Since, Spoke},
    wire::{Made, Missed},
};
use sea_orm::{ConnectionTrait, DatabaseConnection};
use tokio::time::sleep;

use crate::support::{Raw, TestHub, engine, load, process::Home, until};

fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

async fn database(path: &Path) -> DatabaseConnection {
    engine::open(path).await
}

async fn sql(path: &Path, text: &str) {
    let database = database(path).await;
    database.execute_unprepared(text).await.unwrap();
    database.close().await.unwrap();
}

/// One that a recurring schedule has published.
struct Occurrence {
    /// None: it was run by itself.
    due: Option<i64>,
    /// The time of its dispatch, in microseconds.
    seq: i64,
}

/// By schedule, in the order of their times.
async fn occurrences(path: &Path) -> BTreeMap<String, Vec<Occurrence>> {
    let database = database(path).await;
    let query = "SELECT o.name, o.due, p.seq FROM v1_occurrence o JOIN event_published p ON p.event_id = o.event_id \
                 ORDER BY o.name, o.due, p.seq";
    let mut all: BTreeMap<String, Vec<Occurrence>> = BTreeMap::new();
    for row in database.query_all_raw(engine::statement(&database, query, [])).await.unwrap() {
        let occurrence =
            Occurrence { due: row.try_get_by_index(1).unwrap(), seq: row.try_get_by_index(2).unwrap() };
        all.entry(row.try_get_by_index(0).unwrap()).or_default().push(occurrence);
    }
    database.close().await.unwrap();
    all
}

/// Each time from the first to the last ran, once, none early; how late they were, in milliseconds, rising.
fn exact(name: &str, start: i64, interval: i64, ran: &[Occurrence], late: &mut Vec<f64>) {
    let timed: Vec<(i64, i64)> = ran.iter().filter_map(|ran| Some((ran.due?, ran.seq))).collect();
    for (at, (due, seq)) in timed.iter().enumerate() {
        let expected = start + i64::try_from(at).unwrap() * interval;
        assert_eq!(*due, expected, "{name}: none is doubled, none is missing");
        assert!(*seq >= due * 1_000, "{name} was early by {} µs", due * 1_000 - seq);
        late.push((seq - due * 1_000) as f64 / 1e3);
    }
}

/// How the schedules stand: name, next time, runs, times left out.
async fn standing(path: &Path) -> Vec<(String, i64, i64, i64)> {
    let database = database(path).await;
    let query = "SELECT name, due, ran, left_out FROM v1_recurring";
    let query = engine::statement(&database, query, []);
    let rows = database.query_all_raw(query).await.unwrap();
    let all = rows.iter().map(|row| {
        let number = |at| row.try_get_by_index(at).unwrap();
        (row.try_get_by_index(0).unwrap(), number(1), number(2), number(3))
    });
    let all = all.collect();
    database.close().await.unwrap();
    all
}

type Seen = Arc<Mutex<BTreeMap<String, usize>>>;

/// Notes what a subscriber gets, over all restarts and without a gap.
async fn watch(spoke: &Spoke) -> Seen {
    let seen = Seen::default();
    let mut subscription = spoke.subscribe_from("alarms", "*", Since::All).await.unwrap();
    let book = seen.clone();
    tokio::spawn(async move {
        while let Some(next) = subscription.next().await {
            if let Delivery::Event { event, .. } = next {
                *book.lock().unwrap().entry(event.id.to_string()).or_default() += 1;
            }
        }
    });
    seen
}

fn seed() -> u64 {
    let seed = std::env::var("EVENTFLOW_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("EVENTFLOW_TEST_SEED={seed}");
    seed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_again_and_again_a_thousand_schedules_run_each_time_once() {
    const INTERVAL: i64 = 4_000;
    let (span, kills) = if load::is_long() { (60_000, 20) } else { (8_000, 4) };
    let mut random = fastrand::Rng::with_seed(seed());
    let home = Home::new();
    let mut hub = home.start().await;
    let spoke = home.spoke().await;
    let seen = watch(&spoke).await;
    let bundle = eventflow::pki::Bundle::read(home.data().join("operator.toml")).unwrap();
    let mut raw = Raw::connect(&bundle, ("127.0.0.1", home.port())).await.greeted().await;

    // A server takes its time for each of them.
    let (rounds, from) = if engine::server().is_some() { (1, now() + 15_000) } else { (5, now() + 6_000) };
    let schedules = 200 * rounds;
    let mut starts = BTreeMap::new();
    for round in 0..rounds {
        // As many as a link may have waiting, and fewer.
        let numbers: Vec<usize> = (200 * round..200 * (round + 1)).collect();
        for number in &numbers {
            let (name, start) = (format!("timer-{number}"), from + random.i64(0..INTERVAL));
            let missed = ["once", "all", "skip"][number % 3];
            let what = serde_json::json!({
                "domain": "alarms", "event": "rang", "rule": "@every 4s", "missed": missed, "start": start,
            });
            raw.send(&["recur", &(number + 1).to_string(), &name, "create", &what.to_string(), "1"]).await;
            starts.insert(name, start);
        }
        for number in numbers {
            let answer = raw.reply(&(number + 1).to_string()).await;
            assert_eq!((&*answer[2], &*answer[4]), ("recurring", "new"), "{answer:?}");
        }
    }
    drop(raw);
    assert!(now() < from, "the machine is too slow to make {schedules} schedules in time");
    let first = *starts.values().min().unwrap();
    until("the first is due", || async { now() > first }).await;
    let mut killed = Vec::new();
    for _ in 0..kills {
        let pause = random.i64(0..2 * span / i64::from(kills));
        sleep(Duration::from_millis(u64::try_from(pause / 2 + 200).unwrap())).await;
        killed.push(now());
        hub.kill().await;
        hub = home.start().await;
    }
    let in_midst = killed.iter().filter(|at| **at > first).count();
    assert!(in_midst >= 2, "{in_midst} kills fell in the time in which they are due");
    // Whatever else becomes due while this waits: up to here each time must have run.
    let upto = now().max(from + 2 * INTERVAL);
    until("all that was due so far has run", || async {
        let all = standing(&home.database()).await;
        all.len() == schedules && all.iter().all(|(_, due, ..)| *due > upto)
    })
    .await;
    let by_rule = |start: i64| (upto - start) / INTERVAL + 1;
    let least = usize::try_from(starts.values().map(|start| by_rule(*start)).sum::<i64>()).unwrap();
    until("a subscriber has seen as many", || async { seen.lock().unwrap().len() >= least }).await;
    spoke.close().await;
    hub.signal("TERM");
    assert_eq!(hub.ended().await.code(), Some(0));
    assert!(!home.words().contains("panicked"), "{}", home.words());

    let all = occurrences(&home.database()).await;
    assert_eq!(all.len(), schedules);
    let mut late = Vec::new();
    for (name, start) in &starts {
        exact(name, *start, INTERVAL, &all[name], &mut late);
    }
    for (name, due, ran, left_out) in standing(&home.database()).await {
        let (count, start) = (i64::try_from(all[&name].len()).unwrap(), starts[&name]);
        assert_eq!((ran, left_out), (count, 0), "{name}");
        assert_eq!(due, start + count * INTERVAL, "{name}: each time has run or is yet to come");
        let by_rule = by_rule(start);
        assert!(
            by_rule >= 2 && count >= by_rule,
            "{name} ran {count} times; by its rule, {by_rule} at least"
        );
    }
    late.sort_by(f64::total_cmp);
    let at = |share: f64| late[((late.len() - 1) as f64 * share) as usize];
    println!(
        "{kills} times kill -9: {} runs of 1,000 schedules, none early, none doubled, none missing; late by {:.1} ms \
         (median), {:.1} ms (p99)",
        late.len(),
        at(0.5),
        at(0.99)
    );
    let twice = seen.lock().unwrap().values().filter(|times| **times > 1).count();
    assert_eq!(twice, 0, "a subscriber got some twice");
}

#[tokio::test]
async fn what_was_missed_while_no_hub_was_up_runs_by_its_policy_and_is_counted() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    for (name, missed) in [("once", Missed::Once), ("all", Missed::All), ("skip", Missed::Skip)] {
        let recurrence = Recurrence::new(name, "@every 1m", "alarms", "rang").missed(missed);
        let recurrence = recurrence.window(Duration::from_secs(600));
        assert_eq!(spoke.recur(recurrence).await.unwrap().made, Made::New);
    }
    spoke.close().await;
    let path = hub.database();
    let folder = hub.stop().await;
    // As if the hub had been away for an hour.
    sql(&path, "UPDATE v1_recurring SET made = made - 3630000, due = due - 3630000").await;

    let hub = TestHub::on(folder, |_| {}).await;
    let left_out = 59 + 50 + 60;
    until("all is accounted for", || async {
        let metrics = hub.handle.metrics().hub;
        (metrics.recurring_runs, metrics.recurring_left_out) == (1 + 10, left_out)
    })
    .await;
    assert_eq!(hub.handle.metrics().hub.recurring_missed, 11);
    assert_eq!(hub.handle.metrics().hub.clock_skew_ms, 0, "on SQLite both clocks are one");
    let spoke = hub.spoke().await;
    for (name, ran, left_out) in [("once", 1, 59), ("all", 10, 50), ("skip", 0, 60)] {
        let state = spoke.recurring(name, 1).await.unwrap().shown.state;
        assert_eq!((state.ran, state.left_out), (ran, left_out), "{name}");
        assert!(state.next.unwrap() > now(), "{name}: it goes on");
    }
    let names: Vec<_> = spoke
        .recurring_schedules()
        .page_size(2)
        .collect()
        .await
        .unwrap()
        .into_iter()
        .map(|s| s.name.to_string())
        .collect();
    assert_eq!(names, ["all", "once", "skip"]);
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_by_itself_beside_its_times_paused_resumed_and_over_a_panic_it_stays_exact() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let seen = watch(&spoke).await;
    let start = now() + 300;
    let recurrence = Recurrence::new("pulse", "@every 1s", "alarms", "rang").start(start).pid("p");
    spoke.recur(recurrence.clone()).await.unwrap();
    assert_eq!(spoke.recur(recurrence).await.unwrap().made, Made::Duplicate);
    let mut extra = BTreeSet::new();
    while now() < start + 2_500 {
        // Some of them in the very moment in which it is due.
        let ran = spoke.run_recurring("pulse").await.unwrap();
        assert!(ran.published.fresh);
        extra.insert(ran.id.to_string());
        sleep(Duration::from_millis(23)).await;
    }
    hub.handle.inject_panic(ActorKind::Scheduler);
    until("it runs on", || async {
        spoke.recurring("pulse", 1).await.is_ok_and(|details| details.shown.state.last > Some(start + 3_500))
    })
    .await;
    spoke.pause_recurring("pulse").await.unwrap();
    let paused = spoke.recurring("pulse", 3).await.unwrap().shown;
    assert_eq!((paused.state.next, paused.runs.len()), (None, 3));
    until("two of its times pass", || async { now() > paused.runs[1].due + 50 }).await;
    let resumed = now();
    spoke.resume_recurring("pulse").await.unwrap();
    let after = spoke.recurring("pulse", 1).await.unwrap().shown.state;
    assert!(after.next.unwrap() >= resumed, "what it missed is skipped");
    assert_eq!(after.last, paused.state.last, "it rested");
    until("it runs again", || async {
        spoke.recurring("pulse", 1).await.is_ok_and(|details| details.shown.state.last > after.last)
    })
    .await;
    spoke.remove_recurring("pulse").await.unwrap();
    let gone = spoke.recurring("pulse", 1).await.unwrap_err();
    assert_eq!(gone.code(), code::RECURRING_NOT_FOUND);

    let id = extra.first().unwrap();
    let (event, trace) = spoke.show(id).await.unwrap();
    assert_eq!((event.pid.as_str(), trace.recurring.as_deref(), trace.scheduled), ("p", Some("pulse"), None));
    let path = hub.database();
    let all = occurrences(&path).await.remove("pulse").unwrap();
    until("a subscriber has all of them", || async { seen.lock().unwrap().len() == all.len() }).await;
    assert!(seen.lock().unwrap().values().all(|times| *times == 1));
    assert_eq!(all.iter().filter(|ran| ran.due.is_none()).count(), extra.len());
    let before: Vec<_> =
        all.into_iter().filter(|ran| ran.due.is_some_and(|due| Some(due) <= paused.state.last)).collect();
    assert!(before.len() >= 4);
    exact("pulse", start, 1_000, &before, &mut Vec::new());
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn what_another_program_changes_in_the_database_is_noticed() {
    let hub = TestHub::with(|config| config.schedules.poll = Duration::from_millis(200)).await;
    let spoke = hub.spoke().await;
    spoke.recur(Recurrence::new("yearly", "@yearly", "alarms", "rang").paused()).await.unwrap();
    let due = now() - 1_000;
    sql(&hub.database(), &format!("UPDATE v1_recurring SET paused = FALSE, due = {due}")).await;
    until("it ran", || async { hub.handle.metrics().hub.recurring_runs == 1 }).await;
    let state = spoke.recurring("yearly", 1).await.unwrap().shown.state;
    assert_eq!((state.last, state.ran), (Some(due), 1));
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn what_is_wrong_is_said_and_what_stands_is_kept_where_nobody_may_delete() {
    let hub = TestHub::with(|config| config.spokes.may_delete = false).await;
    let spoke = hub.spoke().await;
    let of = |rule: &str| Recurrence::new("a", rule.to_owned(), "alarms", "rang");
    for (recurrence, expected, words) in [
        (of("0 25 * * *"), code::INVALID_RULE, "the hour \"25\" at character 3"),
        (of("0 0 30 2 *"), code::INVALID_RULE, "is never due"),
        (of("@every 10ms"), code::INVALID_RULE, "due too often"),
        (of("@daily").zone("Europe/Berln"), code::INVALID_ZONE, "did you mean Europe/Berlin?"),
        (of("@daily").end(now() - 5), code::INVALID_RULE, "between its start and its end"),
        (Recurrence::new(" a", "@daily", "alarms", "rang"), code::INVALID_RECURRING, "space"),
    ] {
        let error = spoke.recur(recurrence).await.unwrap_err();
        assert_eq!(error.code(), expected, "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
    spoke.recur(of("@daily")).await.unwrap();
    assert_eq!(spoke.recur(of("@hourly")).await.unwrap_err().code(), code::RECURRING_CONFLICT);
    assert_eq!(spoke.recur(of("@hourly").replace()).await.unwrap_err().code(), code::NOT_ALLOWED);
    assert_eq!(spoke.remove_recurring("a").await.unwrap_err().code(), code::NOT_ALLOWED);
    spoke.pause_recurring("a").await.unwrap();
    for unknown in [spoke.pause_recurring("b").await, spoke.run_recurring("b").await.map(drop)] {
        assert_eq!(unknown.unwrap_err().code(), code::RECURRING_NOT_FOUND);
    }
    spoke.close().await;
    hub.stop().await;
}
