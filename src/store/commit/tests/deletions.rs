//! Deletions and associations.

use super::*;
use crate::wire::{Association, Deletion};

fn delete(what: Deletion, most: usize) -> Write {
    Write::Delete(Delete {
        what,
        before: Some(AT + 1_000),
        most,
        by: uid("SPOKE-9"),
        hub: hub(),
        at: AT + 1_000,
    })
}

fn one_event(id_text: &str) -> Deletion {
    Deletion::Event { id: id(id_text) }
}

fn log_of(pid: &str) -> Deletion {
    Deletion::Log { domain: Domain::parse("orders").unwrap(), pid: Pid::parse(pid).unwrap() }
}

fn deleted(answer: Answer) -> Deleted {
    match answer {
        Ok(Written::Deleted(deleted)) => deleted,
        other => panic!("{other:?}"),
    }
}

fn child(cpid: &str) -> Association {
    Association::ChildProcess {
        domain: Domain::parse("parcels").unwrap(),
        cpid: Pid::parse(cpid.to_owned()).unwrap(),
    }
}

async fn count(store: &Store, of: &str) -> i64 {
    number(store, &format!("SELECT count(*) FROM {of}")).await
}

#[tokio::test]
async fn an_event_goes_with_all_that_hangs_on_it() {
    let store = fresh().await;
    let entity = Association::Entity { eid: crate::event::Eid::parse("customer-4").unwrap() };
    let answers = store
        .commit(vec![
            publish(event("e"), 7),
            publish(answering("f", "e"), 8),
            Write::Attempt(attempt("e", 1)),
            Write::Associate { event_id: id("e"), with: child("parcel-1") },
            Write::Associate { event_id: id("e"), with: entity },
        ])
        .await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    sql(&store, "INSERT INTO event_scheduled (event_id, scheduled) VALUES ('e', '2999-01-01 00:00:00')")
        .await;
    let gone = deleted(one(&store, delete(one_event("e"), 1_000)).await);
    let (domain, name) = (event("e").domain, event("e").name);
    let expected = Gone { id: id("e"), domain, name, seq: Some(7), scheduled: true, open: true };
    assert_eq!(gone, Deleted { gone: vec![expected], rest: None });
    for table in ["event_cpid", "event_eid", "event_scheduled", "v1_attempt"] {
        assert_eq!(count(&store, table).await, 0, "{table}");
    }
    assert_eq!(count(&store, "event_published").await, 1);
    assert_eq!(store.event(&id("f")).await.unwrap().unwrap().rid, None, "who answered it stays");
    assert_eq!(code_of(&one(&store, delete(one_event("e"), 1_000)).await), code::EVENT_NOT_FOUND);
    assert!(published(&one(&store, publish(event("e"), 9)).await).fresh, "a new event");
}

#[tokio::test]
async fn a_log_goes_in_parts_and_what_came_later_stays() {
    let store = fresh().await;
    let mut writes: Vec<Write> = (0..25)
        .map(|n| publish(Event { timestamp: AT + n % 5, ..event(&format!("e{n}")) }, 1 + n.unsigned_abs()))
        .collect();
    writes.push(Write::Persist(event("stored"), None));
    writes.push(publish(Event { timestamp: AT + 1_000, ..event("later") }, 30));
    writes.push(publish(Event { pid: Pid::parse("order-2").unwrap(), ..event("other") }, 31));
    store.commit(writes).await;

    let mut parts = Vec::new();
    let mut rest = Some(delete(log_of("order-1"), 10));
    while let Some(part) = rest {
        let Deleted { gone, rest: left } = deleted(one(&store, part).await);
        parts.push(gone.len());
        rest = left.map(Write::Delete);
    }
    assert_eq!(parts, [10, 10, 6]);
    assert_eq!(texts(&store, "SELECT id FROM event ORDER BY id").await, ["later", "other"]);
    let nothing = deleted(one(&store, delete(log_of("order-9"), 10)).await);
    assert_eq!(nothing, Deleted { gone: Vec::new(), rest: None });

    let lines = texts(&store, "SELECT @text(error) FROM log WHERE agent = 'HUB-1'").await;
    let lines: Vec<serde_json::Value> =
        lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let lines: Vec<_> =
        lines.iter().filter(|line| line["by"] == "SPOKE-9" && line["pid"] == "order-1").collect();
    assert_eq!(lines.len(), 3, "each transaction leaves a line");
    assert_eq!(lines.iter().map(|line| line["count"].as_u64().unwrap()).sum::<u64>(), 26);
    let message = texts(&store, "SELECT message FROM log ORDER BY message").await.swap_remove(0);
    assert_eq!(message, r#"deleted: 10 events of the log "orders" "order-1", by SPOKE-9"#);
}

#[tokio::test]
async fn what_waits_for_its_time_is_in_no_log_and_stays_when_one_goes() {
    let store = fresh().await;
    let schedule = |text: &str| Write::Schedule {
        event: event(text),
        due: AT.saturating_add(1_000_000_000_000),
        publisher: uid("SPOKE-1"),
        replaces: None,
    };
    let answers = store.commit(vec![publish(event("published"), 1), schedule("later")]).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    let gone = deleted(one(&store, delete(log_of("order-1"), 10)).await).gone;
    assert_eq!(
        gone.iter().map(|gone| (gone.id.as_str(), gone.scheduled)).collect::<Vec<_>>(),
        [("published", false)]
    );
    assert!(deleted(one(&store, delete(log_of("order-1"), 10)).await).gone.is_empty(), "nothing is left");
    assert_eq!(store.schedules_waiting(0).await.unwrap(), 1);

    sql(&store, "UPDATE event_scheduled SET executed = '2026-01-01 00:00:00'").await;
    let gone = deleted(one(&store, delete(log_of("order-1"), 10)).await).gone;
    assert_eq!(gone.iter().map(|gone| gone.id.as_str()).collect::<Vec<_>>(), ["later"], "it ran");
}

#[tokio::test]
async fn associations_can_be_made_and_taken_back_any_number_of_times() {
    let store = fresh().await;
    let associate =
        |event_id: &str, cpid: &str| Write::Associate { event_id: id(event_id), with: child(cpid) };
    let dissociate =
        |event_id: &str, cpid: &str| Write::Dissociate { event_id: id(event_id), with: child(cpid) };
    let answers = store
        .commit(vec![
            associate("e", "1"),
            associate("e", "1"),
            associate("nobody", "1"),
            dissociate("nobody", "1"),
            dissociate("e", "2"),
            associate("e", "3"),
            dissociate("e", "3"),
            // Publishes take effect first.
            publish(event("e"), 1),
        ])
        .await;
    let missing = code::EVENT_NOT_FOUND;
    let codes: Vec<_> = answers.iter().map(code_of).collect();
    assert_eq!(codes, ["ok", "ok", missing, missing, "ok", "ok", "ok", "ok"]);
    assert_eq!(count(&store, "event_cpid WHERE cpid = '1' AND domain = 'parcels'").await, 1);
    assert_eq!(count(&store, "event_cpid").await, 1);
    one(&store, dissociate("e", "1")).await.unwrap();
    assert_eq!(count(&store, "event_cpid").await, 0);
}
