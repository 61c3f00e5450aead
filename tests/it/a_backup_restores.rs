//! Promise: a backup that is made while the hub works is whole: restored into a new folder, with the key phrase, a hub
//! has every event that was acked before the backup began, knows its clients, and delivers what was pending.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use eventflow::spoke::{Consume, Publish, Spoke, SpokeConfig};
use sea_orm::{ConnectionTrait, Database};
use tokio::{sync::mpsc, time::timeout};

use crate::support::{PATIENCE, TestHub, engine, process::Home};

/// Runs the command line client with the hub's data folder.
async fn client(data: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_eventflow"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("EVENTFLOW_"))
    {
        command.env_remove(name);
    }
    command.args(arguments).arg("--data-folder").arg(data);
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

fn words(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Publishes one after the other until told to stop; the ids of those that were acked go out as they are.
async fn publish(spoke: Spoke, stop: Arc<AtomicBool>, acked: mpsc::UnboundedSender<String>) {
    let filler = "x".repeat(2_000);
    while !stop.load(Ordering::Relaxed) {
        let event = Publish::new("orders", "created", "order-1").data(&filler).unwrap();
        let pending = spoke.publish_later(event).await.unwrap();
        let id = pending.id().to_string();
        pending.await.unwrap();
        acked.send(id).unwrap();
    }
    spoke.close().await;
}

#[tokio::test]
async fn what_was_acked_before_it_began_is_there_after_a_restore() {
    if engine::is_only_for_sqlite("on a server its own tools make backups") {
        return;
    }
    const BEFORE: usize = 300;
    let home = Home::new();
    let hub = home.start().await;
    let credentials = home.spoke_config();
    // Somebody wants these, but isn't there.
    let spoke = home.spoke().await;
    spoke.claims(Consume::new("orders", "created")).await.unwrap().stop().await.unwrap();

    let stop = Arc::new(AtomicBool::new(false));
    let (acked, mut events) = mpsc::unbounded_channel();
    let publisher = tokio::spawn(publish(spoke, stop.clone(), acked));
    let mut before = BTreeSet::new();
    while before.len() < BEFORE {
        before.insert(timeout(PATIENCE, events.recv()).await.unwrap().unwrap());
    }
    let backups = tempfile::tempdir().unwrap();
    let file = backups.path().join("copy.db");
    let made = client(&home.data(), &["backup", file.to_str().unwrap()]).await;
    assert!(made.status.success(), "{}", words(&made));
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(backups.path()).unwrap().count(), 1, "no temporary file is left");
    stop.store(true, Ordering::Relaxed);
    publisher.await.unwrap();
    assert!(events.recv().await.is_some(), "events came while the backup was made");
    hub.kill().await;

    let phrase = fs::read(home.data().join("key-phrase")).unwrap();
    let id = fs::read_to_string(home.data().join("hub-id")).unwrap();
    fs::remove_dir_all(home.data()).unwrap();
    fs::create_dir(home.data()).unwrap();
    fs::copy(&file, home.database()).unwrap();
    fs::write(home.data().join("key-phrase"), phrase).unwrap();
    let hub = home.start().await;
    assert_eq!(fs::read_to_string(home.data().join("hub-id")).unwrap(), id, "its events are its own again");

    let spoke = Spoke::connect(credentials).await.expect("the old credentials hold");
    let mut claims = spoke.claims(Consume::new("orders", "created").credit(64)).await.unwrap();
    let mut missing = before.clone();
    while !missing.is_empty() {
        let claim = timeout(PATIENCE, claims.next()).await.expect("what was pending is delivered").unwrap();
        missing.remove(claim.event().id.as_str());
        claim.ack().await.unwrap();
    }
    claims.stop().await.unwrap();
    for id in &before {
        assert!(spoke.read(id).await.is_ok(), "{id}");
    }
    spoke.close().await;
    hub.kill().await;
}

#[tokio::test]
async fn a_file_that_is_there_is_kept_unless_forced() {
    if engine::is_only_for_sqlite("on a server its own tools make backups") {
        return;
    }
    let hub = TestHub::start().await;
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("copy.db");
    fs::write(&file, "dear").unwrap();
    let arguments = ["backup", file.to_str().unwrap()];
    let refused = client(&hub.data(), &arguments).await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(words(&refused).contains("is there already") && words(&refused).contains("(E_EVENTFLOW_BACKUP)"));
    assert_eq!(fs::read(&file).unwrap(), b"dear");

    let forced = client(&hub.data(), &[&arguments[..], &["--force"]].concat()).await;
    assert!(forced.status.success(), "{}", words(&forced));
    let bytes = fs::read(&file).unwrap();
    assert!(bytes.starts_with(b"SQLite format 3\0"));
    let told: serde_json::Value = serde_json::from_slice(&forced.stdout).unwrap();
    assert_eq!(told["bytes"], bytes.len());

    let nowhere = client(&hub.data(), &["backup", "/nowhere/copy.db"]).await;
    assert!(words(&nowhere).contains("/nowhere/copy.db can't be written"), "{}", words(&nowhere));
    let wrong = "0".repeat(64);
    let stranger = client(&hub.data(), &["backup", "x.db", "--admin-token", &wrong]).await;
    assert_eq!(stranger.status.code(), Some(77), "{}", words(&stranger));
    hub.stop().await;
}

/// Without its phrase no key of a restored database opens, and the hub says which file is missing.
#[tokio::test]
async fn without_the_key_phrase_the_start_says_so() {
    if engine::is_only_for_sqlite("on a server its own tools make backups") {
        return;
    }
    let hub = TestHub::start().await;
    let (id, bundle) = (hub.handle.info().id.clone(), hub.bundle());
    let spoke = hub.spoke().await;
    spoke.publish(Publish::new("orders", "created", "order-1").id("e-1")).await.unwrap();
    spoke.close().await;
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("copy.db");
    let made = client(&hub.data(), &["backup", file.to_str().unwrap()]).await;
    assert!(made.status.success(), "{}", words(&made));
    hub.stop().await;

    let data = place.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::copy(&file, data.join("eventflow.db")).unwrap();
    let builder = || eventflow::hub::Hub::builder().data(&data).free_ports();
    let error = builder().start().await.expect_err("no key opens");
    assert!(error.to_string().contains("key-phrase"), "{error}");
    assert_eq!(error.code(), eventflow::event::code::VAULT);

    // Lost for good: with new certificates the events are there all the same.
    fs::remove_file(data.join("key-phrase")).unwrap();
    let url = format!("sqlite://{}", data.join("eventflow.db").display());
    let database = Database::connect(url).await.unwrap();
    database.execute_unprepared("DELETE FROM certificate").await.unwrap();
    database.close().await.unwrap();
    let restored = builder().start().await.expect("it makes new certificates");
    assert_eq!(restored.info().id, id);
    assert_ne!(restored.bundle().root, bundle.root);
    let spoke = Spoke::connect(SpokeConfig::from_bundle(restored.bundle())).await.unwrap();
    assert!(spoke.read("e-1").await.is_ok());
    spoke.close().await;
    restored.shutdown().await.unwrap();
}

#[tokio::test]
async fn what_a_killed_hub_left_of_a_backup_is_removed() {
    if engine::is_only_for_sqlite("on a server its own tools make backups") {
        return;
    }
    let folder = TestHub::start().await.stop().await;
    let left = folder.path().join("data/backup-abc");
    fs::create_dir(&left).unwrap();
    fs::write(left.join("copy.db"), "half").unwrap();
    let hub = TestHub::on(folder, |_| {}).await;
    assert!(!left.exists());
    hub.stop().await;
}

#[tokio::test]
async fn on_a_server_the_servers_own_tool_is_named() {
    let Some(server) = engine::server() else {
        engine::skip("the embedded database is copied by the hub");
        return;
    };
    let hub = TestHub::start().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("copy");
    let output = client(&hub.data(), &["backup", file.to_str().unwrap()]).await;
    let tool = if server == "postgres" { "pg_dump" } else { "mariadb-dump" };
    assert!(!output.status.success() && words(&output).contains(tool), "{}", words(&output));
    assert!(!file.exists());
    hub.stop().await;
}
