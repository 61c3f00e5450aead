//! What is typed amiss: it is said in a sentence, with the exit code of wrong usage, and nothing is sent.

use super::*;

/// The client, with its arguments, ends with exit code 2 and says this.
fn misused(data: &Path, arguments: &[&str], said: &str) -> String {
    let (stdout, stderr) = run(client(data, arguments), 2);
    assert!(stdout.is_empty() && stderr.contains(said), "{arguments:?}: {said} in {stderr}");
    stderr
}

#[test]
fn a_dash_for_a_name_is_asked_about() {
    let nowhere = Path::new("/nowhere");
    for (arguments, usage) in [
        (&["publish", "orders", "-"][..], "Usage: eventflow publish"),
        (&["request", "orders", "-"], "Usage: eventflow request"),
        (&["schedule", "orders", "-", "--in", "1h"], "Usage: eventflow schedule"),
    ] {
        let stderr = misused(nowhere, arguments, "--data -");
        assert!(stderr.contains(usage), "{stderr}");
    }
}

#[test]
fn what_an_argument_holds_is_checked_as_usage() {
    let hub = Started::new();
    let publish = |more: &[&str], said: &str| {
        misused(hub.data(), &[&["publish", "orders", "created"][..], more].concat(), said)
    };
    publish(&["--data", "{bad"], "(E_EVENTFLOW_INVALID_DATA)");
    publish(&["--data", "@/nofile"], "/nofile");
    publish(&["--pid", ""], "(E_EVENTFLOW_INVALID_PID)");
    publish(&["--id", ""], "(E_EVENTFLOW_INVALID_ID)");
    publish(&["--data", "text"], r#"--data '"text"'"#);
    misused(hub.data(), &["log", ""], "E_EVENTFLOW_INVALID_DOMAIN");
    // The lines of standard input are no arguments.
    let mut batch = hub.client(&["publish", "-"]);
    batch.stdin(Stdio::from(std::fs::File::open("/dev/null").unwrap()));
    run(batch, 0);
}

#[test]
fn a_limit_is_a_whole_number_from_1() {
    let nowhere = Path::new("/nowhere");
    for wrong in ["0", "x", "-1"] {
        for command in [&["log", "orders"][..], &["pids", "orders"]] {
            let limit = format!("--limit={wrong}");
            misused(nowhere, &[command, &[&limit]].concat(), "must be a whole number from 1");
        }
    }
}

#[test]
fn times_are_taken_as_they_are_printed() {
    let hub = Started::new();
    run(hub.client(&["publish", "orders", "created"]), 0);
    let log =
        |from: &str, to: &str, exit| run(hub.client(&["log", "orders", "--from", from, "--to", to]), exit);
    log("2020-11-30", "2999-01-01 00:00:00.000 +01:00", 0);
    log("2999-01-01", "2999-01-02", 3);
    let (_, stderr) = log("2999-01-02", "2999-01-01", 2);
    assert!(stderr.contains("--from is later") && stderr.contains("Usage: eventflow log"), "{stderr}");
}
