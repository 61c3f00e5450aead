//! Promise: a scheduled event is published once, at its time or as soon after it as the hub is up, never before; whatever
//! happens to the hub meanwhile.
//!
//! The hub is killed 3 times in 6 seconds in which 200 events are due; `EVENTFLOW_TEST_LONG=1` makes that 20 times in a
//! minute, and 5,000 events. `EVENTFLOW_TEST_SEED` repeats a run.

mod beside;

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use eventflow::{
    event::{EventId, code},
    metrics::{ActorKind, Readiness},
    spoke::{Consume, Delivery, Publish, Schedule, Since, Spoke},
    wire::Trace,
};
use tokio::time::{sleep, timeout};

use crate::support::{PATIENCE, Raw, TestHub, engine, load, process::Home, until};

fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// Asks to schedule `id` for `due`, as request `req`.
async fn schedule(raw: &mut Raw, req: usize, due: i64, id: &str) -> Vec<String> {
    raw.ask(&["schedule", &req.to_string(), &due.to_string(), id, "alarms", "rang", "p", "", "1"]).await
}

/// Asks for it and expects it to be new.
async fn scheduled(raw: &mut Raw, req: usize, due: i64, id: &str) {
    let answer = schedule(raw, req, due, id).await;
    assert_eq!(answer[2..], ["scheduled".to_owned(), due.to_string(), "new".into()], "{answer:?}");
}

/// What became of events, by the database of a hub that has ended.
async fn traces(database: &Path, ids: impl Iterator<Item = &String>) -> BTreeMap<String, Trace> {
    let store = engine::store(database).await;
    let mut traces = BTreeMap::new();
    for id in ids {
        let (_, trace) = store.trace(&EventId::parse(id.as_str()).unwrap()).await.unwrap().unwrap();
        traces.insert(id.clone(), trace);
    }
    store.close().await;
    traces
}

/// Each ran once, none early; how late they were, in milliseconds, rising.
fn lateness(due: &BTreeMap<String, i64>, traces: &BTreeMap<String, Trace>) -> Vec<f64> {
    let mut late = Vec::new();
    let mut seqs = std::collections::BTreeSet::new();
    for (id, due) in due {
        let trace = &traces[id];
        let seq = trace.seq.unwrap_or_else(|| panic!("{id} never ran: {trace:?}"));
        assert!(seqs.insert(seq), "two have the number {seq}");
        assert_eq!(trace.scheduled, Some(*due), "{id}");
        let micros = i64::try_from(seq).unwrap() - due * 1_000;
        assert!(micros >= 0, "{id} was early by {micros} µs");
        late.push(micros as f64 / 1e3);
    }
    late.sort_by(f64::total_cmp);
    late
}

fn told(late: &[f64]) -> String {
    let at = |share: f64| late[((late.len() - 1) as f64 * share) as usize];
    format!("{} ran; late by {:.1} ms (median), {:.1} ms (p99)", late.len(), at(0.5), at(0.99))
}

/// Who saw which event how often.
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_again_and_again_while_events_are_due_the_hub_runs_each_once() {
    let (count, span, kills) = if load::is_long() { (5_000, 60_000, 20) } else { (200, 6_000, 3) };
    let mut random = fastrand::Rng::with_seed(seed());
    let home = Home::new();
    let mut hub = home.start().await;
    let spoke = home.spoke().await;
    let seen = watch(&spoke).await;
    let handled = Seen::default();
    let book = handled.clone();
    let consumer = spoke
        .consume(Consume::new("alarms", "*").concurrency(16), move |event| {
            let book = book.clone();
            async move {
                *book.lock().unwrap().entry(event.id.to_string()).or_default() += 1;
                Ok::<(), String>(())
            }
        })
        .await
        .unwrap();

    let mut due = BTreeMap::new();
    let from = now() + 1_000;
    let mut raw = Raw::connect(spoke_bundle(&home), ("127.0.0.1", home.port())).await.greeted().await;
    for number in 0..count {
        let (id, at) = (format!("alarm-{number}"), from + random.i64(0..span));
        scheduled(&mut raw, number + 1, at, &id).await;
        due.insert(id, at);
    }
    drop(raw);
    for _ in 0..kills {
        let pause = random.i64(0..2 * span / i64::from(kills));
        sleep(Duration::from_millis(u64::try_from(pause / 2 + 200).unwrap())).await;
        hub.kill().await;
        hub = home.start().await;
    }
    let waiting = || async { home.metric("eventflow_schedules_waiting ").await != Some(0.0) };
    while waiting().await {
        assert!(now() < from + span + 60_000, "some never ran");
        sleep(Duration::from_millis(50)).await;
    }
    until("all are handled", || async { handled.lock().unwrap().len() == due.len() }).await;
    consumer.stop().await.unwrap();
    spoke.close().await;
    hub.signal("TERM");
    assert_eq!(hub.ended().await.code(), Some(0));
    assert!(!home.words().contains("panicked"), "{}", home.words());

    let traces = traces(&home.database(), due.keys()).await;
    println!("{kills} times kill -9: {}", told(&lateness(&due, &traces)));
    assert!(traces.values().all(|trace| trace.state == "success"), "each has its outcome");
    let twice: Vec<_> =
        seen.lock().unwrap().iter().filter(|(_, times)| **times > 1).map(|(id, _)| id.clone()).collect();
    assert!(twice.is_empty(), "a subscriber got these twice: {twice:?}");
}

