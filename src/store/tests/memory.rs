//! A database in memory: one connection for all.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use super::*;
use crate::wire::LogOf;

async fn memory() -> Store {
    file(&StoreConfig::new(Place::Memory)).await
}

#[tokio::test]
async fn it_is_opened_and_closed_as_a_file_is() {
    if engines::is_only_for_sqlite("a database in memory") {
        return;
    }
    let store = memory().await;
    assert_eq!(store.synchronous().await.unwrap(), 2);
    one(&store, publish(event("e-1"), 7)).await.unwrap();
    assert_eq!(store.last_seq(&hub()).await.unwrap(), 7);
    let other = store.clone();
    store.close().await;
    assert!(other.event(&id("e-1")).await.is_err(), "it is gone");
}

#[tokio::test]
async fn a_read_sees_nothing_of_an_unfinished_transaction() {
    if engines::is_only_for_sqlite("a database in memory") {
        return;
    }
    let store = memory().await;
    let transaction = store.writer.begin().await.unwrap();
    let row = "INSERT INTO event (id, timestamp, domain, pid, name, data) \
               VALUES ('e-1', '2026-11-30 00:00:00.000', 'orders', 'order-1', 'created', '1')";
    transaction.db().execute_unprepared(row).await.unwrap();
    // Its future was dropped, say.
    drop(transaction);
    assert_eq!(store.event(&id("e-1")).await.unwrap(), None);
    one(&store, publish(event("e-1"), 7)).await.unwrap();
    assert!(store.event(&id("e-1")).await.unwrap().is_some());
}

/// However many links read pages at once, a commit isn't behind them all.
#[tokio::test]
async fn a_commit_passes_the_reads_that_wait() {
    if engines::is_only_for_sqlite("a database in memory") {
        return;
    }
    const READS: usize = 200;
    let store = memory().await;
    let rows = (0..500).map(|n| publish(event(&format!("e-{n}")), n)).collect();
    assert!(store.commit(rows).await.iter().all(Result::is_ok));
    let done = Arc::new(AtomicUsize::new(0));
    let reads: Vec<_> = (0..READS)
        .map(|_| {
            let (store, done) = (store.clone(), done.clone());
            tokio::spawn(async move {
                let of = LogOf::Process { domain: event("x").domain, pid: event("x").pid };
                store.log_page(&of.into(), None, 1_000, 1_000_000).await.unwrap();
                done.fetch_add(1, Ordering::Relaxed);
            })
        })
        .collect();
    // All of them stand in line once the first is through.
    while done.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    let before = done.load(Ordering::Relaxed);
    one(&store, publish(event("new"), 1_000)).await.unwrap();
    let passed = done.load(Ordering::Relaxed) - before;
    assert!(passed <= 10, "{passed} reads came before the commit");
    for read in reads {
        read.await.unwrap();
    }
}
