//! A database server of a test's own, which it may stop and kill.

use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::engine;

/// A server that runs; ended, with all its data, when dropped.
pub struct Server {
    folder: TempDir,
    name: &'static str,
    url: String,
}

impl Server {
    /// Starts one of the engine that the tests run on; none, and it is said: on SQLite.
    pub fn start() -> Option<Self> {
        let Some(name) = engine::server() else {
            super::engine::skip("SQLite has no server that could be away");
            return None;
        };
        let mut server = Self { folder: tempfile::tempdir().unwrap(), name, url: String::new() };
        let told = server.run("start");
        let url = told.lines().find_map(|line| line.split_once("_URL=")).expect("a URL").1;
        server.url = engine::create(url.to_owned());
        Some(server)
    }

    /// The URL of an empty database there.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Ends it as whoever maintains it does.
    pub fn stop(&self) {
        self.run("stop");
    }

    /// `kill -9`.
    pub fn kill(&self) {
        self.run("kill");
    }

    /// Starts it again, on the same port.
    pub fn start_again(&self) {
        self.run("start");
    }

    fn run(&self, what: &str) -> String {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers");
        let mut command = Command::new(script);
        let output =
            command.arg(what).arg(self.folder.path()).arg(self.name).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A test that fails may have ended it already.
        let _ = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers"))
            .arg("kill")
            .arg(self.folder.path())
            .arg(self.name)
            .stdin(Stdio::null())
            .output();
    }
}