fn seed() -> u64 {
    let seed = std::env::var("EVENTFLOW_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("EVENTFLOW_TEST_SEED={seed}");
    seed
}

fn spoke_bundle(home: &Home) -> &'static eventflow::pki::Bundle {
    let bundle = eventflow::pki::Bundle::read(home.data().join("operator.toml")).unwrap();
    Box::leak(Box::new(bundle))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_peace_each_comes_within_moments_of_its_time_and_not_before() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let seen = watch(&spoke).await;
    let mut raw = hub.v1().await;
    let mut due = BTreeMap::new();
    // To store them takes a server a while: they are due after that.
    let from = now() + if engine::server().is_some() { 5_000 } else { 0 };
    for number in 0..100 {
        // Some at once, some beyond what is read ahead.
        let (id, at) = (format!("alarm-{number}"), from + i64::try_from(number).unwrap() * 53);
        scheduled(&mut raw, number + 1, at, &id).await;
        due.insert(id, at.max(from));
    }
    until("all came", || async { seen.lock().unwrap().len() == due.len() }).await;
    let metrics = hub.handle.metrics().hub;
    assert_eq!((metrics.schedules_executed, metrics.schedules_waiting), (100, 0));
    assert_eq!(metrics.schedule_lateness.count, 100);
    drop(raw);
    spoke.close().await;
    let database = hub.database();
    let _folder = hub.stop().await;
    let late = lateness(&due, &traces(&database, due.keys()).await);
    println!("{}", told(&late));
    assert!(late[late.len() / 2] < 100.0, "{}", told(&late));
    assert!(seen.lock().unwrap().values().all(|times| *times == 1));
}

#[tokio::test]
async fn what_was_due_while_no_hub_was_up_runs_at_its_start_oldest_first() {
    let hub = TestHub::start().await;
    let mut raw = hub.v1().await;
    let at = now() + 400;
    for (req, (id, after)) in [("c", 30), ("a", 10), ("d", 40), ("b", 20)].into_iter().enumerate() {
        scheduled(&mut raw, req + 1, at + after, id).await;
    }
    drop(raw);
    let folder = hub.stop().await;
    until("their time is over", || async { now() > at + 50 }).await;
    let hub = TestHub::on(folder, |_| {}).await;
    until("all ran", || async { hub.handle.metrics().hub.schedules_executed == 4 }).await;
    let spoke = hub.spoke().await;
    let mut seqs = Vec::new();
    for id in ["a", "b", "c", "d"] {
        let (_, trace) = spoke.show(id).await.unwrap();
        assert_eq!((trace.state.as_str(), trace.scheduled.is_some()), ("orphan", true), "{trace:?}");
        seqs.push(trace.seq.unwrap());
    }
    assert!(seqs.is_sorted(), "in the order in which they were due");
    spoke.close().await;
    hub.stop().await;
}

