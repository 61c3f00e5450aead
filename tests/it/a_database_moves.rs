//! Promise: all that a hub's database holds moves to another engine, and back, with its counts and states; the hub goes on
//! there where it was. What is interrupted goes on, and what is damaged is told.

mod interrupted;
mod refused;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Output,
    time::Duration,
};

use eventflow::{
    config::{DatabaseUrl, NpmTimeZone},
    event::Event,
    spoke::{Consume, Nack, Publish, Schedule, Spoke},
};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{process::Command, time::timeout};

use crate::support::{PATIENCE, TestHub, engine};

/// The servers of this machine, by the name of their engine. None: said, and skipped.
fn servers() -> Vec<(&'static str, String)> {
    let known = [("PostgreSQL", "EVENTFLOW_TEST_POSTGRES_URL"), ("MariaDB", "EVENTFLOW_TEST_MYSQL_URL")];
    known
        .into_iter()
        .filter_map(|(name, variable)| match std::env::var(variable) {
            Ok(url) => Some((name, url)),
            Err(_) => {
                eprintln!("skipped for {name}: {variable} isn't set, see tests/servers");
                None
            }
        })
        .collect()
}

/// The command line program, without variables of whoever runs the tests.
fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_eventflow"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("EVENTFLOW_"))
    {
        command.env_remove(name);
    }
    command.args(arguments).kill_on_drop(true);
    command
}

