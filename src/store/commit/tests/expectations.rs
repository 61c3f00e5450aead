//! What publishes expect of their logs, judged in one transaction and against a naive model.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::event::{Expect, LogConflict};

fn after(id_text: &str) -> Option<Expect> {
    Some(Expect::After(id(id_text)))
}

fn of(pid: &str, id: &str) -> Event {
    Event { pid: Pid::parse(pid.to_owned()).unwrap(), ..event(id) }
}

fn expecting(event: Event, seq: u64, expect: Option<Expect>) -> Write {
    Write::Publish { event, seq, publisher: uid("SPOKE-1"), hub: hub(), expect }
}

fn conflict(answer: &Answer) -> LogConflict {
    match answer {
        Err(StoreError::LogConflict(conflict)) => (**conflict).clone(),
        other => panic!("{other:?}"),
    }
}

/// The ids of a log, in the order in which it is read.
async fn log(store: &Store, pid: &str) -> Vec<String> {
    let (domain, pid) = (event("e").domain, Pid::parse(pid.to_owned()).unwrap());
    let query = crate::wire::LogOf::Process { domain, pid }.into();
    let (events, _) = store.log_page(&query, None, 1_000, 1 << 20).await.unwrap();
    events.into_iter().map(|event| event.id.to_string()).collect()
}

#[tokio::test]
async fn of_two_that_expect_an_empty_log_in_one_transaction_one_wins() {
    let store = fresh().await;
    let answers = store
        .commit(vec![
            expecting(of("p", "a"), 1, Some(Expect::None)),
            expecting(of("p", "b"), 2, Some(Expect::None)),
            expecting(of("q", "c"), 3, Some(Expect::None)),
            expecting(of("p", "d"), 4, after("a")),
            publish(of("p", "e"), 5),
            expecting(of("p", "f"), 6, after("d")),
            expecting(of("p", "g"), 7, after("e")),
        ])
        .await;
    let codes: Vec<_> = answers.iter().map(code_of).collect();
    let lost = code::LOG_CONFLICT;
    assert_eq!(codes, ["ok", lost, "ok", "ok", "ok", lost, "ok"]);
    assert_eq!(log(&store, "p").await, ["a", "d", "e", "g"]);
    let first = conflict(&answers[1]);
    assert_eq!((first.last, first.count, first.expected), (Some(id("a")), 1, Expect::None));
    let second = conflict(&answers[5]);
    assert_eq!((second.last, second.count, &*second.pid), (Some(id("e")), 3, "p"));
}

#[tokio::test]
async fn what_stands_is_a_duplicate_wherever_the_log_ends() {
    let store = fresh().await;
    let first = || expecting(of("p", "a"), 1, Some(Expect::None));
    assert!(one(&store, first()).await.is_ok());
    assert!(one(&store, publish(of("p", "b"), 2)).await.is_ok());
    assert_eq!(published(&one(&store, first()).await), duplicate(AT, 1, PublishState::Pending));
    let other = Event { data: Data::parse("2").unwrap(), ..of("p", "a") };
    assert_eq!(code_of(&one(&store, expecting(other, 3, Some(Expect::None))).await), code::EVENT_CONFLICT);
    // What is persisted stands in its log, too.
    assert!(one(&store, Write::Persist(of("p", "c"), after("b"))).await.is_ok());
    assert_eq!(code_of(&one(&store, Write::Persist(of("p", "d"), after("b"))).await), code::LOG_CONFLICT);
    let published = published(&one(&store, expecting(of("p", "c"), 9, after("b"))).await);
    assert!(published.fresh, "{published:?}");
}

#[tokio::test]
async fn a_refused_batch_leaves_the_ends_of_its_logs() {
    let store = fresh().await;
    let placed = |id: &str, seq, expect| Placed { event: of("p", id), seq, expect };
    let batch = |events| Write::Batch { events, publisher: uid("SPOKE-1"), hub: hub() };
    let answers = store
        .commit(vec![
            batch(vec![placed("a", 1, Some(Expect::None)), placed("b", 2, after("x"))]),
            batch(vec![placed("c", 3, Some(Expect::None)), placed("d", 4, None), placed("e", 5, after("d"))]),
            batch(vec![placed("f", 6, after("e"))]),
        ])
        .await;
    assert_eq!(answers.iter().map(code_of).collect::<Vec<_>>(), [code::LOG_CONFLICT, "ok", "ok"]);
    assert_eq!(conflict(&answers[0]).last, Some(id("a")), "those before it in the batch count");
    assert_eq!(log(&store, "p").await, ["c", "d", "e", "f"]);
}

