//! A file that is written over while it is open, and one that is full.

use std::{io::Write as _, time::Duration};

use super::*;
use crate::event::{Data, code};

fn large(id: &str) -> Event {
    Event { data: Data::from_value(&"x".repeat(20_000)).unwrap(), ..event(id) }
}

/// Writes over all but the first page, in the same file.
fn damage(place: &Place) {
    let path = place.to_string();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4_096..].fill(0xA5);
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().write_all(&bytes).unwrap();
}

/// A store of twenty events, freshly opened: it has read none of them yet.
async fn twenty(config: &StoreConfig) -> Store {
    let store = file(config).await;
    for n in 0..20 {
        one(&store, publish(large(&format!("e{n}")), n + 1)).await.unwrap();
    }
    store.close().await;
    file(config).await
}

#[tokio::test]
async fn a_read_that_meets_damage_ends_the_writes() {
    if engines::is_only_for_sqlite("files of the database") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let config = in_file(&folder);
    let store = twenty(&config).await;
    damage(&config.place);
    let error = store.event(&id("e7")).await.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    assert!(error.to_string().contains("restore a backup"), "{error}");
    let told = tokio::time::timeout(Duration::from_secs(5), store.damaged()).await.unwrap();
    assert!(matches!(told, StoreError::Corrupt { .. }), "{told}");
    for write in [publish(event("new"), 100), Write::Bind(binding("", "orders.>", "*", 5))] {
        let error = one(&store, write).await.unwrap_err();
        assert_eq!(error.code(), code::DB_UNAVAILABLE, "{error}");
        assert!(error.is_retryable() && error.to_string().contains("damaged"), "{error}");
    }
}

#[tokio::test]
async fn a_write_that_meets_damage_is_the_last() {
    if engines::is_only_for_sqlite("files of the database") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let config = in_file(&folder);
    let store = twenty(&config).await;
    damage(&config.place);
    let batch = (0..20).map(|n| publish(large(&format!("new{n}")), 100 + n)).collect();
    let answers = store.commit(batch).await;
    assert_eq!(answers.len(), 20);
    assert!(answers.iter().all(|answer| matches!(answer, Err(StoreError::Corrupt { .. }))), "{answers:?}");
    tokio::time::timeout(Duration::from_secs(5), store.damaged()).await.unwrap();
}

#[tokio::test]
async fn room_is_what_the_limit_leaves() {
    if engines::is_only_for_sqlite("files of the database") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let store = file(&StoreConfig { max_bytes: Some(1 << 20), ..in_file(&folder) }).await;
    let empty = store.room().await.unwrap();
    assert!((600_000..1 << 20).contains(&empty), "{empty}");
    let mut n = 0;
    while one(&store, publish(large(&format!("e{n}")), n + 1)).await.is_ok() {
        n += 1;
    }
    assert!(store.room().await.unwrap() < 100_000);
    sql(&store, "DELETE FROM event").await;
    assert!(store.room().await.unwrap() > 600_000);
}
