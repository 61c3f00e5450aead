//! What waits look for: the first event after a place in the order of dispatch, and the outcome of an event.

use super::{reads::plan, *};
use crate::wire::Ended;

fn named(id_text: &str, name: &str, rid: Option<&str>) -> Event {
    let name = Name::parse(name.to_owned()).unwrap();
    Event { name, rid: rid.map(id), ..event(id_text) }
}

async fn first(store: &Store, names: &[&str], above: u64) -> Option<String> {
    let names: Vec<_> = names.iter().map(|name| Name::parse((*name).to_owned()).unwrap()).collect();
    let (domain, pid) = (event("x").domain, event("x").pid);
    let found = store.first_of_process(&domain, &pid, &names, above).await.unwrap();
    found.map(|event| event.id.to_string())
}

/// An event of the time `AT` as the npm stack stores it, published at `AT` + `ms`.
async fn foreign(store: &Store, id: &str, published: Option<i64>) {
    let at = time::text(AT);
    let event = format!(
        "INSERT INTO event (id, timestamp, domain, pid, name, data) \
         VALUES ('{id}', @local('{at}'), 'orders', 'order-1', 'created', '1')"
    );
    sql(store, &event).await;
    if let Some(ms) = published {
        let at = time::text(AT + ms);
        let row = format!(
            "INSERT INTO event_published (event_id, published, publisher) VALUES ('{id}', @local('{at}'), 'NPM-1')"
        );
        sql(store, &row).await;
    }
}

#[tokio::test]
async fn the_order_of_dispatch_decides_which_is_first() {
    let store = fresh().await;
    let second = AT.rem_euclid(1_000);
    let at = u64::try_from(AT - second).unwrap() * 1_000;
    foreign(&store, "stored", None).await;
    // By whole seconds, as far as the npm stack's column goes.
    foreign(&store, "npm", Some(5_000 - second)).await;
    store
        .commit(vec![
            publish(named("b", "paid", None), at + 2_000_000),
            publish(named("a", "created", None), at + 7_000_000),
            publish(Event { pid: Pid::parse("other").unwrap(), ..event("o") }, at + 1),
        ])
        .await;
    assert_eq!(first(&store, &[], 0).await.as_deref(), Some("b"));
    assert_eq!(first(&store, &["created"], 0).await.as_deref(), Some("npm"));
    assert_eq!(first(&store, &["created", "paid"], at + 2_000_000).await.as_deref(), Some("npm"));
    assert_eq!(first(&store, &[], at + 5_000_000).await.as_deref(), Some("a"));
    assert_eq!(first(&store, &[], at + 7_000_000).await, None);
    assert_eq!(first(&store, &[], u64::MAX).await, None);
    assert_eq!(first(&store, &["sent"], 0).await, None);
    let position = async |id_text: &str| store.position(&id(id_text)).await;
    assert_eq!(position("b").await.unwrap(), Some(at + 2_000_000));
    assert_eq!(position("npm").await.unwrap(), Some(at + 5_000_000));
    assert_eq!(position("stored").await.unwrap(), None);
    assert!(matches!(position("nothing").await, Err(StoreError::EventNotFound { .. })));
}

#[tokio::test]
async fn what_waits_for_its_time_is_not_dispatched() {
    let store = fresh().await;
    foreign(&store, "later", Some(0)).await;
    sql(
        &store,
        "INSERT INTO event_scheduled (event_id, scheduled) VALUES ('later', '2027-01-01 00:00:00.000')",
    )
    .await;
    assert_eq!(first(&store, &[], 0).await, None);
    assert_eq!(store.position(&id("later")).await.unwrap(), None);
    let ran = AT + 60_001;
    sql(&store, &format!("UPDATE event_scheduled SET executed = '{}'", time::text(ran))).await;
    assert_eq!(first(&store, &[], 0).await.as_deref(), Some("later"));
    let position = u64::try_from(engines::held(ran)).unwrap() * 1_000;
    assert_eq!(store.position(&id("later")).await.unwrap(), Some(position));
    assert_eq!(first(&store, &[], position - 1).await.as_deref(), Some("later"));
}

#[tokio::test]
async fn the_first_answer_is_found_by_its_rid() {
    let store = fresh().await;
    store.commit(vec![publish(event("question"), 1)]).await;
    assert_eq!(store.first_answer(&id("question")).await.unwrap(), None);
    let answers = vec![
        publish(named("z", "answered", Some("question")), 2),
        publish(named("a", "answered", Some("question")), 3),
    ];
    store.commit(answers).await;
    assert_eq!(store.first_answer(&id("question")).await.unwrap().unwrap().id, id("z"));
}

#[tokio::test]
async fn the_standing_of_an_event_is_its_outcome_once_it_has_one() {
    let store = fresh().await;
    let standing = async |id_text: &str| store.standing(&id(id_text)).await.unwrap();
    foreign(&store, "stored", None).await;
    foreign(&store, "npm", Some(1)).await;
    store
        .commit(["open", "good", "bad"].iter().zip(1..).map(|(id, seq)| publish(event(id), seq)).collect())
        .await;
    let open = Standing::Open;
    assert_eq!((standing("stored").await, standing("npm").await), (open.clone(), open.clone()));
    assert_eq!(standing("open").await, open);
    sql(
        &store,
        "UPDATE event_published SET consumed_spoke = '2026-11-30 00:00:00.000' WHERE event_id = 'npm'",
    )
    .await;
    assert_eq!(standing("npm").await, Standing::Open);

    let last = AttemptRow { error: "no such customer".into(), ..attempt("bad", 2) };
    let dead = ended("bad", 3, Outcome::Dead, "SPOKE-2", AT + 9, Some(last));
    store.commit(vec![Write::Attempt(attempt("bad", 1)), dead, finish("good", 2, Outcome::Success)]).await;
    let ended_as = |state: &str, ended, error: &str| {
        let (state, error) = (state.to_owned(), error.to_owned());
        Standing::Ended(Ended { state, consumer: Some(uid("SPOKE-2")), ended, error })
    };
    assert_eq!(standing("good").await, ended_as("success", engines::held(AT + 5), ""));
    assert_eq!(standing("bad").await, ended_as("dead", engines::held(AT + 9), "no such customer"));
    assert!(matches!(store.standing(&id("nothing")).await, Err(StoreError::EventNotFound { .. })));
    let all = ["stored", "npm", "nothing", "open", "bad", "good"].map(id);
    let mut over = store.over(&all).await.unwrap();
    over.sort_unstable();
    assert_eq!(over, ["bad", "good", "nothing"].map(id), "just those that don't stand open");
}

#[tokio::test]
async fn waits_look_by_an_index() {
    if engines::is_only_for_sqlite("EXPLAIN QUERY PLAN is SQLite's") {
        return;
    }
    let store = fresh().await;
    let names = [event("x").name];
    let (sql, values) = super::super::first::of_process(&event("x").domain, &event("x").pid, &names, 1);
    let log = plan(&store, sql, values).await;
    assert!(log.contains("SEARCH e USING INDEX event_log (domain=? AND pid=?)"), "{log}");
    let (sql, values) = super::super::first::of_answers(&id("e"));
    let answers = plan(&store, sql, values).await;
    assert!(answers.contains("SEARCH e USING INDEX event_rid (rid=?)"), "{answers}");
    for plan in [log, answers] {
        assert!(!plan.contains("SCAN"), "{plan}");
    }
}
