//! Copies of the database.

use super::*;
use crate::event::code;

/// Rows enough for SQLite to look up from its work.
const ROWS: u64 = 2_000;

async fn filled(folder: &tempfile::TempDir) -> Store {
    let store = file(&in_file(folder)).await;
    let rows = (1..=ROWS).map(|n| publish(event(&format!("e-{n}")), n)).collect();
    assert!(store.commit(rows).await.iter().all(Result::is_ok));
    store
}

#[tokio::test]
async fn a_copy_holds_what_was_committed_and_no_more() {
    if engines::is_only_for_sqlite("copies of files") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let store = filled(&folder).await;
    // A writer in the middle of a transaction doesn't hold it up.
    let transaction = store.writer.begin().await.unwrap();
    transaction.db().execute_unprepared("DELETE FROM event_published").await.unwrap();
    let path = folder.path().join("copy.db");
    store.snapshot(&path).await.unwrap();
    transaction.roll_back().await;
    assert!(path.metadata().unwrap().len() <= store.bytes().await.unwrap().unwrap());

    let copy = Store::open(&StoreConfig::new(Place::File(path.clone()))).await.unwrap();
    let counts = copy.counts(&hub()).await.unwrap();
    assert_eq!((counts.events, counts.published), (ROWS, ROWS));
    assert_eq!(copy.last_seq(&hub()).await.unwrap(), ROWS);
    assert_eq!(copy.known_hubs().await.unwrap(), [hub()]);
    copy.close().await;
    // It replaces nothing.
    assert!(store.snapshot(&path).await.is_err());
}

#[tokio::test]
async fn a_copy_that_nobody_waits_for_any_more_ends() {
    if engines::is_only_for_sqlite("copies of files") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let store = filled(&folder).await;
    let (from, to) = (folder.path().join("eventflow.db"), folder.path().join("copy.db"));
    let error = snapshot::copy_unwanted(&from, to.to_str().unwrap()).await.unwrap_err();
    assert!(error.to_string().contains("interrupted"), "{error}");
    one(&store, publish(event("after"), ROWS + 1)).await.unwrap();
}

#[tokio::test]
async fn memory_has_no_file_to_copy() {
    if engines::is_only_for_sqlite("copies of files") {
        return;
    }
    let store = fresh().await;
    assert_eq!(store.bytes().await.unwrap(), None);
    let folder = tempfile::tempdir().unwrap();
    let error = store.snapshot(&folder.path().join("copy.db")).await.unwrap_err();
    assert_eq!(error.code(), code::DB_FAULT);
}