#[tokio::test]
async fn what_is_scheduled_is_in_no_log_and_a_log_that_ran_ahead_is_followed() {
    let store = fresh().await;
    let schedule =
        Write::Schedule { event: of("p", "s"), due: AT + 60_000, publisher: hub(), replaces: None };
    assert!(one(&store, schedule).await.is_ok());
    assert!(one(&store, expecting(of("p", "a"), 1, Some(Expect::None))).await.is_ok());
    // An hour ahead, as a program's own clock may be, and one of the same moment that has no number.
    let ahead = Event { timestamp: AT + 3_600_000, ..of("p", "z") };
    assert!(one(&store, Write::Persist(ahead, None)).await.is_ok());
    let behind = published(&one(&store, expecting(of("p", "b"), 2, after("z"))).await);
    assert_eq!(behind.timestamp, AT + 3_600_001);
    let stored = published(&one(&store, Write::Persist(of("p", "a1"), after("b"))).await);
    assert_eq!(stored.timestamp, AT + 3_600_002);
    assert_eq!(log(&store, "p").await, ["a", "z", "b", "a1"]);
}

#[tokio::test]
async fn a_long_log_is_counted_up_to_a_thousand() {
    let store = fresh().await;
    let many = (0..1_200).map(|n| publish(of("p", &format!("e{n}")), n + 1)).collect();
    assert!(store.commit(many).await.iter().all(Result::is_ok));
    let conflict = conflict(&one(&store, expecting(of("p", "x"), 2_000, Some(Expect::None))).await);
    assert_eq!((conflict.count, conflict.last), (LogConflict::MOST_COUNTED, Some(id("e1199"))));
}

/// A publish or persist of an event, and how long its log is to be: mostly as long as it is.
type Step = (bool, u8, u8, Option<u8>);

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// However writes fall into transactions: what is let in stands in its log behind what it expects.
    #[test]
    fn a_log_grows_only_as_expected(
        batches in prop::collection::vec(
            prop::collection::vec((any::<bool>(), 0..2_u8, 0..40_u8, prop::option::of(0..8_u8)), 1..12),
            1..6,
        )
    ) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(agree(&batches));
    }
}

async fn agree(batches: &[Vec<Step>]) {
    let store = fresh().await;
    let mut logs: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut seq = 1_000;
    for batch in batches {
        let (mut writes, mut expected) = (Vec::new(), Vec::new());
        for (persist, pid, number, end) in batch {
            seq += 1;
            let (pid, name) = (format!("p{pid}"), format!("e{pid}-{number}"));
            let log = logs.entry(pid.clone()).or_default();
            let expect = end.map(|end| match usize::from(end) {
                0 => Expect::None,
                // Beyond the end: its last event.
                at => {
                    log.get(at - 1).or(log.last()).map_or(Expect::None, |id_text| Expect::After(id(id_text)))
                }
            });
            // Times as the hub gives them: that of the number.
            let event = Event { timestamp: AT + i64::try_from(seq).unwrap(), ..of(&pid, &name) };
            let holds =
                expect.as_ref().is_none_or(|expect| expect.holds(log.last().map(|last| id(last)).as_ref()));
            let stands = log.contains(&name);
            expected.push(if stands || holds { "ok" } else { code::LOG_CONFLICT });
            if holds && !stands {
                log.push(name);
            }
            writes.push(if *persist { Write::Persist(event, expect) } else { expecting(event, seq, expect) });
        }
        let answers = store.commit(writes).await;
        assert_eq!(answers.iter().map(code_of).collect::<Vec<_>>(), expected);
    }
    for (pid, ids) in logs {
        assert_eq!(log(&store, &pid).await, ids, "{pid}");
    }
}
