//! The hub that is measured: one that runs, or one that is started for it.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use eventflow::{
    event::code,
    pki::Bundle,
    spoke::{Spoke, SpokeConfig},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, ChildStdout, Command},
    sync::Semaphore,
    task::JoinSet,
    time::timeout,
};

use super::meter::Meter;
use crate::failure::Failure;

const HUB: &str = "eventflow-hub";
/// What a hub may take to start, and to stop.
const START: Duration = Duration::from_secs(60);
/// Connections under way at once.
const AT_ONCE: usize = 16;

/// The hub that is measured.
pub(super) struct Target {
    config: SpokeConfig,
    /// Where its process can be looked at.
    pub(super) meter: Option<Meter>,
    embedded: Option<Embedded>,
}

/// A hub that was started here. Killed when dropped.
struct Embedded {
    child: Child,
    /// Closed it would end the hub's words early.
    _stdout: BufReader<ChildStdout>,
    /// Removed when dropped.
    _folder: TempDir,
}

impl Target {
    /// A hub that runs already.
    pub(super) fn running(config: SpokeConfig, pid: Option<u32>) -> Self {
        Self { config, meter: pid.map(Meter::of), embedded: None }
    }

    /// Starts a hub in a temporary folder and waits until it is ready.
    pub(super) async fn embedded(flags: &[String]) -> Result<Self, Failure> {
        let failed = |what: &str, error: &dyn std::fmt::Display| {
            Failure::new(code::INTERNAL, format!("the hub of --embedded can't be started: {what}: {error}"))
        };
        let folder = tempfile::tempdir().map_err(|error| failed("its folder", &error))?;
        let log = folder.path().join("log");
        let words = std::fs::File::create(&log).map_err(|error| failed("its log", &error))?;
        let program = program();
        let mut command = Command::new(&program);
        for (name, _) in std::env::vars_os() {
            // What is meant for us isn't for it.
            if name.to_string_lossy().starts_with("EVENTFLOW_") {
                command.env_remove(name);
            }
        }
        let data = folder.path().join("data");
        command
            .arg("--data")
            .arg(&data)
            .args(["--hub-internal-port=0", "--admin-port=0", "--log-level=warn"])
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(words)
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| failed(&program.display().to_string(), &error))?;
        let stdout = child.stdout.take().ok_or_else(|| failed("its output", &"none"))?;
        let mut stdout = BufReader::new(stdout);
        if !matches!(timeout(START, is_ready(&mut stdout)).await, Ok(true)) {
            let words = std::fs::read_to_string(&log).unwrap_or_default();
            let last = words.lines().last().unwrap_or("it says nothing");
            return Err(failed("it isn't ready", &last));
        }
        let config = SpokeConfig::from_bundle(Bundle::read(data.join("operator.toml"))?);
        let meter = child.id().map(Meter::of);
        Ok(Self { config, meter, embedded: Some(Embedded { child, _stdout: stdout, _folder: folder }) })
    }

    /// Connects one spoke.
    pub(super) async fn spoke(&self) -> Result<Spoke, Failure> {
        Ok(Spoke::connect(self.config.clone()).await?)
    }

    /// Connects several.
    pub(super) async fn spokes(&self, count: usize) -> Result<Vec<Spoke>, Failure> {
        let at_once = Arc::new(Semaphore::new(AT_ONCE));
        let mut connecting = JoinSet::new();
        for _ in 0..count {
            let (config, at_once) = (self.config.clone(), at_once.clone());
            connecting.spawn(async move {
                let _turn = at_once.acquire().await;
                Spoke::connect(config).await
            });
        }
        let mut spokes = Vec::with_capacity(count);
        for connected in connecting.join_all().await {
            spokes.push(connected?);
        }
        Ok(spokes)
    }

    /// How to connect.
    pub(super) fn config(&self) -> SpokeConfig {
        self.config.clone()
    }

    /// Ends the hub, if it was started here.
    pub(super) async fn end(self) {
        if let Some(mut embedded) = self.embedded {
            // What it has is thrown away: there is nothing to drain. It may have ended by itself.
            let _ = embedded.child.kill().await;
        }
    }
}

/// Reads the banner. Its last fact is where admin HTTP is; a hub that fails closes its output.
async fn is_ready(stdout: &mut BufReader<ChildStdout>) -> bool {
    let mut line = String::new();
    while !line.starts_with("  admin ") {
        line.clear();
        if !matches!(stdout.read_line(&mut line).await, Ok(1..)) {
            return false;
        }
    }
    true
}

/// Beside this program, else where the shell would find it.
fn program() -> PathBuf {
    let beside = std::env::current_exe().ok().and_then(|own| Some(own.parent()?.join(HUB)));
    beside.filter(|path| Path::exists(path)).unwrap_or_else(|| HUB.into())
}

/// Ends several spokes at once.
pub(super) async fn close(spokes: Vec<Spoke>) {
    let mut closing = JoinSet::new();
    for spoke in spokes {
        closing.spawn(async move { spoke.close().await });
    }
    closing.join_all().await;
}
