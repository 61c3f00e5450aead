//! The two programs as people and scripts meet them: what they print, where, and how they exit.

mod bench;
mod certificates;
mod groups;
mod interrupted;
mod manual;
mod operator;
mod trouble;
mod usage;

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, Command, Output, Stdio},
    sync::mpsc,
    time::Duration,
};

const PATIENCE: Duration = Duration::from_secs(30);

/// A program without what the environment would tell it.
fn program(path: &str) -> Command {
    let mut command = Command::new(path);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("EVENTFLOW_") {
            command.env_remove(name);
        }
    }
    command.env_remove("RUST_BACKTRACE").stdin(Stdio::null());
    command
}

fn hub(arguments: &[&str]) -> Command {
    let mut command = program(env!("CARGO_BIN_EXE_eventflow-hub"));
    command.args(arguments);
    command
}

fn client(data: &Path, arguments: &[&str]) -> Command {
    let mut command = program(env!("CARGO_BIN_EXE_eventflow"));
    command.args(arguments).env("EVENTFLOW_DATA", data);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs it to its end, and checks how it ended: without a panic's words for people.
fn run(mut command: Command, exit: i32) -> (String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (stdout, stderr) = (text(&stdout), text(&stderr));
    assert_eq!(status.code(), Some(exit), "{command:?}\n{stdout}\n{stderr}");
    assert!(!stderr.contains("panicked") && !stderr.contains("stack backtrace"), "{stderr}");
    (stdout, stderr)
}

#[test]
fn check_prints_the_configuration_and_starts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut command = hub(&["--check", "--limits-ping=5s"]);
    command.env("EVENTFLOW_DATA", &data).env("EVENTFLOW_HUB_NMAE", "a");
    let (stdout, stderr) = run(command, 0);
    assert!(stdout.starts_with("configuration is valid\n"), "{stdout}");
    assert!(stdout.lines().any(|line| line.starts_with("limits.ping ") && line.ends_with(" --limits-ping")));
    assert!(stderr.contains("did you mean EVENTFLOW_HUB_NAME?"), "{stderr}");
    assert!(!data.exists());
}

#[test]
fn a_wrong_configuration_is_told_whole_and_exits_with_2() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hub.toml");
    std::fs::write(&file, "[limits]\npnig = \"5s\"\n").unwrap();
    let mut command = hub(&["--config", file.to_str().unwrap(), "--admin-port", "high"]);
    command.env("EVENTFLOW_STORE_URL", "oracle://db/events");
    let (stdout, stderr) = run(command, 2);
    assert_eq!(stdout, "");
    for part in [
        "hub.toml:2: limits.pnig is not a setting; did you mean limits.ping?",
        "--admin-port",
        "must begin with",
    ] {
        assert!(stderr.contains(part), "{part} in {stderr}");
    }
    run(hub(&["--config", "/nowhere.toml"]), 2);
    run(hub(&["publish", "a", "b"]), 2);
}

