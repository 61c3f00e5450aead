//! Trouble with the database itself: full, locked, read-only, an abandoned transaction.

use std::path::Path;

use sea_orm::sqlx::{Connection, Executor, SqliteConnection, sqlite::SqliteConnectOptions};

use super::*;
use crate::event::Pattern;

fn large(id: &str, bytes: usize) -> Event {
    Event { data: Data::from_value(&"x".repeat(bytes)).unwrap(), ..event(id) }
}

#[tokio::test]
async fn a_full_database_refuses_the_whole_batch_and_recovers() {
    if engines::is_only_for_sqlite("a file that is full") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let store = file(&StoreConfig { max_bytes: Some(1 << 20), ..in_file(&folder) }).await;
    one(&store, publish(event("small"), 1)).await.unwrap();
    let room = (0..8).map(|n| publish(large(&format!("r{n}"), 50_000), 2 + n)).collect();
    assert!(store.commit(room).await.iter().all(Result::is_ok));

    for round in 0..2 {
        let batch = (0..20).map(|n| publish(large(&format!("{round}-{n}"), 50_000), 100 + n)).collect();
        let answers = store.commit(batch).await;
        assert_eq!(answers.len(), 20);
        for answer in &answers {
            let error = answer.as_ref().unwrap_err();
            assert_eq!(error.code(), code::DB_FULL);
            assert!(error.is_retryable() && crate::event::Fault::from(error.clone()).is_retryable());
        }
    }
    // Nothing of it is there, reads and small writes go on.
    assert_eq!(store.counts(&hub()).await.unwrap().events, 9);
    assert!(store.event(&id("small")).await.unwrap().is_some());
    one(&store, finish("small", 1, Outcome::Success)).await.unwrap();
    one(&store, publish(event("fits"), 200)).await.unwrap();

    sql(&store, "DELETE FROM event WHERE id LIKE 'r%'").await;
    let batch = (0..8).map(|n| publish(large(&format!("new{n}"), 50_000), 300 + n)).collect();
    assert!(store.commit(batch).await.iter().all(Result::is_ok));
    assert_eq!(store.counts(&hub()).await.unwrap().events, 10);
    assert_eq!(store.synchronous().await.unwrap(), 2);
}

#[tokio::test]
async fn a_full_database_refuses_events_and_still_takes_outcomes_beside_them() {
    if engines::is_only_for_sqlite("a file that is full") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let store = file(&StoreConfig { max_bytes: Some(1 << 20), ..in_file(&folder) }).await;
    one(&store, publish(event("a"), 1)).await.unwrap();
    one(&store, publish(event("b"), 2)).await.unwrap();
    let big = |n: u64| publish(large(&format!("big{n}"), 700_000), 10 + n);
    let together = (0..2).map(|n| Placed::new(large(&format!("in{n}"), 700_000), 20 + n)).collect();
    let batch = vec![
        finish("a", 1, Outcome::Success),
        big(1),
        Write::Persist(large("stored", 700_000), None),
        Write::Batch { events: together, publisher: uid("SPOKE-1"), hub: hub() },
        finish("b", 2, Outcome::Dead),
    ];
    let answers = store.commit(batch).await;
    let full = code::DB_FULL;
    assert_eq!(answers.iter().map(code_of).collect::<Vec<_>>(), ["ok", full, full, full, "ok"]);
    let counts = store.counts(&hub()).await.unwrap();
    assert_eq!((counts.success, counts.failed, counts.events), (1, 1, 2));
}

#[tokio::test]
async fn a_full_database_lets_events_be_deleted_and_has_room_again() {
    if engines::is_only_for_sqlite("a file that is full") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let store = file(&StoreConfig { max_bytes: Some(1 << 20), ..in_file(&folder) }).await;
    let mut stored = 0;
    while one(&store, publish(large(&format!("e{stored}"), 20_000), stored + 1)).await.is_ok() {
        stored += 1;
    }
    // To the last page.
    while one(&store, publish(event(&format!("small{stored}")), stored + 1)).await.is_ok() {
        stored += 1;
    }
    let (domain, pid) = (event("x").domain, event("x").pid);
    let what = crate::wire::Deletion::Log { domain, pid };
    let delete = Delete { what, before: None, most: 1_000, by: uid("SPOKE-1"), hub: hub(), at: AT };
    let Ok(Written::Deleted(deleted)) = one(&store, Write::Delete(delete)).await else { panic!("deleted") };
    assert_eq!(deleted.gone.len() as u64, stored);
    one(&store, publish(large("fits", 700_000), 10_000)).await.unwrap();
}

/// A program that holds the write lock.
async fn locker(path: &Path) -> SqliteConnection {
    let mut other =
        SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(path)).await.unwrap();
    other.execute("BEGIN IMMEDIATE").await.unwrap();
    other
}