#[tokio::test]
async fn until_its_time_nobody_gets_it_and_then_everybody() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let mut raw = hub.v1().await;
    // Nobody is there: it waits for whoever comes, like any other.
    scheduled(&mut raw, 1, now(), "first").await;
    until("it ran", || async { hub.handle.metrics().hub.schedules_executed == 1 }).await;
    assert_eq!(spoke.show("first").await.unwrap().1.state, "orphan");
    let seen = watch(&spoke).await;
    until("a late subscriber gets it", || async { seen.lock().unwrap().contains_key("first") }).await;

    let due = now() + if engine::server().is_some() { 3_000 } else { 700 };
    scheduled(&mut raw, 2, due, "second").await;
    let (event, trace) = spoke.show("second").await.unwrap();
    assert_eq!((trace.state.as_str(), trace.scheduled, trace.seq), ("scheduled", Some(due), None));
    assert_eq!(event.name.as_str(), "rang");
    assert_eq!(spoke.read("second").await.unwrap().id.as_str(), "second", "it is stored");
    // A consumer of all orphans gets the one, and the other at its time.
    let consume = raw.ask(&["consume", "3", "1", "", "alarms", "*", "{\"credit\":8}"]).await;
    assert_eq!(consume[0], "ok");
    for (req, id, due) in [("4", "first", 0), ("5", "second", due)] {
        let claim = raw.event().await;
        assert_eq!((&*claim[0], &*claim[5]), ("claim", id));
        assert!(now() >= due, "a claim before its time: {claim:?}");
        assert_eq!(raw.ask(&["ack", req, &claim[2]]).await[0], "ok");
    }
    let (_, trace) = spoke.show("second").await.unwrap();
    assert_eq!((trace.state.as_str(), trace.scheduled), ("success", Some(due)));
    assert!(trace.published.unwrap() >= engine::held(due));
    until("the subscriber gets it too", || async { seen.lock().unwrap().contains_key("second") }).await;
    drop(raw);
    spoke.close().await;
    hub.stop().await;
}

/// Scheduled between two publishes, run after both: that is where it stands, in the log, in the state and for waits.
#[tokio::test]
async fn its_time_is_that_of_its_happening_and_not_of_its_scheduling() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let version = |id: &str| {
        Publish::new("alarms", "set", "p").id(id.to_owned()).data(&serde_json::json!({ "v": id })).unwrap()
    };
    spoke.publish(version("first")).await.unwrap();
    let mut subscription = spoke.subscribe("alarms", "*").await.unwrap();
    let due = now() + 1_000;
    spoke.schedule(version("scheduled"), Schedule::at(at(due))).await.unwrap();
    let second = spoke.publish(version("second")).await.unwrap();
    assert!(second.timestamp < due, "the machine is too slow for this test");
    let ran = loop {
        if let Delivery::Event { event, seq, .. } = subscription.next().await.unwrap()
            && &*event.id == "scheduled"
        {
            assert_eq!(event.timestamp, i64::try_from(seq / 1_000).unwrap(), "as of any published event");
            break event;
        }
    };
    assert!(ran.timestamp >= due);
    assert_eq!(spoke.show("scheduled").await.unwrap().0, ran, "what was delivered is what is stored");
    let log = spoke.log("alarms", "p").collect(9).await.unwrap();
    let ids: Vec<&str> = log.iter().map(|event| &*event.id).collect();
    assert_eq!(ids, ["first", "second", "scheduled"]);
    assert_eq!(spoke.state("alarms", "p").await.unwrap()["v"], "scheduled");
    let span = spoke.log("alarms", "p").from(at(due)).collect(9).await.unwrap();
    assert_eq!(span.len(), 1, "a span of time has what happened in it");
    let mut raw = hub.v1().await;
    let due = due.to_string();
    let again = ["schedule", "1", &due, "scheduled", "alarms", "set", "p", "", r#"{"v":"scheduled"}"#];
    assert_eq!(raw.ask(&again).await[2..], ["scheduled", &due, "duplicate"], "whatever its time has become");
    spoke.close().await;
    hub.stop().await;
}

/// A moment in milliseconds since 1970.
fn at(millis: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(u64::try_from(millis).unwrap())
}

#[tokio::test]
async fn the_same_again_is_a_duplicate_and_other_times_conflict() {
    let hub = TestHub::start().await;
    let mut raw = hub.v1().await;
    let due = now() + 60_000;
    scheduled(&mut raw, 1, due, "alarm").await;
    assert_eq!(schedule(&mut raw, 2, due, "alarm").await[4], "duplicate");
    let other = schedule(&mut raw, 3, due + 1, "alarm").await;
    assert_eq!((&*other[0], &*other[2]), ("err", code::EVENT_CONFLICT), "{other:?}");
    let publish = raw.ask(&["publish", "4", "alarm", "alarms", "rang", "p", "", "1"]).await;
    assert_eq!((&*publish[2], &*publish[4]), ("duplicate", "0"), "it stays scheduled");

    for (req, bad) in [(5, now() - 61_000), (6, 253_402_300_800_000)] {
        let refused = schedule(&mut raw, req, bad, "bad").await;
        assert_eq!(refused[2], code::SCHEDULE_INVALID_DATE, "{refused:?}");
        assert!(refused[3].contains(" UTC") && refused[4].is_empty(), "{refused:?}");
    }
    let past = now() - 30_000;
    scheduled(&mut raw, 7, past, "just-now").await;
    until("it runs at once", || async { hub.handle.metrics().hub.schedules_executed == 1 }).await;
    assert_eq!(schedule(&mut raw, 8, past, "just-now").await[4], "duplicate", "after it ran, too");
    drop(raw);
    hub.stop().await;
}

