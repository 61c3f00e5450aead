//! A hub in a process of its own that can be killed and started again on the same folder and ports.

use std::{
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
};

use eventflow::{
    pki::Bundle,
    spoke::{Spoke, SpokeConfig},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    process::{Child, Command},
    time::timeout,
};

use super::{PATIENCE, engine};

/// Where hubs of one folder live, over all their starts.
pub struct Home {
    folder: TempDir,
    port: u16,
    admin: u16,
}

/// A hub that runs. Killed when dropped.
pub struct Process {
    child: Child,
    /// Nothing reads them, but closed they would end the hub's words early.
    _stdout: Option<BufReader<tokio::process::ChildStdout>>,
}

impl Home {
    pub fn new() -> Self {
        // Below those that the system hands out by itself: nobody gets them while the hub is away.
        let free = || loop {
            let port = fastrand::u16(10_000..32_000);
            if let Ok(listener) = std::net::TcpListener::bind(("127.0.0.1", port)) {
                return (port, listener);
            }
        };
        // Both at once, so that they differ.
        let (link, admin) = (free(), free());
        Self { folder: tempfile::tempdir().unwrap(), port: link.0, admin: admin.0 }
    }

    /// Where a hub beside this one lives: of its own, on the same database of a server, with the same key phrase. A hub has
    /// run here before.
    pub fn beside(&self) -> Self {
        let other = Self::new();
        engine::note(other.folder.path(), &engine::url(self.folder.path()).expect("a server"));
        std::fs::create_dir_all(other.data()).unwrap();
        std::fs::copy(self.data().join("key-phrase"), other.data().join("key-phrase")).unwrap();
        other
    }

    /// The id of the hubs of this folder, once one has run.
    pub fn hub_id(&self) -> String {
        std::fs::read_to_string(self.data().join("hub-id")).unwrap().trim().to_owned()
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub fn database(&self) -> PathBuf {
        self.data().join("eventflow.db")
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// What all hubs of this folder wrote to standard error.
    pub fn words(&self) -> String {
        std::fs::read_to_string(self.log()).unwrap_or_default()
    }

    /// Starts a hub, under another program if `wrapper` names one with its arguments.
    pub fn spawn(&self, wrapper: &[&str], arguments: &[&str]) -> Process {
        let program = [wrapper, &[env!("CARGO_BIN_EXE_eventflow-hub")]].concat();
        let mut command = Command::new(program[0]);
        command.args(&program[1..]);
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("EVENTFLOW_"))
        {
            command.env_remove(name);
        }
        if let Some(url) = engine::url(self.folder.path()) {
            command.env("EVENTFLOW_STORE_URL", url).env("EVENTFLOW_MYSQL_NPM_TIME_ZONE", "server");
            command.env("EVENTFLOW_CERTIFICATES_ITERATIONS", "1000");
        }
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.log()).unwrap();
        let child = command
            .env_remove("RUST_BACKTRACE")
            .arg("--data")
            .arg(self.data())
            .args([format!("--hub-internal-port={}", self.port), format!("--admin-port={}", self.admin)])
            .arg("--log-level=warn")
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Process { child, _stdout: None }
    }

    /// Starts a hub and waits until it is ready.
    pub async fn start(&self) -> Process {
        let mut hub = self.spawn(&[], &[]);
        hub.ready().await;
        hub
    }

    pub fn spoke_config(&self) -> SpokeConfig {
        let bundle = Bundle::read(self.data().join("operator.toml")).expect("the operator's bundle is there");
        let mut config = SpokeConfig::from_bundle(bundle);
        config.backoff = (std::time::Duration::from_millis(10), std::time::Duration::from_millis(200));
        config.publish_deadline = 4 * PATIENCE;
        config
    }

    pub async fn spoke(&self) -> Spoke {
        Spoke::connect(self.spoke_config()).await.expect("the spoke connects")
    }

    /// A spoke of this hub alone, however many serve its database.
    pub async fn lone_spoke(&self) -> Spoke {
        let mut config = self.spoke_config();
        config.discover = false;
        Spoke::connect(config).await.expect("the spoke connects")
    }

    /// What the hub's admin HTTP answers to a GET: head and body.
    pub async fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.admin)).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        timeout(PATIENCE, stream.read_to_string(&mut answer)).await.expect("an answer in time").unwrap();
        answer
    }

    /// A number of `/metrics`.
    pub async fn metric(&self, series: &str) -> Option<f64> {
        let metrics = self.get("/metrics").await;
        metrics.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok())
    }
}

impl Process {
    /// Waits until the hub says that it is ready.
    pub async fn ready(&mut self) {
        let Some(stdout) = self.child.stdout.take() else { return };
        let mut stdout = BufReader::new(stdout);
        let mut banner = String::new();
        let telling = async {
            // Its last fact is where admin HTTP is; a hub that fails closes its output.
            while !banner.contains("\n  admin ") && stdout.read_line(&mut banner).await.unwrap() > 0 {}
        };
        timeout(PATIENCE, telling).await.expect("a banner in time");
        assert!(banner.contains("is ready"), "{banner}");
        self._stdout = Some(stdout);
    }

    /// `kill -9`, and waits until the system has taken everything back.
    pub async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    pub fn pid(&self) -> u32 {
        self.child.id().expect("it wasn't waited for")
    }

    /// Sends a signal.
    pub fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }

    /// Waits for its end.
    pub async fn ended(&mut self) -> ExitStatus {
        timeout(PATIENCE, self.child.wait()).await.expect("the hub ends in time").unwrap()
    }
}

pub fn signal(pid: u32, name: &str) {
    let kill = std::process::Command::new("kill").args([format!("-{name}"), pid.to_string()]).status();
    assert!(kill.unwrap().success(), "kill -{name} {pid}");
}

/// Whether a program is there. Says so if it isn't: a test that is left out must show.
pub fn has(program: &str, test: &str) -> bool {
    let there = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|folder| Path::exists(&folder.join(program)));
    if !there {
        eprintln!("skipped: {test}: there is no `{program}` here");
    }
    there
}
