//! Promise: on a server's database one hub id runs in one place at a time. A second one is refused while the lease lives; if
//! it is over and another one takes the place, this one commits nothing any more, until it can take its place again.

use std::{fs, time::Duration};

use eventflow::{
    event::code,
    hub::Hub,
    metrics::Readiness,
    spoke::{Consume, Publish},
};
use sea_orm::{ConnectionTrait, TransactionTrait};
use tokio::time::{Instant, timeout};

use crate::support::{PATIENCE, TestHub, config, engine, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copied_folder_is_refused_and_who_lost_its_place_commits_nothing() {
    if engine::server().is_none() {
        engine::skip("on SQLite the lock of the data folder says it");
        return;
    }
    let one = TestHub::start().await;
    let folder = tempfile::tempdir().unwrap();
    engine::note(folder.path(), &engine::url(one.folder.path()).unwrap());
    let config = config(&folder);
    fs::create_dir_all(&config.data).unwrap();
    for file in ["hub-id", "key-phrase"] {
        fs::copy(one.data().join(file), config.data.join(file)).unwrap();
    }
    let start = || Hub::builder().config(config.clone()).start();
    let Err(refused) = start().await else { panic!("the same id runs twice") };
    assert_eq!(refused.code(), code::DB_IN_USE, "{refused}");
    assert!(refused.to_string().contains("runs on"), "{refused}");

    // As the hub elsewhere writes it, if this one stood still for longer than its lease.
    let mut link = one.v1().await;
    let rows = engine::open(&one.database()).await;
    for sql in [
        "UPDATE v1_hub_epoch SET epoch = epoch + 1",
        "UPDATE v1_hub_lease SET host = 'elsewhere', epoch = epoch + 1, until_ms = until_ms + 3000",
    ] {
        assert_eq!(rows.execute_unprepared(sql).await.unwrap().rows_affected(), 1);
    }
    let event = ["publish", "1", "e-1", "orders", "created", "o-1", "", "1"];
    link.send(&event).await;
    let last = link.answer().await.expect("last words");
    assert_ne!(last[0], "ok", "it commits in the place of another: {last:?}");
    let mut readiness = one.handle.readiness();
    let is_fenced = |state: &Readiness| state.reason().contains("runs on elsewhere");
    let told = timeout(PATIENCE, readiness.wait_for(is_fenced)).await;
    told.expect("it says that its place is taken").unwrap();
    until("its links are cut", || async { one.handle.metrics().hub.cuts["restart"] > 0 }).await;

    // The other one goes, and its lease with it.
    let ready = timeout(PATIENCE, readiness.wait_for(Readiness::is_ready)).await;
    ready.expect("it takes its place again").unwrap();
    let answer = one.v1().await.ask(&event).await;
    assert_eq!(answer[2], "committed", "{answer:?}");
    rows.close().await.unwrap();
    one.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_whose_lease_is_in_doubt_hands_out_nothing() {
    if engine::server().is_none() {
        eprintln!("skipped: SQLite has no leases");
        return;
    }
    // Longer than a hand-over takes, also on a machine that is busy.
    const SILENCE: Duration = Duration::from_secs(3);
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let mut claims = spoke.claims(Consume::new("orders", "*")).await.unwrap();
    let rows = engine::open(&hub.database()).await;
    // It can write everything but its lease.
    let lock = rows.begin().await.unwrap();
    lock.execute_unprepared("UPDATE v1_hub_lease SET epoch = epoch").await.unwrap();
    let began = Instant::now();
    let mut published = 0;
    loop {
        assert!(began.elapsed() < PATIENCE, "it still hands out");
        spoke.publish(Publish::new("orders", "created", "order-1")).await.unwrap();
        published += 1;
        let Ok(claim) = timeout(SILENCE, claims.next()).await else { break };
        claim.unwrap().ack().await.unwrap();
        published -= 1;
    }
    assert!(began.elapsed() > Duration::from_secs(6), "its lease had been renewed just before");
    for _ in 0..10 {
        spoke.publish(Publish::new("orders", "created", "order-1")).await.unwrap();
    }
    assert!(timeout(SILENCE, claims.next()).await.is_err(), "it hands out though its lease is in doubt");
    lock.rollback().await.unwrap();
    for _ in 0..published + 10 {
        timeout(PATIENCE, claims.next()).await.expect("a claim in time").unwrap().ack().await.unwrap();
    }
    rows.close().await.unwrap();
    spoke.close().await;
    hub.stop().await;
}