#[test]
fn help_and_version_go_to_standard_output() {
    assert!(run(hub(&["--help"]), 0).0.contains("Exit codes"));
    assert!(run(hub(&["--version"]), 0).0.starts_with("eventflow-hub 0."));
    let nowhere = Path::new("/nowhere");
    assert!(run(client(nowhere, &["--help"]), 0).0.contains("Exit codes"));
    assert!(run(client(nowhere, &["publish", "--help"]), 0).0.contains("Example: eventflow publish"));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_fault() {
    let mut child = hub(&["--help"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
}

#[test]
fn the_client_says_what_it_lacks() {
    let nowhere = Path::new("/nowhere");
    run(client(nowhere, &["publish", "orders"]), 2);
    run(client(nowhere, &["publish", "-", "--pid", "a"]), 2);
    let (_, stderr) = run(client(nowhere, &["publish", "orders", "created", "{}"]), 2);
    assert!(stderr.contains("unexpected argument '{}' found: give the data by --data '…'"), "{stderr}");
    let (_, stderr) = run(client(nowhere, &["show", "a"]), 77);
    assert!(stderr.contains("/nowhere/operator.toml") && stderr.contains("(E_EVENTFLOW_BUNDLE)"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

#[test]
fn a_hub_that_cant_start_says_why() {
    let (_, stderr) = run(hub(&["--data", "/dev/null/data"]), 73);
    assert!(stderr.contains("(E_EVENTFLOW_DATA_FOLDER)"), "{stderr}");

    let folder = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let data = folder.path().to_str().unwrap();
    let (_, stderr) = run(hub(&["--data", data, "--hub-internal-port", &port, "--admin-port", "0"]), 69);
    assert!(stderr.contains("(E_EVENTFLOW_ADDRESS)"), "{stderr}");
}

/// A hub in a process of its own, on free ports. Killed when dropped.
struct Started {
    child: Option<Child>,
    banner: String,
    data: Option<tempfile::TempDir>,
}

impl Started {
    fn new() -> Self {
        Self::on(tempfile::tempdir().unwrap(), 0)
    }

    fn on(data: tempfile::TempDir, port: u16) -> Self {
        let port = format!("--hub-internal-port={port}");
        let mut child = hub(&[&port, "--admin-port=0", "--log-level=error"])
            .env("EVENTFLOW_DATA", data.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut banner = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        // The last fact of the banner is where admin HTTP is; a hub that fails closes its output.
        while !banner.contains("\n  admin ") && lines.read_line(&mut banner).unwrap() > 0 {}
        assert!(banner.contains("is ready"), "{banner}");
        Self { child: Some(child), banner, data: Some(data) }
    }

    fn client(&self, arguments: &[&str]) -> Command {
        client(self.data(), arguments)
    }

    fn data(&self) -> &Path {
        self.data.as_ref().unwrap().path()
    }

    /// Kills it, and starts another one on its data and its port.
    fn restart(mut self) -> Self {
        let bundle = std::fs::read_to_string(self.data().join("operator.toml")).unwrap();
        let port = bundle.lines().find_map(|line| line.strip_prefix("port = ")).unwrap().parse().unwrap();
        let data = self.data.take().unwrap();
        drop(self);
        Self::on(data, port)
    }

    /// Ends it by a signal and gives its exit code.
    fn stop(mut self, signal: &str) -> Option<i32> {
        let mut child = self.child.take().unwrap();
        signal_to(&child, signal);
        let (over, ended) = mpsc::channel();
        std::thread::spawn(move || over.send(child.wait().unwrap().code()));
        ended.recv_timeout(PATIENCE).expect("the hub ends in time")
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

fn signal_to(child: &Child, signal: &str) {
    let kill = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status();
    assert!(kill.unwrap().success());
}

#[test]
fn the_tour_publish_subscribe_consume_log_show() {
    let hub = Started::new();
    assert!(
        hub.banner.contains("CA (SHA-256)") && hub.banner.contains("http://127.0.0.1:"),
        "{}",
        hub.banner
    );

    let subscriber =
        hub.client(&["subscribe", "orders", "--count", "1"]).stdout(Stdio::piped()).spawn().unwrap();
    let published =
        run(hub.client(&["publish", "orders", "created", "--pid", "o-1", "--data", "{\"total\": 12}"]), 0).0;
    let answer: serde_json::Value = serde_json::from_str(&published).unwrap();
    let id = answer["id"].as_str().unwrap();
    assert_eq!(answer["duplicate"], false);

    // It comes to a subscriber that was late by a moment too.
    let seen = subscriber.wait_with_output().unwrap();
    assert_eq!(seen.status.code(), Some(0));
    let seen: serde_json::Value = serde_json::from_slice(&seen.stdout).unwrap();
    assert_eq!((seen["id"].as_str(), &seen["data"]), (Some(id), &serde_json::json!({ "total": 12 })));

    let command = "cat; test \"$EVENTFLOW_EVENT_PID\" = o-1";
    let (stdout, stderr) = run(hub.client(&["consume", "orders", "--exec", command, "--count", "1"]), 0);
    assert!(stdout.contains(id) && stderr.contains("done 1, failed 0"), "{stdout}{stderr}");
    assert!(run(hub.client(&["log", "orders", "o-1"]), 0).0.contains(id));
    let shown: serde_json::Value = serde_json::from_str(&run(hub.client(&["show", id]), 0).0).unwrap();
    assert_eq!(shown["trace"]["state"], "success");

    let (_, stderr) = run(hub.client(&["show", "unknown"]), 3);
    assert!(stderr.contains("(E_EVENTFLOW_DB_EVENT_NOT_FOUND)"), "{stderr}");
    run(hub.client(&["log", "orders", "o-2"]), 3);
    let (_, stderr) = run(hub.client(&["publish", "orders", "created", "--id", id]), 1);
    assert!(stderr.contains("(E_EVENTFLOW_EVENT_CONFLICT)"), "{stderr}");
    let (_, stderr) = run(hub.client(&["subscribe", "none", "--count", "1", "--timeout", "3s"]), 4);
    assert!(stderr.contains("(E_EVENTFLOW_TIMEOUT)"), "{stderr}");

    let (_, stderr) = run(super_hub(&hub), 69);
    assert!(stderr.contains("(E_EVENTFLOW_DB_IN_USE)"), "{stderr}");
    assert_eq!(hub.stop("TERM"), Some(0));
}

/// A second hub on the same data folder.
fn super_hub(first: &Started) -> Command {
    let data = first.data().to_str().unwrap();
    hub(&["--hub-internal-port", "0", "--admin-port", "0", "--data", data])
}

#[test]
fn of_256_lines_the_3_bad_ones_are_refused_by_name_and_number() {
    let hub = Started::new();
    let mut publisher = hub
        .client(&["publish", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = publisher.stdin.take().unwrap();
    for number in 1..=256 {
        let line = match number {
            1 => "\u{feff}{\"domain\":\"orders\",\"name\":\"created\"}".to_owned(),
            7 => "not json".to_owned(),
            77 => r#"{"domain":"orders ","name":"created"}"#.to_owned(),
            177 => r#"{"domain":"orders","name":"created","rid":"unknown"}"#.to_owned(),
            _ => format!(r#"{{"domain":"orders","name":"created","data":{number}}}"#),
        };
        writeln!(lines, "{line}").unwrap();
    }
    drop(lines);
    let output = publisher.wait_with_output().unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert_eq!(text(&output.stdout).trim(), r#"{"published":253,"duplicate":0,"refused":3}"#, "{stderr}");
    for (number, code) in [
        (7, "E_EVENTFLOW_INVALID_RECORD"),
        (77, "E_EVENTFLOW_INVALID_DOMAIN"),
        (177, "E_EVENTFLOW_RID_NOT_FOUND"),
    ] {
        let told = |line: &str| line.contains(&format!("line {number}: ")) && line.contains(code);
        assert!(stderr.lines().any(told), "{number} {code} in {stderr}");
    }

    let (stdout, _) = run(hub.client(&["consume", "orders", "--count", "253"]), 0);
    let mut ids: Vec<String> = stdout
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].to_string())
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 253);
    assert_eq!(hub.stop("INT"), Some(0));
}

#[test]
fn a_failed_command_is_a_nack_with_its_last_words() {
    let hub = Started::new();
    run(hub.client(&["publish", "orders", "created", "--id", "bad"]), 0);
    run(hub.client(&["publish", "bills", "created", "--id", "kept"]), 0);
    let consume =
        |domain: &str, command: &str| hub.client(&["consume", domain, "--count", "1", "--exec", command]);
    let (_, stderr) = run(consume("orders", "echo 'looked' >&2; printf 'no stock' >&2; exit 9"), 1);
    // Its own words as they came, then ours on lines of their own, with its last.
    let expected =
        "looked\nno stock\neventflow: bad failed: exit code 9: no stock\neventflow: done 0, failed 1\n";
    assert_eq!(stderr, expected);
    let (shown, _) = run(hub.client(&["show", "bad"]), 0);
    assert!(shown.contains("\"nack\"") && shown.contains("exit code 9: looked\\nno stock"), "{shown}");

    // A command that can't be run says nothing about the event: it stays.
    let (_, stderr) = run(consume("bills", "no-such-command"), 1);
    assert!(stderr.contains("the event was handed back"), "{stderr}");
    let (stdout, _) = run(consume("bills", "cat"), 0);
    assert!(stdout.contains("\"kept\""), "{stdout}");
}

#[test]
fn without_a_hub_the_client_exits_with_69() {
    let hub = Started::new();
    let bundle = std::fs::read(hub.data().join("operator.toml")).unwrap();
    assert_eq!(hub.stop("TERM"), Some(0));
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("operator.toml");
    std::fs::write(&copy, bundle).unwrap();
    std::fs::set_permissions(&copy, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    for arguments in
        [&["show", "a", "--connect-timeout", "200ms"][..], &["publish", "a", "b", "--timeout", "200ms"]]
    {
        let (_, stderr) = run(client(folder.path(), arguments), 69);
        assert!(stderr.contains("within 0.2 s") && stderr.contains("(E_EVENTFLOW_NO_HUB)"), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}
