//! Batches of events and events that are only stored, beside other writes of their transaction.

use super::*;

fn batch(events: Vec<Event>, first_seq: u64) -> Write {
    let events = events.into_iter().zip(first_seq..).map(|(event, seq)| Placed::new(event, seq)).collect();
    Write::Batch { events, publisher: uid("SPOKE-1"), hub: hub() }
}

fn published_all(answer: &Answer) -> Vec<(bool, u64)> {
    match answer {
        Ok(Written::Batch(all)) => all.iter().map(|published| (published.fresh, published.seq)).collect(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_batch_is_published_in_its_order() {
    let store = fresh().await;
    let events = vec![event("a"), answering("b", "a"), event("a"), answering("c", "b")];
    let answer = one(&store, batch(events, 10)).await;
    assert_eq!(published_all(&answer), [(true, 10), (true, 11), (false, 10), (true, 13)], "twins are one");
    let (open, _) = open_page(&store, 0, 10, 10_000).await;
    assert_eq!(open.iter().map(|open| open.seq).collect::<Vec<_>>(), [10, 11, 13]);
    assert_eq!(store.last_seq(&hub()).await.unwrap(), 13);
    let again = one(&store, batch(vec![event("d"), answering("c", "b")], 20)).await;
    assert_eq!(published_all(&again), [(true, 20), (false, 13)], "fresh ones and known ones");
}

#[tokio::test]
async fn a_refused_batch_leaves_nothing_and_harms_nobody() {
    let store = fresh().await;
    one(&store, publish(with_data("taken", "1"), 1)).await.unwrap();
    one(&store, Write::Persist(event("stored"), None)).await.unwrap();
    let answers = store
        .commit(vec![
            publish(event("first"), 2),
            // The last of them is at fault.
            batch(vec![event("x"), event("stored"), answering("y", "x"), with_data("taken", "2")], 3),
            // It would answer an event of that batch.
            publish(answering("z", "x"), 7),
            batch(vec![event("a"), event("b")], 8),
            batch(vec![event("c"), answering("d", "e"), event("e")], 10),
            publish(with_data("taken", "2"), 13),
            publish(event("last"), 14),
        ])
        .await;
    let codes: Vec<_> = answers.iter().map(code_of).collect();
    let (conflict, no_rid) = (code::EVENT_CONFLICT, code::RID_NOT_FOUND);
    assert_eq!(codes, ["ok", conflict, no_rid, "ok", no_rid, conflict, "ok"]);
    assert!(answers[1].as_ref().unwrap_err().to_string().contains("taken"), "the event is named");
    for absent in ["x", "y", "z", "c", "d", "e"] {
        assert_eq!(store.event(&id(absent)).await.unwrap(), None, "{absent}");
    }
    let (_, trace) = store.trace(&id("stored")).await.unwrap().unwrap();
    assert_eq!(trace.state, "persisted", "the batch didn't publish it");
    assert_eq!(store.counts(&hub()).await.unwrap().published, 5);
}

#[tokio::test]
async fn a_batch_that_the_database_refuses_is_refused_alone_and_whole() {
    let store = fresh().await;
    engines::refuse(&store, "event", "new.name = 'poison'", "no poison here").await;
    let poison = Event { name: Name::parse("poison").unwrap(), ..event("poison") };
    let answers = store
        .commit(vec![
            batch(vec![event("a"), event("b")], 1),
            batch(vec![event("c"), poison, event("d")], 3),
            publish(event("e"), 6),
        ])
        .await;
    assert_eq!(answers.iter().map(code_of).collect::<Vec<_>>(), ["ok", code::DB_FAULT, "ok"]);
    assert_eq!(store.counts(&hub()).await.unwrap().events, 3);
}

#[tokio::test]
async fn a_batch_of_1000_is_stored_whole() {
    let store = fresh().await;
    let events = (0..1_000).map(|n| event(&format!("e{n}"))).collect();
    let answer = one(&store, batch(events, 1)).await;
    assert_eq!(published_all(&answer), (1..=1_000).map(|seq| (true, seq)).collect::<Vec<_>>());
    assert_eq!(store.counts(&hub()).await.unwrap().open, 1_000);
}

#[tokio::test]
async fn what_is_persisted_waits_for_its_publish() {
    let store = fresh().await;
    let persist = |event: Event| Write::Persist(event, None);
    let stored = published(&one(&store, persist(event("e"))).await);
    assert_eq!(stored, Published::fresh(AT, 0));
    let again = Event { timestamp: AT + 9, ..event("e") };
    let again = published(&one(&store, persist(again)).await);
    assert_eq!(again, duplicate(AT, 0, PublishState::Persisted));
    assert_eq!(code_of(&one(&store, persist(with_data("e", "2"))).await), code::EVENT_CONFLICT);
    assert_eq!(code_of(&one(&store, persist(answering("f", "nobody"))).await), code::RID_NOT_FOUND);
    assert!(open_page(&store, 0, 10, 1_000).await.0.is_empty());
    assert_eq!(code_of(&one(&store, finish("e", 0, Outcome::Success)).await), code::EVENT_NOT_FOUND);

    let later = Event { timestamp: AT + 99, ..event("e") };
    let answer = published(&one(&store, publish(later, 7)).await);
    assert_eq!(answer, Published::fresh(AT, 7), "its time stays");
    let again = published(&one(&store, persist(event("e"))).await);
    assert_eq!(again, duplicate(AT, 7, PublishState::Pending), "it is published already");
}

#[tokio::test]
async fn persisted_and_published_in_one_transaction() {
    let store = fresh().await;
    let answers = store
        .commit(vec![
            Write::Persist(event("e"), None),
            publish(answering("f", "e"), 1),
            publish(event("e"), 2),
            Write::Persist(event("e"), None),
        ])
        .await;
    let seqs: Vec<_> = answers.iter().map(published).map(|answer| (answer.fresh, answer.seq)).collect();
    assert_eq!(seqs, [(true, 0), (true, 1), (true, 2), (false, 2)]);
}

#[tokio::test]
async fn an_outcome_is_for_the_number_that_was_claimed() {
    let store = fresh().await;
    one(&store, publish(event("e"), 1)).await.unwrap();
    sql(&store, "DELETE FROM event").await;
    one(&store, publish(event("e"), 2)).await.unwrap();
    assert_eq!(code_of(&one(&store, finish("e", 1, Outcome::Success)).await), code::EVENT_NOT_FOUND);
    assert_eq!(store.trace(&id("e")).await.unwrap().unwrap().1.state, "orphan");
    one(&store, finish("e", 2, Outcome::Dead)).await.unwrap();
}
