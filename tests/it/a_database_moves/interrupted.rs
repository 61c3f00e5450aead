//! Killed in the middle, both ends go on where they were; memory doesn't follow the size.

use std::{path::Path, time::Instant};

use eventflow::{
    event::{Data, Domain, Event, EventId, Name, Outcome, Pid, Uid},
    store::{HubRow, Place, Store, StoreConfig, Write},
};
use sea_orm::{ConnectionTrait, Database, DatabaseConnection, Statement};
use tempfile::TempDir;
use tokio::process::Child;

use super::{done, engine, program, run, servers, text, words};
use crate::support::until;

/// Rows of one transaction.
const BATCH: u64 = 256;

/// A data folder whose database has so many events, half of them done.
async fn many(events: u64) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::File(folder.path().join("eventflow.db"));
    let config = StoreConfig { durability: eventflow::store::Durability::Relaxed, ..StoreConfig::new(place) };
    let store = Store::open(&config).await.unwrap();
    let hub = Uid::parse("HUB-1.EVENTFLOW-HUB").unwrap();
    let row = HubRow {
        id: hub.clone(),
        external_ip: "127.0.0.1".into(),
        external_port: 1,
        internal_ip: "127.0.0.1".into(),
        internal_port: 1,
    };
    store.register_hub(&row).await.unwrap();
    let spoke = Uid::parse("SPOKE-1").unwrap();
    let data =
        Data::parse(r#"{"order": 17, "customer": "somebody", "lines": ["one", "two", "three"]}"#).unwrap();
    let mut seq = 0;
    while seq < events {
        let numbers: Vec<u64> = (seq + 1..=(seq + BATCH).min(events)).collect();
        let id = |seq: u64| EventId::parse(format!("event-{seq:010}")).unwrap();
        let publish = |&seq: &u64| Write::Publish {
            event: Event {
                id: id(seq),
                timestamp: 1_796_000_000_000 + i64::try_from(seq).unwrap(),
                domain: Domain::parse("orders").unwrap(),
                name: Name::parse("created").unwrap(),
                pid: Pid::parse(format!("order-{}", seq % 1_000)).unwrap(),
                rid: None,
                data: data.clone(),
            },
            seq,
            publisher: spoke.clone(),
            hub: hub.clone(),
            expect: None,
        };
        let finish = |&seq: &u64| Write::Finish {
            event_id: id(seq),
            seq,
            outcome: Outcome::Success,
            consumer: spoke.clone(),
            at: 1_796_000_000_000,
            attempt: None,
            hub: hub.clone(),
            group: String::new(),
            round: 1,
            retried: false,
            letter: None,
        };
        for written in store.commit(numbers.iter().map(publish).collect()).await {
            written.unwrap();
        }
        let half = numbers.iter().filter(|seq| *seq % 2 == 0);
        for written in store.commit(half.map(finish).collect()).await {
            written.unwrap();
        }
        seq += BATCH;
    }
    store.close().await;
    folder
}

async fn killed(mut child: Child) {
    child.start_kill().unwrap();
    child.wait().await.unwrap();
}

fn lines(file: &Path) -> u64 {
    std::fs::read(file).map_or(0, |bytes| bytes.iter().filter(|byte| **byte == b'\n').count() as u64)
}

/// How many lines of rows an import has brought in.
async fn reached(db: &DatabaseConnection) -> i64 {
    let sql = "SELECT at FROM v1_marker WHERE name LIKE 'import %'";
    let statement = Statement::from_string(db.get_database_backend(), sql);
    // Before its first migration is over there is no such table.
    let row = db.query_one_raw(statement).await.ok().flatten();
    row.map_or(0, |row| row.try_get_by_index(0).unwrap())
}

