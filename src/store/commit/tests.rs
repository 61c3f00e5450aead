//! What a batch answers, rule by rule.

mod batches;
mod deletions;
mod expectations;
mod groups;
mod model;
mod npm;
mod redrives;
mod sweeps;
mod trouble;

use sea_orm::ConnectionTrait;

use super::super::tests::*;
use super::super::*;
use crate::event::{Data, Domain, Event, Name, Outcome, Pid, code};
use crate::wire::{PublishState, Published};

fn published(answer: &Answer) -> Published {
    match answer {
        Ok(Written::Published(published)) => *published,
        other => panic!("{other:?}"),
    }
}

type Answer = Result<Written, StoreError>;

fn duplicate(timestamp: i64, seq: u64, state: PublishState) -> Published {
    Published { fresh: false, timestamp, seq, state: Some(state) }
}

fn code_of(answer: &Answer) -> &'static str {
    answer.as_ref().map_or_else(StoreError::code, |_| "ok")
}

fn with_data(id: &str, data: &str) -> Event {
    Event { data: Data::parse(data.to_owned()).unwrap(), ..event(id) }
}

fn answering(id_text: &str, rid: &str) -> Event {
    Event { rid: Some(id(rid)), ..event(id_text) }
}

#[tokio::test]
async fn a_publish_is_stored_with_its_hub() {
    let store = fresh().await;
    let answer = one(&store, publish(answering("e", "none"), 7)).await;
    assert_eq!(code_of(&answer), code::RID_NOT_FOUND);
    let answer = one(&store, publish(event("e"), 7)).await;
    assert_eq!(published(&answer), Published::fresh(AT, 7));
    assert_eq!(store.event(&id("e")).await.unwrap(), Some(event("e")));
    let row = "SELECT @utc(published) = consumed_hub AND hub = 'HUB-1' AND v1_hub = 'HUB-1' AND seq = 7 \
               AND consumed_spoke IS NULL AND consumer IS NULL FROM event_published";
    assert!(rows(&store, row).await[0].try_get_by_index::<bool>(0).unwrap());
}

