//! Promise: on a server's database one hub id runs in one place at a time. A second one is refused while the lease lives; if
//! it is over, whoever takes the id fences the other, which commits nothing any more and takes its place again later.

use std::fs;

use eventflow::{event::code, hub::Hub, metrics::Readiness};
use sea_orm::ConnectionTrait;
use tokio::time::timeout;

use crate::support::{PATIENCE, TestHub, config, engine};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copied_folder_is_refused_and_later_fences() {
    if engine::server().is_none() {
        eprintln!("skipped: on SQLite the lock of the data folder says it");
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

    let mut link = one.v1().await;
    let rows = engine::open(&one.database()).await;
    let mut tries = 0;
    let other = loop {
        // As if the first hub had stood still for longer than its lease; but it hasn't, and may be quicker.
        rows.execute_unprepared("UPDATE v1_hub_lease SET until_ms = 0").await.unwrap();
        match start().await {
            Ok(handle) => break TestHub { handle, folder },
            Err(refused) => assert_eq!(refused.code(), code::DB_IN_USE, "{refused}"),
        }
        tries += 1;
        assert!(tries < 100, "its place can't be taken");
    };
    let mut readiness = one.handle.readiness();
    let is_fenced = |state: &Readiness| state.reason().contains("runs on");
    let told = timeout(PATIENCE, readiness.wait_for(is_fenced)).await;
    told.expect("the first hub says that its place is taken").unwrap();
    let bye = link.answer().await.expect("last words");
    assert_eq!((&*bye[0], &*bye[1]), ("bye", code::HUB_RESTART), "{bye:?}");
    let event = ["publish", "1", "e-1", "orders", "created", "o-1", "", "1"];
    assert_eq!(other.v1().await.ask(&event).await[2], "committed");

    // The other one goes, and its lease with it.
    other.stop().await;
    let ready = timeout(PATIENCE, readiness.wait_for(Readiness::is_ready)).await;
    ready.expect("it takes its place again").unwrap();
    assert_eq!(one.v1().await.ask(&event).await[2], "duplicate");
    one.stop().await;
}
