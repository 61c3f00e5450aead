//! What a large backlog costs: the time from the start of the hub to its readiness, from `consume` to the first
//! delivery, and the most memory that the hub's process had, once all that waits was counted and again after a consumer
//! drained it for some seconds, for
//!
//! - *pending*: every event waits for its first delivery;
//! - *done*: 98 of 100 are done, and the oldest one waits for its next attempt,
//!
//! each for the default group and for a named one. `cargo bench --bench backlog [-- EVENTS]`; the default is
//! 5,000,000. The events are made by SQL. Ends with 1, and says why, if readiness takes 3 s, the first delivery 1 s or
//! the hub 200 MiB.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a bench that fails may panic")]

use std::{
    path::Path,
    process::{ExitCode, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use eventflow::{
    pki::Bundle,
    spoke::{Consume, Spoke, SpokeConfig},
};
use sea_orm::{ConnectionTrait, Database, DatabaseConnection};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

const GROUP: &str = "billing";
const DOMAIN: &str = "load";
/// The default one and a named one.
const GROUPS: [Option<&str>; 2] = [None, Some(GROUP)];
/// How long what waits is drained.
const DRAIN: Duration = Duration::from_secs(5);
/// How long counting what waits may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// What may not be reached.
const READY: Duration = Duration::from_secs(3);
const FIRST: Duration = Duration::from_secs(1);
/// In MiB.
const MEMORY: u64 = 200;

/// What one start showed.
struct Shown {
    ready: Duration,
    first: Duration,
    /// The most memory until all that waits was counted, in MiB.
    counted: u64,
    /// The same until the end of the drain.
    drained: u64,
    /// Events that were handled in it.
    handled: usize,
}

impl Shown {
    /// What is wrong with it.
    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.ready >= READY {
            faults.push(format!("it is ready after {:?}, not within {READY:?}", self.ready));
        }
        if self.first >= FIRST {
            faults.push(format!("the first event comes after {:?}, not within {FIRST:?}", self.first));
        }
        if self.drained >= MEMORY {
            faults.push(format!("the hub takes {} MiB, not less than {MEMORY} MiB", self.drained));
        }
        faults
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let events = std::env::args().skip(1).find_map(|text| text.parse().ok()).unwrap_or(5_000_000_u64);
    println!(
        "{:<10} {:<8} {:>10} {:>12} {:>16} {:>12} {:>12} {:>10}",
        "what", "group", "events", "ready in ms", "first event ms", "counted MiB", "drained MiB", "handled/s"
    );
    let mut faults = Vec::new();
    for done in [0, events / 100 * 98] {
        let folder = tempfile::tempdir_in(".").unwrap();
        prepare(folder.path(), events, done).await;
        let what = if done == 0 { "pending" } else { "done" };
        for group in GROUPS {
            let shown = measure(folder.path(), group, events - done).await;
            let called = group.unwrap_or("default");
            println!(
                "{what:<10} {called:<8} {events:>10} {:>12} {:>16} {:>12} {:>12} {:>10}",
                shown.ready.as_millis(),
                shown.first.as_millis(),
                shown.counted,
                shown.drained,
                shown.handled as u64 / DRAIN.as_secs()
            );
            faults.extend(shown.faults().into_iter().map(|fault| format!("{what}, {called}: {fault}")));
        }
    }
    if faults.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("{}", faults.join("\n"));
    ExitCode::FAILURE
}

/// A database of a hub with bindings and events.
async fn prepare(folder: &Path, events: u64, done: u64) {
    let (hub, spoke) = start(folder).await;
    for group in GROUPS {
        spoke.claims(consume(group)).await.unwrap().stop().await.unwrap();
    }
    spoke.close().await;
    stop(hub).await;
    let hub = std::fs::read_to_string(folder.join("data/hub-id")).unwrap();
    let database = folder.join("data/eventflow.db");
    let db = Database::connect(format!("sqlite://{}", database.display())).await.unwrap();
    fill(&db, hub.trim(), events, done).await;
    db.close().await.unwrap();
}

async fn fill(db: &DatabaseConnection, hub: &str, events: u64, done: u64) {
    // Numbers are microseconds, and these events are from the future as the bindings see it.
    let numbers =
        format!("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {events})");
    let seq = "(SELECT max(start_seq) FROM v1_binding) + i";
    let now = "strftime('%Y-%m-%d %H:%M:%f', 'now')";
    let success = format!("CASE WHEN i BETWEEN 2 AND {} THEN {now} END", done + 1);
    let statements = [
        "PRAGMA journal_mode = MEMORY".to_owned(),
        "PRAGMA synchronous = OFF".to_owned(),
        "PRAGMA cache_size = -500000".to_owned(),
        format!(
            "{numbers} INSERT INTO event (id, timestamp, domain, pid, name, data) \
             SELECT printf('e%012d', i), {now}, '{DOMAIN}', 'p' || (i / 4), 'made', \
             '{{\"filler\":\"' || hex(zeroblob(100)) || '\"}}' FROM n"
        ),
        format!(
            "{numbers} INSERT INTO event_published \
             (event_id, published, publisher, hub, consumed_hub, success, v1_hub, seq) \
             SELECT printf('e%012d', i), {now}, 'BENCH.EVENTFLOW-SPOKE', '{hub}', {now}, {success}, '{hub}', {seq} FROM n"
        ),
        format!(
            "INSERT INTO v1_outcome (event_id, grp, round, hub, seq, outcome, consumer, ended) \
             SELECT event_id, '{GROUP}', 1, '{hub}', seq, 'success', publisher, success FROM event_published \
             WHERE success IS NOT NULL"
        ),
        format!(
            "INSERT INTO v1_retry (event_id, grp, hub, seq, pid, round, attempts, due) \
             SELECT event_id, grp, '{hub}', seq, 'p0', 1, 1, (strftime('%s', 'now') + 3600) * 1000 \
             FROM event_published JOIN (SELECT '' AS grp UNION SELECT '{GROUP}') \
             WHERE {done} > 0 AND event_id = printf('e%012d', 1)"
        ),
        // As the hub saves it every few seconds: what waits for a retry doesn't hold it back.
        format!(
            "INSERT OR REPLACE INTO v1_cursor (hub_id, grp, seq) \
             SELECT '{hub}', '{GROUP}', max(seq) FROM event_published WHERE success IS NOT NULL HAVING max(seq) > 0"
        ),
        format!("UPDATE v1_hub_seq SET seq = (SELECT max(seq) FROM event_published) WHERE hub_id = '{hub}'"),
        "PRAGMA journal_mode = WAL".to_owned(),
    ];
    for statement in statements {
        db.execute_unprepared(&statement).await.unwrap_or_else(|error| panic!("{error}: {statement}"));
    }
}

fn consume(group: Option<&str>) -> Consume {
    let consume = Consume::new(DOMAIN, "*").credit(1);
    group.into_iter().fold(consume, Consume::group)
}

/// Starts a hub on it that has about so many events to hand out.
async fn measure(folder: &Path, group: Option<&str>, waiting: u64) -> Shown {
    let began = Instant::now();
    let mut hub = spawn(folder);
    ready(&mut hub).await;
    let ready = began.elapsed();
    let spoke = Spoke::connect(SpokeConfig::from_bundle(bundle(folder))).await.unwrap();
    let began = Instant::now();
    let mut claims = spoke.claims(consume(group)).await.unwrap();
    let claim = claims.next().await.expect("an event");
    let first = began.elapsed();
    until_counted(&spoke, group).await;
    let pid = hub.id().unwrap();
    let counted = peak(pid);
    claim.release().await.unwrap();
    claims.stop().await.unwrap();

    let handled = drain(&spoke, group).await;
    assert!(handled > 0 && handled as u64 <= waiting, "{handled} of {waiting} were handled");
    let drained = peak(pid);
    spoke.close().await;
    stop(hub).await;
    Shown { ready, first, counted, drained, handled }
}

/// Waits until the hub knows how much waits for the group: it has looked at all of it then.
async fn until_counted(spoke: &Spoke, group: Option<&str>) {
    let began = Instant::now();
    let group = group.map_or_else(|| spoke.default_group(), |name| spoke.group(name));
    while group.backlog().await.unwrap().pending.is_none() {
        assert!(began.elapsed() < PATIENCE, "what waits wasn't counted within {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Handles what waits for some seconds, as quickly as it comes. Returns how many.
async fn drain(spoke: &Spoke, group: Option<&str>) -> usize {
    let handled = Arc::new(AtomicUsize::new(0));
    let book = handled.clone();
    let handler = move |_| {
        book.fetch_add(1, Ordering::Relaxed);
        async { Ok::<(), String>(()) }
    };
    let consume = Consume::new(DOMAIN, "*").concurrency(64).credit(256);
    let consume = group.into_iter().fold(consume, Consume::group);
    let consumer = spoke.consume(consume, handler).await.unwrap();
    // It is measured over this time, not waited for.
    tokio::time::sleep(DRAIN).await;
    consumer.stop().await.unwrap();
    handled.load(Ordering::Relaxed)
}

/// The most memory that a process had, in MiB.
fn peak(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

async fn start(folder: &Path) -> (Child, Spoke) {
    let mut hub = spawn(folder);
    ready(&mut hub).await;
    let spoke = Spoke::connect(SpokeConfig::from_bundle(bundle(folder))).await.unwrap();
    (hub, spoke)
}

fn spawn(folder: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_eventflow-hub"))
        .arg("--data")
        .arg(folder.join("data"))
        .args(["--hub-internal-port=0", "--admin-port=0", "--log-level=warn"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// Waits until the hub says that it is ready. Nothing reads what it says later.
async fn ready(hub: &mut Child) {
    let mut lines = BufReader::new(hub.stdout.take().unwrap()).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        if line.contains("is ready") {
            hub.stdout = Some(lines.into_inner().into_inner());
            return;
        }
    }
    panic!("the hub ended before it was ready");
}

fn bundle(folder: &Path) -> Bundle {
    Bundle::read(folder.join("data/operator.toml")).unwrap()
}

async fn stop(mut hub: Child) {
    let pid = hub.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().await.unwrap().success());
    assert!(hub.wait().await.unwrap().success());
}
