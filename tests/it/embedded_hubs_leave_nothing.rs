//! Promise: two embedded hubs leave nothing behind: no thread, no open port, no descriptor, no lock, and no file
//! besides the data folder; whether they were shut down or dropped, or never got up.
#![cfg(target_os = "linux")]

use std::{
    collections::BTreeSet,
    fs,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use eventflow::{
    hub::{Hub, HubBuilder, HubError, HubHandle},
    spoke::{Consume, Publish, Spoke, SpokeConfig},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::PATIENCE;

/// Set in the process that this test has for itself.
const ALONE: &str = "EVENTFLOW_TEST_ALONE";

/// What a process has: other tests in this one would come and go.
#[test]
fn two_embedded_hubs_leave_nothing() {
    if let Some(place) = std::env::var_os(ALONE) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        return runtime.block_on(in_a_process_of_its_own(Path::new(&place)));
    }
    let folder = tempfile::tempdir().unwrap();
    let (here, temporary) = (folder.path().join("here"), folder.path().join("tmp"));
    fs::create_dir(&here).unwrap();
    fs::create_dir(&temporary).unwrap();
    let ended = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "embedded_hubs_leave_nothing::two_embedded_hubs_leave_nothing", "--nocapture"])
        .current_dir(&here)
        .env("TMPDIR", &temporary)
        .env(ALONE, &here)
        .output()
        .unwrap();
    let words =
        format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success() && words.contains("1 passed"), "{words}");
    assert_eq!(names(&temporary), BTreeSet::new(), "temporary files");
    assert_eq!(names(&here), ["data".to_owned()].into(), "files beside the data folder");
    let data = names(&here.join("data"));
    let known = ["admin-token", "eventflow.db", "hub-id", "key-phrase", "lock", "operator.toml"];
    assert_eq!(data, known.map(str::to_owned).into(), "files in the data folder");
}

async fn in_a_process_of_its_own(here: &Path) {
    let disk = || Hub::builder().data(here.join("data")).free_ports();
    let memory = || Hub::builder().in_memory().free_ports();
    let before = Traces::now();

    let hubs = [start(disk()).await, start(memory()).await];
    let running = Traces::now();
    let files = running.files();
    assert!(files.iter().all(|file| file.starts_with(here.join("data"))), "memory is no file: {files:?}");
    let mut ports = Vec::new();
    for hub in hubs {
        ports.extend(work(&hub).await);
        assert!(hub.shutdown().await.unwrap().is_clean());
    }
    before.again("shutdown").await;
    rebind(&ports);

    // The lock is free at once, and so is the folder's every file.
    let (first, second) = (start(disk()).await, start(memory()).await);
    let ports = [work(&first).await, work(&second).await].concat();
    drop((first, second));
    before.again("drop").await;
    rebind(&ports);

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let with_it = Traces::now();
    for builder in [disk(), memory()] {
        let mut config = eventflow::config::HubConfig { data: here.join("data"), ..Default::default() };
        config.hub.internal_port = 0;
        config.admin.port = taken.local_addr().unwrap().port();
        let error = builder.config(config).start().await.expect_err("the port is taken");
        assert!(matches!(error, HubError::Admin(_)), "{error}");
    }
    with_it.again("a start that failed").await;
    let hub = start(disk()).await;
    hub.shutdown().await.unwrap();
}

async fn start(builder: HubBuilder) -> HubHandle {
    builder.start().await.expect("the hub starts")
}

/// Makes the hub use all it has; returns its addresses.
async fn work(hub: &HubHandle) -> Vec<SocketAddr> {
    let spoke = Spoke::connect(SpokeConfig::from_bundle(hub.bundle())).await.expect("the spoke connects");
    let (handled, mut done) = tokio::sync::mpsc::channel(1);
    let consumer = spoke
        .consume(Consume::new("work", "*"), move |event| {
            let handled = handled.clone();
            async move { handled.send(event).await }
        })
        .await
        .unwrap();
    for n in 0..20 {
        spoke.publish(Publish::new("work", "made", format!("p-{n}"))).await.unwrap();
        done.recv().await.unwrap();
    }
    spoke.log("work", "p-1").collect(10).await.unwrap();
    consumer.stop().await.unwrap();
    spoke.close().await;

    let admin = hub.info().admin.expect("admin HTTP is on");
    let mut link = TcpStream::connect(admin).await.unwrap();
    link.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    link.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    vec![hub.info().address, admin]
}

fn rebind(ports: &[SocketAddr]) {
    for address in ports {
        TcpListener::bind(address).unwrap_or_else(|error| panic!("{address}: {error}"));
    }
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// What this process has at a moment, by name.
#[derive(Debug, PartialEq)]
struct Traces {
    threads: Vec<String>,
    descriptors: Vec<PathBuf>,
}

impl Traces {
    fn now() -> Self {
        // One that ends meanwhile has no name any more.
        let mut threads: Vec<_> = fs::read_dir("/proc/self/task")
            .unwrap()
            .filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("comm")).ok())
            .map(|name| name.trim().to_owned())
            .collect();
        let mut descriptors: Vec<_> = fs::read_dir("/proc/self/fd")
            .unwrap()
            .filter_map(|descriptor| fs::read_link(descriptor.ok()?.path()).ok())
            // Numbers of sockets and pipes differ each time; the folder that is being read is ours.
            .map(|target| {
                target.to_string_lossy().split_once(":[").map_or(target.clone(), |(kind, _)| kind.into())
            })
            .filter(|target| !target.starts_with("/proc"))
            .collect();
        threads.sort();
        descriptors.sort();
        Self { threads, descriptors }
    }

    /// Those that have a name in the file system, but for devices.
    fn files(&self) -> Vec<&PathBuf> {
        self.descriptors.iter().filter(|path| path.is_absolute() && !path.starts_with("/dev")).collect()
    }

    /// Waits until it is so again: the system takes a moment to forget a thread.
    async fn again(&self, what: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let now = Self::now();
            if now == *self {
                return;
            }
            assert!(Instant::now() < deadline, "{what} left something: {now:#?}\ninstead of {self:#?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
