//! Consumers that are interrupted: by a signal, by a second one, by the end of their hub.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    process::Stdio,
    time::Instant,
};

use super::{PATIENCE, Started, run, signal_to, text};

#[test]
fn a_signal_lets_the_consumer_finish_the_event_in_hand() {
    let hub = Started::new();
    run(hub.client(&["publish", "orders", "created", "--id", "first"]), 0);
    run(hub.client(&["publish", "orders", "created", "--id", "second"]), 0);
    let gate = hub.data().join("gate");
    let command = format!("echo begun; until test -e {}; do sleep 0.05; done", gate.display());
    let mut consumer = hub
        .client(&["consume", "orders", "--exec", &command])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut begun = [0; 6];
    consumer.stdout.as_mut().unwrap().read_exact(&mut begun).unwrap();
    signal_to(&consumer, "TERM");
    std::fs::write(&gate, "").unwrap();
    let output = consumer.wait_with_output().unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("done 1, failed 0"), "{stderr}");
    assert!(run(hub.client(&["show", "first"]), 0).0.contains("\"success\""));
    assert!(!run(hub.client(&["show", "second"]), 0).0.contains("\"success\""));
}

#[test]
fn a_second_signal_kills_the_command_with_all_it_started_and_the_attempt_counts() {
    let hub = Started::new();
    run(hub.client(&["publish", "orders", "created", "--id", "first"]), 0);
    let mut consumer = hub
        .client(&["consume", "orders", "--exec", "sleep 300 & echo $!; wait"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut sleeper = String::new();
    BufReader::new(consumer.stdout.take().unwrap()).read_line(&mut sleeper).unwrap();
    signal_to(&consumer, "INT");
    let mut stderr = BufReader::new(consumer.stderr.take().unwrap());
    let mut said = String::new();
    stderr.read_line(&mut said).unwrap();
    assert_eq!(said, "eventflow: waiting for 1 running command; Ctrl-C again cuts it short\n");
    signal_to(&consumer, "INT");
    said.clear();
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(said, "eventflow: cut short: 1 command killed, its event was handed back\n");
    assert_eq!(consumer.wait().unwrap().code(), Some(130));

    until("what the command started is gone", || {
        let state = std::fs::read_to_string(format!("/proc/{}/stat", sleeper.trim()));
        state.map_or(true, |state| state.contains(") Z "))
    });
    until("the attempt is recorded and the event is still to be done", || {
        let shown = run(hub.client(&["show", "first"]), 0).0;
        let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
        shown["trace"]["attempts"][0]["number"] == 1 && shown["trace"]["ended"].is_null()
    });
    let (stdout, _) = run(hub.client(&["consume", "orders", "--count", "1"]), 0);
    assert!(stdout.contains("\"first\""), "{stdout}");
}

#[test]
fn a_consumer_says_when_the_hub_goes_and_comes_back() {
    let hub = Started::new();
    run(hub.client(&["publish", "orders", "created", "--id", "before"]), 0);
    let mut consumer = hub
        .client(&["consume", "orders", "--count", "2"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // What it prints shows that its link stands.
    let mut line = String::new();
    BufReader::new(consumer.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    until("the first one is done", || run(hub.client(&["show", "before"]), 0).0.contains("\"success\""));
    let hub = hub.restart();
    run(hub.client(&["publish", "orders", "created", "--id", "after"]), 0);
    let output = consumer.wait_with_output().unwrap();
    let stderr = text(&output.stderr);
    let lines: Vec<_> = stderr.lines().collect();
    let [away, "eventflow: hub is back", "eventflow: done 2, failed 0"] = lines[..] else {
        panic!("{stderr}")
    };
    // Why depends on how the killed hub's system closed its sockets.
    assert!(away.starts_with("eventflow: hub away: the ") && away.ends_with("; trying again"), "{away}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_stream_goes_on_where_the_hub_left_it() {
    let hub = Started::new();
    let mut publisher = hub
        .client(&["publish", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = publisher.stdin.take().unwrap();
    let mut line =
        |id: &str| writeln!(input, "{{\"domain\":\"orders\",\"name\":\"created\",\"id\":\"{id}\"}}");
    line("before").unwrap();
    until("the first one is stored", || hub.client(&["show", "before"]).output().unwrap().status.success());
    let hub = hub.restart();
    line("after").unwrap();
    drop(input);
    let output = publisher.wait_with_output().unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    // The first one may have lost its answer: then it was sent again.
    let counts: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let stored = counts["published"].as_u64().unwrap() + counts["duplicate"].as_u64().unwrap();
    assert_eq!((stored, &counts["refused"]), (2, &0.into()), "{counts}");
    assert!(stderr.starts_with("eventflow: hub away: "), "{stderr}");
    run(hub.client(&["show", "after"]), 0);
}

/// Waits for it, with a deadline.
fn until(what: &str, mut reached: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !reached() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::yield_now();
    }
}
