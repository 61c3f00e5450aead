//! A hub in a process of its own, so that its memory can be read and its process be stopped.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

use eventflow::{
    pki::Bundle,
    spoke::{Spoke, SpokeConfig},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    time::timeout,
};

use crate::support::{PATIENCE, Raw};

const MIB: u64 = 1024 * 1024;

/// A running hub, on free ports. Killed when dropped.
pub struct HubProcess {
    child: Child,
    folder: TempDir,
    pub address: SocketAddr,
    admin: SocketAddr,
    /// Kept open: a hub whose output is closed would fail to print.
    _stdout: BufReader<ChildStdout>,
}

/// The numbers of `/metrics`, by series with its labels.
pub type Numbers = BTreeMap<String, f64>;

impl HubProcess {
    /// Starts one with these flags besides, and waits until it is ready.
    pub fn start(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_eventflow-hub"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("EVENTFLOW_") {
                command.env_remove(name);
            }
        }
        command
            .arg("--data")
            .arg(folder.path().join("data"))
            .args(["--hub-internal-port=0", "--admin-port=0", "--log-level=warn"])
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(folder.path().join("log")).unwrap());
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut banner = String::new();
        while !banner.contains("\n  admin ") && stdout.read_line(&mut banner).unwrap() > 0 {}
        let after = |word: &str| {
            let line = banner.lines().find_map(|line| line.trim().strip_prefix(word));
            let value = line.unwrap_or_else(|| panic!("{word} in {banner:?}")).trim();
            value.trim_start_matches("http://").trim_end_matches('/').parse().unwrap()
        };
        let (address, admin) = (after("address"), after("admin"));
        Self { child, folder, address, admin, _stdout: stdout }
    }

    pub fn data(&self) -> std::path::PathBuf {
        self.folder.path().join("data")
    }

    pub fn bundle(&self) -> Bundle {
        Bundle::read(self.data().join("operator.toml")).expect("the operator's bundle is there")
    }

    /// A client with the operator's bundle.
    pub async fn spoke(&self) -> Spoke {
        Spoke::connect(SpokeConfig::from_bundle(self.bundle())).await.expect("the spoke connects")
    }

    /// A v1 link that speaks raw records.
    pub async fn v1(&self) -> Raw {
        Raw::connect(&self.bundle(), self.address).await.greeted().await
    }

    /// The same with a small buffer of the system's for what comes in, so that not reading is felt soon.
    pub async fn v1_narrow(&self) -> Raw {
        Raw::over(&self.bundle(), narrow(self.address).await).await.greeted().await
    }

    /// What its memory takes now, in MiB; none where the system doesn't tell.
    pub fn resident(&self) -> Option<u64> {
        status(self.child.id(), "VmRSS:")
    }

    /// The most that it took so far, in MiB.
    pub fn resident_peak(&self) -> Option<u64> {
        status(self.child.id(), "VmHWM:")
    }

    /// Lets [`Self::resident_peak`] count from here.
    pub fn reset_peak(&self) {
        // Where that isn't allowed the peak counts from the start, which only makes a test stricter.
        let _ = std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5");
    }

    pub async fn numbers(&self) -> Numbers {
        let get = async {
            let mut stream = TcpStream::connect(self.admin).await.unwrap();
            let request = format!("GET /metrics HTTP/1.0\r\nHost: {}\r\n\r\n", self.admin);
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).await.unwrap();
            text
        };
        let text = timeout(PATIENCE, get).await.expect("the metrics in time");
        let series = |line: &str| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        text.lines().filter(|line| !line.starts_with('#')).filter_map(series).collect()
    }

    /// One of them; 0 if it isn't there.
    pub async fn number(&self, series: &str) -> f64 {
        self.numbers().await.get(series).copied().unwrap_or(0.0)
    }

    /// What it logged so far: warnings and errors.
    pub fn log(&self) -> String {
        read(&self.folder.path().join("log"))
    }

    /// Nothing failed inside: no actor was restarted, nothing panicked, the core lives.
    pub async fn assert_calm(&self) {
        let numbers = self.numbers().await;
        for (series, value) in &numbers {
            assert!(!series.contains("_restarts_total") || *value == 0.0, "{series} {value}");
        }
        for actor in ["guardian", "listener", "journal", "registry", "deliveries", "monitor"] {
            let series = format!("eventflow_actors_alive{{actor=\"{actor}\"}}");
            assert_eq!(numbers.get(&series), Some(&1.0), "{series}");
        }
        assert!(!self.log().contains("panicked"), "{}", self.log());
    }
}

impl Drop for HubProcess {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A TCP connection that takes little ahead of its reader.
pub async fn narrow(address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(16 * 1024).unwrap();
    socket.connect(address).await.unwrap()
}

fn status(pid: u32, field: &str) -> Option<u64> {
    let status = read(Path::new(&format!("/proc/{pid}/status")));
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib * 1024 / MIB)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}