#[tokio::test]
async fn publishing_twice_is_once() {
    let store = fresh().await;
    let content = r#"{"a":1,"b":[2.0,{"c":null,"d":""}]}"#;
    one(&store, publish(with_data("e", content), 7)).await.unwrap();
    let again = Event { timestamp: AT + 99, ..with_data("e", r#"{"b":[2,{"d":"","c":null}],"a":1.0}"#) };
    let answer = one(&store, publish(again, 8)).await;
    assert_eq!(published(&answer), duplicate(AT, 7, PublishState::Pending));
    assert_eq!(store.event(&id("e")).await.unwrap().unwrap().data.as_str(), content);
    assert_eq!(store.counts(&hub()).await.unwrap().events, 1);
}

#[tokio::test]
async fn a_conflict_names_the_field() {
    let store = fresh().await;
    one(&store, publish(event("root"), 1)).await.unwrap();
    one(&store, publish(event("e"), 2)).await.unwrap();
    let others = [
        ("domain", Event { domain: Domain::parse("users").unwrap(), ..event("e") }),
        ("name", Event { name: Name::parse("changed").unwrap(), ..event("e") }),
        ("pid", Event { pid: Pid::parse("order-2").unwrap(), ..event("e") }),
        ("rid", answering("e", "root")),
        ("data", with_data("e", r#"{"a":"1"}"#)),
    ];
    for (field, other) in others {
        let error = one(&store, publish(other, 3)).await.unwrap_err();
        assert_eq!(error.code(), code::EVENT_CONFLICT);
        assert!(
            matches!(&error, StoreError::EventConflict { field: named, .. } if *named == field),
            "{error}"
        );
        assert!(error.to_string().contains(field), "{error}");
    }
}

#[tokio::test]
async fn twins_in_one_batch_are_the_first_and_its_duplicate_or_conflict() {
    let store = fresh().await;
    let answers = store
        .commit(vec![
            publish(event("e"), 1),
            publish(event("f"), 2),
            publish(event("e"), 3),
            publish(with_data("e", "2"), 4),
        ])
        .await;
    assert_eq!(published(&answers[0]), Published::fresh(AT, 1));
    assert_eq!(published(&answers[1]), Published::fresh(AT, 2));
    assert_eq!(published(&answers[2]), duplicate(AT, 1, PublishState::Pending));
    assert_eq!(code_of(&answers[3]), code::EVENT_CONFLICT);
    assert_eq!(store.last_seq(&hub()).await.unwrap(), 2);
}

#[tokio::test]
async fn what_is_only_persisted_is_published_now() {
    let store = fresh().await;
    let early = time::text(AT - 5_000);
    let insert = format!(
        "INSERT INTO event (id, timestamp, domain, pid, name, data) \
         VALUES ('e', @local('{early}'), 'orders', 'order-1', 'created', '{{ \"a\" : 1 }}')"
    );
    sql(&store, &insert).await;
    let answer = one(&store, publish(event("e"), 7)).await;
    assert_eq!(published(&answer), Published::fresh(AT - 5_000, 7));
    let (open, _) = open_page(&store, 0, 10, 1_000).await;
    assert_eq!(open.iter().map(|open| open.seq).collect::<Vec<_>>(), [7]);
    let again = one(&store, publish(event("e"), 8)).await;
    assert_eq!(published(&again), duplicate(AT - 5_000, 7, PublishState::Pending));
}

#[tokio::test]
async fn what_is_scheduled_stays_scheduled() {
    let store = fresh().await;
    let insert = "INSERT INTO event (id, domain, pid, name, data) \
                  VALUES ('e', 'orders', 'order-1', 'created', '{\"a\":1}'); \
                  INSERT INTO event_scheduled (event_id, scheduled) VALUES ('e', '2999-01-01 00:00:00')";
    sql(&store, insert).await;
    let answer = published(&one(&store, publish(event("e"), 7)).await);
    assert_eq!((answer.fresh, answer.seq), (false, 0));
    assert_eq!(store.counts(&hub()).await.unwrap().published, 0);
}

#[tokio::test]
async fn an_answer_needs_its_question_first() {
    let store = fresh().await;
    let answers = store
        .commit(vec![
            publish(answering("early", "root"), 1),
            publish(event("root"), 2),
            publish(answering("leaf", "root"), 3),
            publish(answering("lost", "nobody"), 4),
            publish(answering("behind", "lost"), 5),
            publish(answering("self", "self"), 6),
        ])
        .await;
    let codes: Vec<_> = answers.iter().map(code_of).collect();
    let missing = code::RID_NOT_FOUND;
    assert_eq!(codes, [missing, "ok", "ok", missing, missing, missing]);
    let error = answers[3].as_ref().unwrap_err().to_string();
    assert!(error.contains("lost") && error.contains("nobody"), "{error}");
    assert_eq!(store.event(&id("leaf")).await.unwrap().unwrap().rid, Some(id("root")));
}

#[tokio::test]
async fn of_256_publishes_three_bad_ones_are_refused_by_name() {
    let store = fresh().await;
    engines::refuse(&store, "event", "new.name = 'poison'", "no poison here").await;
    one(&store, publish(event("taken"), 1)).await.unwrap();
    let mut events: Vec<Event> = (0..256).map(|n| event(&format!("e{n}"))).collect();
    events[17] = with_data("taken", "2");
    events[99] = answering("e99", "nobody");
    events[200].name = Name::parse("poison").unwrap();
    let batch = events.into_iter().zip(2..).map(|(event, seq)| publish(event, seq)).collect();

    let answers = store.commit(batch).await;
    assert_eq!(answers.len(), 256);
    let refused: Vec<_> = answers.iter().enumerate().filter(|(_, answer)| answer.is_err()).collect();
    let refused: Vec<_> = refused.into_iter().map(|(at, answer)| (at, code_of(answer))).collect();
    assert_eq!(refused, [(17, code::EVENT_CONFLICT), (99, code::RID_NOT_FOUND), (200, code::DB_FAULT)]);
    assert!(answers[200].as_ref().unwrap_err().to_string().contains("no poison here"));
    for (at, answer) in answers.iter().enumerate().filter(|(_, answer)| answer.is_ok()) {
        let seq = u64::try_from(at).unwrap() + 2;
        assert_eq!(published(answer), Published::fresh(AT, seq));
    }
    let counts = store.counts(&hub()).await.unwrap();
    assert_eq!((counts.events, counts.published), (254, 254));
    assert_eq!(store.event(&id("e99")).await.unwrap(), None);
}

#[tokio::test]
async fn a_batch_of_any_length_is_stored_in_its_order() {
    let store = fresh().await;
    let mut seq = 0;
    for length in [0, 1, 2, 3, 255, 256, 257, 1_000] {
        let batch: Vec<Write> = (0..length)
            .map(|_| {
                seq += 1;
                publish(event(&format!("e{seq}")), seq)
            })
            .collect();
        let answers = store.commit(batch).await;
        assert_eq!(answers.len(), length);
        assert!(answers.iter().all(|answer| published(answer).fresh));
    }
    let ids = if engines::engine().is_sqlite() {
        "SELECT id FROM event ORDER BY rowid"
    } else {
        "SELECT event_id FROM event_published ORDER BY seq"
    };
    assert_eq!(texts(&store, ids).await, (1..=seq).map(|n| format!("e{n}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn of_two_finishes_one_wins() {
    let store = fresh().await;
    store.commit(vec![publish(event("e"), 1), publish(event("f"), 2), publish(event("g"), 3)]).await;
    let by = |consumer: &str, event_id: &str, outcome| {
        let seq = ["e", "f", "g"].iter().zip(1..).find(|(id, _)| **id == event_id).map_or(0, |(_, seq)| seq);
        ended(event_id, seq, outcome, consumer, AT, None)
    };
    let answers = store
        .commit(vec![
            by("A", "e", Outcome::Success),
            by("B", "f", Outcome::Success),
            by("B", "e", Outcome::Success),
            by("A", "e", Outcome::Dead),
            by("A", "nobody", Outcome::Dead),
        ])
        .await;
    let codes: Vec<_> = answers.iter().map(code_of).collect();
    assert_eq!(codes, ["ok", "ok", code::CLAIM_LOST, code::CLAIM_LOST, code::EVENT_NOT_FOUND]);
    assert_eq!(answers[0].as_ref().unwrap(), &Written::Finished { letter: false });

    // Later, beside one that is fine.
    let answers = store.commit(vec![by("C", "e", Outcome::Dead), by("C", "g", Outcome::Dead)]).await;
    assert_eq!(answers.iter().map(code_of).collect::<Vec<_>>(), [code::CLAIM_LOST, "ok"]);
    let (_, trace) = store.trace(&id("e")).await.unwrap().unwrap();
    assert_eq!((trace.state.as_str(), trace.consumer), ("success", Some(uid("A"))));
}

#[tokio::test]
async fn a_lost_claim_leaves_no_attempt() {
    let store = fresh().await;
    store.commit(vec![publish(event("e"), 1), finish("e", 1, Outcome::Success)]).await;
    let late = ended("e", 1, Outcome::Dead, "A", AT, Some(attempt("e", 1)));
    assert_eq!(code_of(&one(&store, late).await), code::CLAIM_LOST);
    assert!(store.trace(&id("e")).await.unwrap().unwrap().1.attempts.is_empty());
}

#[tokio::test]
async fn an_attempt_of_no_event_is_refused_alone() {
    let store = fresh().await;
    let answers = store
        .commit(vec![
            Write::Attempt(attempt("nobody", 1)),
            publish(event("e"), 1),
            Write::Attempt(AttemptRow { reason: "x".repeat(100), ..attempt("e", 1) }),
        ])
        .await;
    assert_eq!(answers.iter().map(code_of).collect::<Vec<_>>(), [code::EVENT_NOT_FOUND, "ok", "ok"]);
    let (_, trace) = store.trace(&id("e")).await.unwrap().unwrap();
    assert_eq!(trace.attempts[0].reason, "x".repeat(64));
}

#[tokio::test]
async fn deleting_an_event_deletes_what_hangs_on_it() {
    let store = fresh().await;
    let answers = store
        .commit(vec![
            publish(event("e"), 1),
            publish(answering("f", "e"), 2),
            Write::Attempt(attempt("e", 1)),
        ])
        .await;
    assert!(answers.iter().all(Result::is_ok));
    sql(&store, "DELETE FROM event WHERE id = 'e'").await;
    assert_eq!(store.event(&id("f")).await.unwrap().unwrap().rid, None);
    assert_eq!(store.counts(&hub()).await.unwrap().published, 1);
    assert_eq!(code_of(&one(&store, finish("e", 1, Outcome::Success)).await), code::EVENT_NOT_FOUND);
    // A deleted id is a new event.
    assert!(published(&one(&store, publish(event("e"), 3)).await).fresh);
    assert!(store.trace(&id("e")).await.unwrap().unwrap().1.attempts.is_empty());
}

#[tokio::test]
async fn log_lines_are_cut_and_their_error_is_json() {
    let store = fresh().await;
    let line = |message: &str, error: &str| Write::Log {
        at: AT,
        agent: "A".repeat(100),
        message: message.into(),
        error: error.into(),
    };
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(10_000));
    let answers = store
        .commit(vec![
            line(&"é".repeat(9_000), "{}"),
            line("b", r#"{"code":"E"}"#),
            line("c", &long),
            line("d", "oops"),
        ])
        .await;
    assert!(answers.iter().all(|answer| matches!(answer, Ok(Written::Done))));
    let long = "SELECT count(*) FROM log WHERE length(agent) = 64 AND octet_length(message) = 8 * 1024";
    assert_eq!(number(&store, long).await, 1);
    let errors = texts(&store, "SELECT @text(error) FROM log ORDER BY message").await;
    assert_eq!(errors, [r#"{"code":"E"}"#, "{}", "{}", "{}"]);
}
