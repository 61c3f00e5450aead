//! A hub, a client, and a folder with a shell in which `eventflow` is that hub's.

use std::{path::Path, process::Stdio, time::Duration};

use eventflow::{
    pki::Bundle,
    spoke::{GroupChange, Publish, Spoke},
};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

use super::table;
use crate::support::{PATIENCE, TestHub, npm::Npm};

pub struct Place {
    pub spoke: Spoke,
    hub: TestHub,
    folder: TempDir,
}

/// What a command said.
#[derive(Debug)]
pub struct Said {
    pub exit: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Place {
    pub async fn new() -> Self {
        let hub = TestHub::start().await;
        let spoke = hub.spoke().await;
        // So that the end of an event that fails needn't be waited for.
        spoke.default_group().set(GroupChange::new().max_attempts(1)).await.unwrap();
        Self { spoke, hub, folder: tempfile::tempdir().unwrap() }
    }

    /// Ends the client and the hub, which must be able to drain.
    pub async fn leave(self) {
        self.spoke.close().await;
        self.hub.stop().await;
    }

    /// Stores an event of the process `order-1`.
    pub async fn event(&self, id: &str, name: &str, data: Value) {
        self.event_of("orders", "order-1", id, name, data).await;
    }

    pub async fn event_of(&self, domain: &str, pid: &str, id: &str, name: &str, data: Value) {
        let publish = Publish::new(domain.to_owned(), name.to_owned(), pid.to_owned()).id(id.to_owned());
        self.spoke.publish(publish.data(&data).unwrap()).await.unwrap();
    }

    /// An event that another program has committed into the hub's database.
    pub async fn committed(&self, id: &str) {
        Npm::of(&self.hub).await.publish(id, "orders", "created", "order-1").await;
    }

    /// The credentials of the commands.
    pub fn bundle(&self) -> Bundle {
        Bundle::read(self.hub.data().join("operator.toml")).unwrap()
    }

    /// Writes a file into the folder.
    pub fn file(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// Writes a script into the folder that can be run.
    pub fn script(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        self.file(name, &format!("#!/bin/sh\n{text}\n"));
        let path = self.folder.path().join(name);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }

    /// Runs the command of a row in the table: `values` take the place of its words in capitals, `more` follows.
    pub async fn row(&self, ability: &str, values: &[(&str, &str)], more: &str) -> Said {
        let shown = table::command(ability);
        let word = |word: &str| {
            let value = values.iter().find(|(name, _)| *name == word);
            value.map_or(word, |(_, value)| *value).to_owned()
        };
        let mut words: Vec<_> = shown.split(' ').map(word).collect();
        if !more.is_empty() {
            // In front of a redirection.
            let end = words.iter().position(|word| word == "<").unwrap_or(words.len());
            words.insert(end, more.to_owned());
        }
        self.run(&words.join(" ")).await
    }

    /// Runs a line in a shell.
    pub async fn run(&self, line: &str) -> Said {
        let programs = Path::new(env!("CARGO_BIN_EXE_eventflow")).parent().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(line).current_dir(self.folder.path()).stdin(Stdio::null()).kill_on_drop(true);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("EVENTFLOW_") {
                shell.env_remove(name);
            }
        }
        shell.env("PATH", format!("{}:{path}", programs.display())).env("EVENTFLOW_DATA", self.hub.data());
        let output =
            tokio::time::timeout(2 * PATIENCE, shell.output()).await.expect("the command ends").unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Said {
            exit: output.status.code().unwrap_or(-1),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// Publishes one event of each name again and again, until the work is done: it may have begun to listen at any
    /// moment.
    pub async fn while_publishing<T>(&self, names: &[&str], work: impl Future<Output = T>) -> T {
        let publishing = async {
            loop {
                for name in names {
                    let event = Publish::new("orders", (*name).to_owned(), "order-1");
                    self.spoke.publish(event).await.unwrap();
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::select! {
            done = work => done,
            () = publishing => unreachable!("it goes on for ever"),
        }
    }
}

impl Said {
    /// It must have ended well.
    pub fn well(self) -> Self {
        self.with(0)
    }

    /// It must have ended with this exit code.
    pub fn with(self, exit: i32) -> Self {
        assert_eq!(self.exit, exit, "{self:?}");
        self
    }

    /// Its output as one JSON value.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// A member of each line of its output.
    pub fn each(&self, member: &str) -> Vec<String> {
        let lines = self.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.map(|line| line[member].as_str().unwrap_or_default().to_owned()).collect()
    }
}