#[tokio::test]
async fn a_foreign_lock_is_waited_for_then_refused_as_retryable() {
    if engines::is_only_for_sqlite("a lock of a whole file") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let store = file(&in_file(&folder)).await;
    let mut other = locker(&folder.path().join("eventflow.db")).await;
    let answers = store.commit(vec![publish(event("a"), 1), publish(event("b"), 2)]).await;
    for answer in &answers {
        let error = answer.as_ref().unwrap_err();
        assert_eq!(error.code(), code::DB_UNAVAILABLE);
        assert!(error.is_retryable());
    }
    assert_eq!(store.event(&id("a")).await.unwrap(), None, "reads go on");
    other.execute("COMMIT").await.unwrap();
    assert!(store.commit(vec![publish(event("a"), 1)]).await[0].is_ok());
}

#[tokio::test]
async fn a_lock_that_ends_in_time_is_not_noticed() {
    if engines::is_only_for_sqlite("a lock of a whole file") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let store = file(&in_file(&folder)).await;
    let mut other = locker(&folder.path().join("eventflow.db")).await;
    let commit = store.commit(vec![publish(event("a"), 1)]);
    let release = async {
        // The commit has met the lock by then: it was polled first.
        tokio::task::yield_now().await;
        other.execute("ROLLBACK").await.unwrap();
    };
    let (answers, ()) = tokio::join!(commit, release);
    assert!(answers[0].is_ok());
}

#[tokio::test]
async fn opening_a_locked_database_is_refused_as_retryable() {
    if engines::is_only_for_sqlite("a lock of a whole file") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let config = in_file(&folder);
    drop(file(&config).await);
    let _other = locker(&folder.path().join("eventflow.db")).await;
    let error = Store::open(&config).await.unwrap_err();
    assert_eq!(error.code(), code::DB_UNAVAILABLE);
}

#[tokio::test]
async fn a_read_only_database_refuses_the_whole_batch_and_recovers() {
    if engines::is_only_for_sqlite("PRAGMA query_only") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let store = file(&in_file(&folder)).await;
    sql(&store, "PRAGMA query_only = 1").await;
    let answers = store.commit(vec![publish(event("a"), 1), publish(event("b"), 2)]).await;
    assert_eq!(answers.iter().map(code_of).collect::<Vec<_>>(), [code::DB_UNAVAILABLE; 2]);
    sql(&store, "PRAGMA query_only = 0").await;
    assert!(store.commit(vec![publish(event("a"), 1)]).await[0].is_ok());
}

#[tokio::test]
async fn an_abandoned_transaction_is_rolled_back_before_the_next() {
    let store = fresh().await;
    let transaction = store.writer.begin().await.unwrap();
    transaction.db().execute_unprepared("DELETE FROM hub").await.unwrap();
    drop(transaction);
    assert!(one(&store, publish(event("a"), 1)).await.is_ok(), "the hub's row is still there");
}

#[tokio::test]
async fn a_hub_that_never_registered_is_refused_alone() {
    let store = fresh().await;
    let stray =
        Write::Publish { event: event("a"), seq: 1, publisher: uid("S"), hub: uid("HUB-9"), expect: None };
    let answers = store.commit(vec![stray, publish(event("b"), 2)]).await;
    assert_eq!(answers.iter().map(code_of).collect::<Vec<_>>(), [code::DB_FAULT, "ok"]);
    assert_eq!(store.event(&id("a")).await.unwrap(), None);
}

#[tokio::test]
async fn a_closed_store_is_unavailable() {
    let folder = tempfile::tempdir().unwrap();
    let config = engines::kept(&folder).await;
    let store = file(&config).await;
    store.clone().close().await;
    assert_eq!(code_of(&one(&store, publish(event("a"), 1)).await), code::DB_UNAVAILABLE);
    assert_eq!(store.event(&id("a")).await.unwrap_err().code(), code::DB_UNAVAILABLE);
}

/// Actors spawn these.
#[test]
fn futures_are_send() {
    fn is_send<T: Send>(_: impl Fn(Store) -> T) {}
    is_send(|store| async move { store.commit(Vec::new()).await });
    is_send(|store| async move {
        store.open_page(&hub(), GroupKey::DEFAULT, 0, (&Pattern::any(), &Pattern::any()), 1, 1).await
    });
    is_send(|store| async move { store.pids_page(&event("e").domain, None, 1).await });
    is_send(|store| async move { store.trace(&id("e")).await });
    is_send(|store| async move { store.register_hub(&hub_row("H")).await });
    is_send(|store| async move { crate::pki::CertificateRows::current(&store, "id").await });
    is_send(|_| async move { Store::open(&StoreConfig::new(Place::Memory)).await });
}
