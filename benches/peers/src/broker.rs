//! What each broker can do here.

use std::{
    future::Future,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::process::{Child, Command};

use crate::{Failure, certificates::Certificates, work::Work};

/// What an answer promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// On disk before it is answered: it survives the loss of power.
    Fsync,
    /// In the system's memory: it survives a crash of the broker. Each broker's default.
    Crash,
}

/// How a server is to be started.
pub struct Setting {
    pub class: Class,
    /// Mutual TLS. Eventflow has no other way.
    pub tls: bool,
    /// Its data; removed by whoever made it.
    pub folder: PathBuf,
    pub certificates: Arc<Certificates>,
}

/// A server that runs, and how to reach it.
#[async_trait::async_trait]
pub trait Broker: Send + Sync {
    /// Publishes each of this publisher's events, at most a window of them unconfirmed, and returns when all are
    /// confirmed.
    async fn publish(&self, publisher: usize, work: Arc<Work>) -> Result<(), Failure>;

    /// Consumes and acks each event, until it is dropped; tells when it is ready.
    async fn consume(&self, work: Arc<Work>, ready: tokio::sync::oneshot::Sender<()>) -> Result<(), Failure>;

    /// Ends the server, and whatever it has started.
    async fn end(&mut self);
}

/// A server's process, in a group of its own with all that it starts. Killed when dropped.
pub struct Server(Child);

impl Server {
    /// Starts it; its words go into a file of its folder.
    pub fn start(mut command: Command, folder: &Path) -> Result<Self, Failure> {
        let words = std::fs::File::create(folder.join("log"))?;
        command
            .stdin(Stdio::null())
            .stdout(words.try_clone()?)
            .stderr(words)
            .process_group(0)
            .kill_on_drop(true);
        Ok(Self(command.spawn().map_err(|error| format!("{:?}: {error}", command.as_std().get_program()))?))
    }

    /// Waits until it answers.
    pub async fn answers<F, T>(&mut self, folder: &Path, mut ask: impl FnMut() -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let began = Instant::now();
        loop {
            let error = match ask().await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let ended = self.0.try_wait()?;
            if ended.is_some() || began.elapsed() > Duration::from_secs(60) {
                let words = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
                let from = words.char_indices().rev().nth(1_500).map_or(0, |(at, _)| at);
                return Err(format!("it doesn't answer: {error}\n{}", &words[from..]).into());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub async fn end(&mut self) {
        self.kill_group();
        // It may have ended by itself.
        let _ = self.0.kill().await;
    }

    fn kill_group(&self) {
        let group = self.0.id().and_then(|pid| rustix::process::Pid::from_raw(i32::try_from(pid).ok()?));
        if let Some(group) = group {
            // Whoever has ended needs no signal.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill_group();
    }
}

/// A port of the loopback address that is free now.
pub fn free_port() -> Result<u16, Failure> {
    Ok(std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// Where a program is, by the shell's rules.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}