#[tokio::test]
async fn killed_in_the_middle_it_goes_on_where_it_was() {
    if engine::is_only_for_sqlite("it goes to the servers by itself") {
        return;
    }
    const EVENTS: u64 = 20_000;
    let folder = many(EVENTS).await;
    let file = folder.path().join("moved.ndjson");
    let export = ["export", "--from", text(folder.path()), text(&file)];
    let child = program(&export).stderr(std::process::Stdio::null()).spawn().unwrap();
    until("a part of the export is there", || async { lines(&file) > 3_000 }).await;
    killed(child).await;
    let part = lines(&file);
    assert!(part < 2 * EVENTS, "it was killed in the middle: {part}");

    let again = run(&export).await;
    assert_eq!(again.status.code(), Some(1));
    assert!(words(&again).contains("`--resume`"), "{}", words(&again));
    let import_part = run(&["import", text(&file), "--to", text(&folder.path().join("part"))]).await;
    assert!(words(&import_part).contains("its export isn't over"), "{}", words(&import_part));
    let exported = done(&[&export[..], &["--resume"]].concat()).await;
    assert_eq!(exported["states"]["published, success"], EVENTS / 2);
    let whole = folder.path().join("whole.ndjson");
    done(&["export", "--from", text(folder.path()), text(&whole)]).await;
    let rows = |file: &Path| {
        let text = std::fs::read_to_string(file).unwrap();
        text.lines().filter(|line| line.starts_with('[')).map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(rows(&file) == rows(&whole), "what was resumed is what would have been without");

    let mut targets: Vec<(&str, String, String)> = servers()
        .into_iter()
        .map(|(name, server)| {
            let url = engine::create(server);
            (name, url.clone(), url)
        })
        .collect();
    let embedded = folder.path().join("embedded");
    let url = format!("sqlite://{}", embedded.join("eventflow.db").display());
    targets.push(("SQLite", text(&embedded).to_owned(), url));
    for (name, target, url) in targets {
        let import = ["import", text(&file), "--to", &target];
        let child = program(&import).stderr(std::process::Stdio::null()).spawn().unwrap();
        until("the database is there", || async { Database::connect(url.as_str()).await.is_ok() }).await;
        let db = Database::connect(url.as_str()).await.unwrap();
        until("a part of the import is in", || async { reached(&db).await > 0 }).await;
        killed(child).await;
        let part = reached(&db).await;
        db.close().await.unwrap();
        assert!(part > 0 && part < i64::try_from(lines(&file)).unwrap() - 2, "{name}: {part}");

        let imported = done(&import).await;
        assert_eq!(imported["states"], exported["states"], "{name}");
        assert_eq!(imported["tables"], exported["tables"], "{name}");
        let again = run(&import).await;
        assert!(words(&again).contains("isn't empty"), "{name}: {}", words(&again));
    }
}

/// The most memory that a process of this id has had, in KiB.
fn peak(child: &Child) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()?)).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Runs it to its end; the peak of its memory in KiB.
async fn measured(what: &str, rows: u64, arguments: &[&str]) -> u64 {
    let begun = Instant::now();
    let mut child = program(arguments).stdout(std::process::Stdio::null()).spawn().unwrap();
    let mut most = 0;
    let status = loop {
        most = peak(&child).unwrap_or(0).max(most);
        if let Ok(ended) = tokio::time::timeout(std::time::Duration::from_millis(20), child.wait()).await {
            break ended.unwrap();
        }
    };
    assert!(status.success(), "{arguments:?}");
    let seconds = begun.elapsed().as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let rate = rows as f64 / seconds;
    eprintln!("{what}: {seconds:.1} s, {rate:.0} rows/s, at most {} MiB", most / 1_024);
    most
}

/// Ten times the events, the same memory. 1,000,000 by `EVENTFLOW_TEST_LONG=1`.
#[tokio::test]
async fn memory_does_not_follow_the_size() {
    if engine::is_only_for_sqlite("it goes to the servers by itself") {
        return;
    }
    let long = std::env::var_os("EVENTFLOW_TEST_LONG").is_some_and(|value| value == "1");
    let most = if long { 1_000_000 } else { 30_000 };
    let mut peaks = Vec::new();
    for events in [most / 10, most] {
        let folder = many(events).await;
        let file = folder.path().join("moved.ndjson");
        let rows = 2 * events;
        let from = text(folder.path());
        let mut used = vec![measured("export", rows, &["export", "--from", from, text(&file)]).await];
        let target = folder.path().join("target");
        used.push(measured("import to SQLite", rows, &["import", text(&file), "--to", text(&target)]).await);
        if long && events == most {
            for (name, server) in servers() {
                let url = engine::create(server);
                let import = ["import", text(&file), "--to", &url];
                used.push(measured(&format!("import to {name}"), rows, &import).await);
            }
        }
        peaks.push(used);
    }
    for (small, large) in peaks[0].iter().zip(&peaks[1]) {
        assert!(*large < small + 40 * 1_024, "KiB at most, small and large: {peaks:?}");
    }
}