#[tokio::test]
async fn a_cancel_holds_before_its_time_and_is_refused_after_it() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let seen = watch(&spoke).await;
    let mut raw = hub.v1().await;
    let due = now() + if engine::server().is_some() { 3_000 } else { 300 };
    scheduled(&mut raw, 1, due, "cancelled").await;
    scheduled(&mut raw, 2, due + 1, "kept").await;
    assert_eq!(raw.ask(&["cancel", "3", "cancelled"]).await, ["ok", "3"]);
    let again = raw.ask(&["cancel", "4", "cancelled"]).await;
    assert_eq!(again[2], code::SCHEDULE_NOT_FOUND, "{again:?}");
    assert!(spoke.show("cancelled").await.is_err(), "its event is gone too");
    until("the other ran", || async { seen.lock().unwrap().contains_key("kept") }).await;
    let ran = raw.ask(&["cancel", "5", "kept"]).await;
    assert_eq!(ran[2], code::SCHEDULE_EXECUTED, "{ran:?}");

    // In the same moment: either of them wins, and both know who.
    let mut cancelled = 0;
    for round in 0..40 {
        let (req, id) = (10 + 2 * round, format!("race-{round}"));
        let due = now() + 3;
        scheduled(&mut raw, req, due, &id).await;
        until("it is due", || async { now() >= due }).await;
        let answer = raw.ask(&["cancel", &(req + 1).to_string(), &id]).await;
        if answer[0] == "ok" {
            cancelled += 1;
            assert!(spoke.show(&id).await.is_err(), "cancelled, and there");
        } else {
            assert_eq!(answer[2], code::SCHEDULE_EXECUTED, "{answer:?}");
            assert!(spoke.show(&id).await.unwrap().1.seq.is_some(), "it ran");
        }
    }
    until("all others ran", || async { seen.lock().unwrap().len() == 1 + 40 - cancelled }).await;
    assert_eq!(hub.handle.metrics().hub.schedules_waiting, 0);
    drop(raw);
    spoke.close().await;
    hub.stop().await;

    let hub = TestHub::with(|config| config.spokes.may_delete = false).await;
    let mut raw = hub.v1().await;
    scheduled(&mut raw, 1, now() + 60_000, "alarm").await;
    let refused = raw.ask(&["cancel", "2", "alarm"]).await;
    assert_eq!(refused[2], code::NOT_ALLOWED, "{refused:?}");
    drop(raw);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_of_the_scheduler_loses_no_schedule_and_doubles_none() {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let seen = watch(&spoke).await;
    let mut raw = hub.v1().await;
    let from = now() + 1_000;
    let mut due = BTreeMap::new();
    for number in 0..150 {
        let (id, at) = (format!("alarm-{number}"), from + i64::try_from(number).unwrap() * 20);
        scheduled(&mut raw, number + 1, at, &id).await;
        due.insert(id, at);
    }
    drop(raw);
    let mut readiness = hub.handle.readiness();
    for restart in 1..=3 {
        until("some ran", || async { hub.handle.metrics().hub.schedules_executed > 30 * restart }).await;
        hub.handle.inject_panic(ActorKind::Scheduler);
        let restarts = || hub.handle.metrics().actor(ActorKind::Scheduler).unwrap().restarts;
        until("it is counted", || async { restarts() == restart }).await;
        timeout(PATIENCE, readiness.wait_for(Readiness::is_ready)).await.expect("the core is back").unwrap();
    }
    let open = || async { hub.handle.metrics().hub.schedules_executed < 150 };
    until("all ran", || async { !open().await }).await;
    until("a subscriber has all", || async { seen.lock().unwrap().len() == 150 }).await;
    // What is dispatched now comes after all of them.
    spoke.publish(Publish::new("alarms", "rang", "p").id("end")).await.unwrap();
    until("it has the last", || async { seen.lock().unwrap().contains_key("end") }).await;
    assert!(seen.lock().unwrap().values().all(|times| *times == 1), "a subscriber got one twice");
    spoke.close().await;
    let database = hub.database();
    let _folder = hub.stop().await;
    println!("3 panics: {}", told(&lateness(&due, &traces(&database, due.keys()).await)));
}