async fn run(arguments: &[&str]) -> Output {
    program(arguments).output().await.unwrap()
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs it, and expects this exit code; what it printed as JSON.
async fn done(arguments: &[&str]) -> Value {
    let output = run(arguments).await;
    assert!(output.status.success(), "{arguments:?}: {}", words(&output));
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A hub on the folder of before, with its database elsewhere.
async fn on(folder: TempDir, url: &str) -> TestHub {
    let url = DatabaseUrl::parse(url).unwrap();
    TestHub::on(folder, |config| {
        config.store.url = Some(url);
        config.mysql.npm_time_zone = NpmTimeZone::Server;
    })
    .await
}

async fn log(spoke: &Spoke) -> Vec<Event> {
    spoke.domain_log("orders").collect(1_000).await.unwrap()
}

/// Takes what comes to the consumer until these are all there, and acks it.
async fn take(spoke: &Spoke, expected: &[&str]) {
    let mut missing: BTreeSet<&str> = expected.iter().copied().collect();
    let mut claims = spoke.claims(Consume::new("orders", "created")).await.unwrap();
    while !missing.is_empty() {
        let claim = timeout(PATIENCE, claims.next()).await.expect("a claim in time").unwrap();
        assert!(
            missing.remove(claim.event().id.as_str()),
            "{:?} came, {missing:?} were missing",
            claim.event().id
        );
        claim.ack().await.unwrap();
    }
    claims.stop().await.unwrap();
}

/// A hub of SQLite with an event in each state: done, dead, pending, scheduled, answered.
async fn lived() -> (TempDir, Vec<Event>) {
    let hub = TestHub::start().await;
    let spoke = hub.spoke().await;
    let event = |id: &str| Publish::new("orders", "created", "order-1").id(id);
    let mut claims = spoke.claims(Consume::new("orders", "created")).await.unwrap();
    for id in ["done", "dead"] {
        spoke.publish(event(id).data(r#"{"größe": "1 & 2", "n": 1.50}"#).unwrap()).await.unwrap();
        let claim = timeout(PATIENCE, claims.next()).await.unwrap().unwrap();
        match id {
            "done" => claim.ack().await.unwrap(),
            _ => claim.nack(Nack::new("out of paper").give_up()).await.unwrap(),
        }
    }
    claims.stop().await.unwrap();
    spoke.publish(event("answer").rid("done")).await.unwrap();
    spoke.publish(event("pending")).await.unwrap();
    spoke.schedule(event("scheduled"), Schedule::after(Duration::from_secs(4))).await.unwrap();
    spoke.group("billing").set(eventflow::spoke::GroupChange::new().max_attempts(3)).await.unwrap();
    let log = log(&spoke).await;
    spoke.close().await;
    (hub.stop().await, log)
}

#[tokio::test]
async fn a_hub_goes_on_where_it_was_on_another_engine_and_back() {
    if engine::is_only_for_sqlite("it goes to the servers by itself") {
        return;
    }
    for (name, server) in servers() {
        let (folder, before) = lived().await;
        let data = folder.path().join("data");
        let file = folder.path().join("moved.ndjson");
        let exported = done(&["export", "--from", text(&data), text(&file)]).await;
        assert_eq!(
            std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions()) & 0o777,
            0o600
        );
        assert_eq!(exported["states"]["published, dead"], 1, "{exported}");
        let url = engine::create(server.clone());
        let imported = done(&["import", text(&file), "--to", &url]).await;
        for part in ["tables", "states", "rows"] {
            assert_eq!(imported[part], exported[part], "{name}: {part}");
        }

        let hub = on(folder, &url).await;
        let spoke = hub.spoke().await;
        let moved = log(&spoke).await;
        assert_eq!(
            moved.iter().filter(|event| event.id.as_str() != "scheduled").collect::<Vec<_>>(),
            before.iter().collect::<Vec<_>>(),
            "{name}"
        );
        take(&spoke, &["pending", "answer", "scheduled"]).await;
        assert!(spoke.default_group().redrive("dead").await.unwrap(), "{name}");
        take(&spoke, &["dead"]).await;
        let (_, trace) = spoke.show("dead").await.unwrap();
        assert!(
            serde_json::to_string(&trace).unwrap().contains("out of paper"),
            "{name}: attempts came along"
        );
        let after = log(&spoke).await;
        spoke.close().await;
        let folder = hub.stop().await;

        // And back, into a folder of its own, which needs the phrase of the former one.
        let back = folder.path().join("back.ndjson");
        let exported = done(&["export", "--from", &url, text(&back)]).await;
        let home = tempfile::tempdir().unwrap();
        let imported = done(&["import", text(&back), "--to", text(&home.path().join("data"))]).await;
        assert_eq!(imported["states"], exported["states"], "{name}");
        fs::copy(data.join("key-phrase"), home.path().join("data/key-phrase")).unwrap();
        let hub = TestHub::on(home, |_| {}).await;
        let id = fs::read_to_string(data.join("hub-id")).unwrap();
        assert_eq!(hub.handle.info().id, id.trim(), "{name}: the hub of before");
        let spoke = hub.spoke().await;
        assert_eq!(log(&spoke).await, after, "{name}");
        spoke.publish(Publish::new("orders", "created", "order-1").id("new")).await.unwrap();
        take(&spoke, &["new"]).await;
        spoke.close().await;
        hub.stop().await;
    }
}

#[tokio::test]
async fn between_servers_too() {
    if engine::is_only_for_sqlite("it goes to the servers by itself") {
        return;
    }
    let servers = servers();
    let [(_, postgres), (_, mysql)] = servers.as_slice() else { return };
    let (folder, _) = lived().await;
    let data = folder.path().join("data");
    let mut from = text(&data).to_owned();
    let mut states = Vec::new();
    for (number, server) in [postgres, mysql, postgres].into_iter().enumerate() {
        let url = engine::create(server.clone());
        let file: PathBuf = folder.path().join(format!("{number}.ndjson"));
        states.push(done(&["export", "--from", &from, text(&file)]).await["states"].clone());
        states.push(done(&["import", text(&file), "--to", &url]).await["states"].clone());
        from = url;
    }
    assert!(states.iter().all(|one| *one == states[0]), "{states:?}");
}

#[tokio::test]
async fn through_a_pipe_too() {
    if engine::is_only_for_sqlite("it is the embedded database's") {
        return;
    }
    let (folder, _) = lived().await;
    let data = folder.path().join("data");
    let exported = run(&["export", "--from", text(&data), "-"]).await;
    assert!(exported.status.success(), "{}", words(&exported));
    assert!(words(&exported).contains("key-phrase"), "{}", words(&exported));
    let other = folder.path().join("other");
    let mut import = program(&["import", "-", "--to", text(&other)]);
    let mut import =
        import.stdin(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut input = import.stdin.take().unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut input, &exported.stdout).await.unwrap();
    drop(input);
    let imported = timeout(PATIENCE, import.wait_with_output()).await.unwrap().unwrap();
    assert!(imported.status.success(), "{}", words(&imported));
    assert!(words(&imported).contains("key-phrase"), "it says what is missing: {}", words(&imported));
}
