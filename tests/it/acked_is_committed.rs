//! Promise: what is acked is committed. A hub that is killed at any moment loses nothing that it acknowledged, and each
//! event gets one outcome after its restart.
//!
//! The hub is killed 3 times under 2,000 publishes per second; `EVENTFLOW_TEST_LONG=1` makes that 20 times under 5,000. `EVENTFLOW_TEST_SEED` repeats a run.

use std::{
    collections::BTreeMap,
    process::{Command, Stdio},
};

use eventflow::{
    event::{EventId, code},
    metrics::Readiness,
};

use crate::support::{
    PATIENCE, Raw, TestHub, engine,
    load::{self, Load},
    process::{Home, has},
    until,
};

fn seed() -> u64 {
    let seed = std::env::var("EVENTFLOW_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("EVENTFLOW_TEST_SEED={seed}");
    seed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_killed_under_load_loses_nothing_that_it_acked() {
    let kills = if load::is_long() { 20 } else { 3 };
    let mut random = fastrand::Rng::with_seed(seed());
    let home = Home::new();
    let mut hub = home.start().await;
    assert_eq!(home.metric("eventflow_store_synchronous ").await, Some(2.0), "synchronous = FULL");
    let publishers = vec![home.spoke().await, home.spoke().await];
    let workers = vec![home.spoke().await, home.spoke().await];
    let load = Load::start(publishers, workers, load::rate()).await;
    for kill in 0..kills {
        if kill % 5 == 4 {
            // Not even ready yet.
            hub.kill().await;
            hub = home.spawn(&[], &[]);
            tokio::task::yield_now().await;
        } else {
            load.acks(random.usize(1..2_000)).await;
        }
        hub.kill().await;
        hub = home.start().await;
    }
    load.acks(100).await;
    assert_eq!(home.metric("eventflow_store_synchronous ").await, Some(2.0), "synchronous = FULL");
    let tally = load.finish().await;
    println!("{kills} times kill -9\n{tally}");
    hub.signal("TERM");
    assert_eq!(hub.ended().await.code(), Some(0));
    assert_eq!(tally.acked.len(), tally.published, "each publish was acked in the end");
    let id = std::fs::read_to_string(home.data().join("hub-id")).unwrap();
    let counts = tally.check(home.database(), id.trim()).await;
    println!("{counts:?}");
    assert!(!home.words().contains("panicked"), "{}", home.words());
}

/// One line of a trace: which file or socket, which call, what it returned.
fn calls(trace: &str) -> Vec<(String, String, i64)> {
    let mut unfinished: BTreeMap<(String, String), String> = BTreeMap::new();
    let mut calls = Vec::new();
    for line in trace.lines() {
        let Some((thread, rest)) = line.trim_start().split_once(' ') else { continue };
        let rest = rest.trim_start();
        let target = |rest: &str| {
            let from = rest.find('<')? + 1;
            // A socket's name has an arrow in it.
            let end = rest[from..].replace("->", "--").find('>')?;
            Some(rest[from..from + end].to_owned())
        };
        let (call, target) = if let Some(rest) = rest.strip_prefix("<... ") {
            let call = rest.split(' ').next().unwrap_or_default().to_owned();
            match unfinished.remove(&(thread.to_owned(), call.clone())) {
                Some(target) => (call, target),
                None => continue,
            }
        } else {
            let Some((call, arguments)) = rest.split_once('(') else { continue };
            let Some(target) = target(arguments) else { continue };
            if rest.ends_with("<unfinished ...>") {
                unfinished.insert((thread.to_owned(), call.to_owned()), target.clone());
                // What is being sent may be on its way from here on; what is read or synced is done at the return.
                if is_write(call) {
                    calls.push((call.to_owned(), target, 1));
                }
                continue;
            }
            (call.to_owned(), target)
        };
        let result = line.rsplit_once(" = ").and_then(|(_, result)| result.split(' ').next()?.parse().ok());
        calls.push((call, target, result.unwrap_or(-1)));
    }
    calls
}

fn is_write(call: &str) -> bool {
    ["write", "writev", "sendto", "sendmsg"].contains(&call)
}

#[tokio::test]
async fn a_sync_of_the_log_precedes_the_ack() {
    if engine::is_only_for_sqlite("it is about the file, its size and its syncs") {
        return;
    }
    if !has("strace", "a_sync_of_the_log_precedes_the_ack") {
        return;
    }
    let may_trace = Command::new("strace").args(["-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
    if !may_trace.is_ok_and(|status| status.success()) {
        eprintln!("skipped: a_sync_of_the_log_precedes_the_ack: strace may not trace here");
        return;
    }
    const ACKS: usize = 5;
    let home = Home::new();
    let out = home.data().with_file_name("trace");
    let traced = "trace=fdatasync,fsync,write,writev,sendto,sendmsg,read,readv,recvfrom,recvmsg";
    // -D: the hub is our child, and the tracer nobody's.
    let strace = ["strace", "-D", "-f", "-yy", "-s", "0", "-e", traced, "-o", out.to_str().unwrap()];
    let mut hub = home.spawn(&strace, &[]);
    hub.ready().await;
    let mut link =
        Raw::connect(&home.spoke_config().bundle, ("127.0.0.1", home.port())).await.greeted().await;
    let own = link.stream.get_ref().0.local_addr().unwrap();
    for n in 0..ACKS {
        let (req, id) = ((n + 1).to_string(), format!("e{n}"));
        link.send(&["publish", &req, &id, "orders", "created", "o-1", "", "{}"]).await;
        let answer = link.answer().await.unwrap();
        assert_eq!(answer[..3], ["ok", req.as_str(), "committed"]);
    }
    hub.signal("TERM");
    while link.record().await.is_some() {}
    drop(link);
    assert_eq!(hub.ended().await.code(), Some(0));

    let socket = format!("127.0.0.1:{}->{own}", home.port());
    let (mut synced, mut arrived, mut acks) = (false, false, Vec::new());
    // The tracer may write its last lines after the hub has ended.
    until("a whole trace", || async {
        std::fs::read_to_string(&out).is_ok_and(|text| text.contains("+++ exited"))
    })
    .await;
    for (call, target, result) in calls(&std::fs::read_to_string(&out).unwrap()) {
        if target.contains(&socket) {
            if is_write(&call) && result > 0 {
                if std::mem::take(&mut arrived) {
                    acks.push(synced);
                }
            } else if result > 0 {
                (arrived, synced) = (true, false);
            }
        } else if target.contains("eventflow.db") && call.ends_with("sync") && result == 0 {
            synced = true;
        }
    }
    // Before them are answers to handshake and greeting; after them nothing arrives that is answered.
    let acks: Vec<_> = acks.iter().rev().take(ACKS).copied().collect();
    println!("between a publish and its ack there was a sync: {acks:?}");
    assert_eq!(acks, [true; ACKS], "{}", std::fs::read_to_string(&out).unwrap());
}

#[tokio::test]
async fn of_256_publishes_the_3_bad_ones_are_refused_by_name() {
    let hub = TestHub::start().await;
    let mut link = hub.v1().await;
    link.send(&["publish", "1000", "taken", "orders", "created", "o-1", "", "{}"]).await;
    assert_eq!(link.answer().await.unwrap()[2], "committed");

    let mut records = String::new();
    for n in 1..=256 {
        let (id, name, rid) = match n {
            7 => (format!("e{n}"), "created", "nowhere"),
            77 => ("taken".to_owned(), "changed", ""),
            177 => (format!("e{n}"), "created ", ""),
            _ => (format!("e{n}"), "created", ""),
        };
        let units = ["publish", &n.to_string(), &id, "orders", name, "o-1", rid, "{}"];
        records.push_str(&units.join("\u{1f}"));
        records.push('\u{1e}');
    }
    link.bytes(records.as_bytes()).await;
    let (mut acked, mut refused) = (0, BTreeMap::new());
    for _ in 0..256 {
        let answer = link.answer().await.expect("an answer to each");
        match answer[0].as_str() {
            "ok" => acked += 1,
            "err" => drop(refused.insert(answer[1].clone(), answer[2].clone())),
            other => panic!("{other}"),
        }
    }
    assert_eq!(acked, 253);
    let expected = [("177", code::INVALID_NAME), ("7", code::RID_NOT_FOUND), ("77", code::EVENT_CONFLICT)];
    assert_eq!(refused, expected.map(|(req, code)| (req.to_owned(), code.to_owned())).into());
    assert_eq!(hub.handle.metrics().hub.published, 254);
    drop(link);
    hub.stop().await;
}

/// Publishes until the hub refuses; gives back what was acked.
async fn fill(hub: &TestHub, data: &str) -> Vec<String> {
    let mut link = hub.v1().await;
    let mut acked = Vec::new();
    for n in 1.. {
        let (req, id) = (n.to_string(), format!("e{n}"));
        link.send(&["publish", &req, &id, "orders", "created", "o-1", "", data]).await;
        let answer = link.answer().await.expect("an answer");
        if answer[0] == "err" {
            assert_eq!(answer[2], code::DB_FULL, "{answer:?}");
            assert!(!answer[4].is_empty(), "it may be tried again: {answer:?}");
            return acked;
        }
        acked.push(id);
        assert!(n < 10_000, "the database never fills");
    }
    acked
}

/// What holds while the database is full, and after there is room again.
async fn full_and_back(hub: TestHub, room: impl AsyncFnOnce(tempfile::TempDir) -> TestHub) {
    let data = format!("\"{}\"", "x".repeat(20_000));
    let mut holder = hub.v1().await;
    holder.send(&["consume", "1", "1", "", "orders", "*", "{\"credit\":1}"]).await;
    let acked = fill(&hub, &data).await;
    assert!(acked.len() > 5, "{}", acked.len());

    let mut readiness = hub.handle.readiness();
    let degraded = readiness.wait_for(|readiness| matches!(readiness, Readiness::Degraded { .. }));
    let degraded = tokio::time::timeout(PATIENCE, degraded).await.expect("the hub says so").unwrap().clone();
    assert!(degraded.reason().contains("full"), "{degraded:?}");
    println!("{} events, then: {}", acked.len(), degraded.reason());

    // An outcome may find room where an event doesn't. That doesn't make the hub ready.
    let claim = loop {
        let record = holder.answer().await.unwrap();
        if record[0] == "claim" {
            break record;
        }
    };
    holder.send(&["ack", "2", &claim[2]]).await;
    let answer = loop {
        let record = holder.answer().await.unwrap();
        if record[1] == "2" {
            break record;
        }
    };
    let done = match answer.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["ok", ..] => 1,
        ["err", _, code::DB_FULL | code::DB_UNAVAILABLE, _, retry] if !retry.is_empty() => 0,
        _ => panic!("{answer:?}"),
    };
    println!("an ack beside them: {}", answer[0]);
    assert!(matches!(*hub.handle.readiness().borrow(), Readiness::Degraded { .. }));
    drop(holder);

    let spoke = hub.spoke().await;
    assert_eq!(spoke.read(&acked[0]).await.unwrap().id.as_str(), acked[0]);
    assert_eq!(spoke.show(&acked[acked.len() - 1]).await.unwrap().1.state, "pending");
    spoke.close().await;
    let (database, folder) = (hub.database(), hub.stop().await);
    let store = engine::store(&database).await;
    for id in &acked {
        assert!(store.event(&EventId::parse(id.as_str()).unwrap()).await.unwrap().is_some(), "{id}");
    }
    store.close().await;

    let hub = room(folder).await;
    let mut link = hub.v1().await;
    link.send(&["publish", "1", "again", "orders", "created", "o-1", "", &data]).await;
    assert_eq!(link.answer().await.unwrap()[2], "committed");
    link.send(&["consume", "2", "1", "", "orders", "*", "{\"credit\":1}"]).await;
    let left = acked.len() - done + 1;
    let mut handled = 0;
    while handled < left {
        let record = link.answer().await.expect("each event comes");
        if record[0] == "claim" {
            handled += 1;
            link.send(&["ack", &(10 + handled).to_string(), &record[2]]).await;
        }
    }
    until("each has its outcome", || async { hub.handle.metrics().hub.outcomes["success"] == left as u64 })
        .await;
    drop(link);
    hub.stop().await;
}

#[tokio::test]
async fn a_full_database_refuses_for_now_reads_and_drains() {
    if engine::is_only_for_sqlite("it is about the file, its size and its syncs") {
        return;
    }
    let small = |config: &mut eventflow::config::HubConfig| config.store.max_bytes = Some(1 << 20);
    full_and_back(TestHub::with(small).await, async |folder| TestHub::on(folder, |_| {}).await).await;
}

#[tokio::test]
async fn a_full_disk_is_no_worse_than_a_full_database() {
    if engine::is_only_for_sqlite("it is about the file, its size and its syncs") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mount = |how: &[&str]| {
        let mut command = Command::new("mount");
        command.args(how).arg(folder.path()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    if !mount(&["-t", "tmpfs", "-o", "size=3m", "tmpfs"]) {
        eprintln!("skipped: a_full_disk_is_no_worse_than_a_full_database: no disk can be mounted here");
        return;
    }
    let disk = Mounted(folder.path().to_owned());
    let inside = tempfile::tempdir_in(folder.path()).unwrap();
    let hub = TestHub::on(inside, |_| {}).await;
    full_and_back(hub, async |inside| {
        assert!(mount(&["-o", "remount,size=64m"]));
        TestHub::on(inside, |_| {}).await
    })
    .await;
    drop(disk);
}

/// Taken away at the end, however the test ends.
struct Mounted(std::path::PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        // It is gone with the machine at the latest.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
