//! Bad input and what doesn't come: each with its code and its exit code.

use super::*;

/// The command ends with this exit code and names this error.
pub(super) fn ends(hub: &Started, line: &str, exit: i32, code: &str) -> (String, String) {
    let arguments: Vec<_> = line.split(' ').collect();
    let (stdout, stderr) = run(hub.client(&arguments), exit);
    assert!(stderr.contains(code), "{line}: {code} in {stderr}");
    (stdout, stderr)
}

#[test]
fn a_schedule_needs_a_date_to_come() {
    let hub = Started::new();
    let code = "E_EVENTFLOW_SPOKE_SCHEDULE_INVALID_DATE";
    let (_, stderr) = ends(&hub, "schedule orders reminded", 2, code);
    assert!(stderr.contains("Usage: eventflow schedule [OPTIONS] <DOMAIN> <NAME>"), "{stderr}");
    ends(&hub, "schedule orders reminded --at 2001-01-31T12:00:00Z", 2, code);
    ends(&hub, "schedule orders reminded --at 1234567890", 2, code);
    ends(&hub, "schedule orders reminded --in 3000000d", 2, code);
    ends(&hub, "schedule orders reminded --in -5s", 2, "must lie ahead");
    ends(&hub, "schedule orders reminded --at 2001-01-31", 2, code);
    ends(&hub, "schedule orders reminded --at 1h", 2, "`--in 1h`");
    ends(&hub, "schedule orders reminded --at tomorrow", 2, "2030-01-31T12:00:00Z");
    ends(&hub, "schedule orders * --in 1h", 2, "E_EVENTFLOW_INVALID_NAME");
}

#[test]
fn what_ran_cant_be_cancelled() {
    let hub = Started::new();
    run(hub.client(&["schedule", "orders", "reminded", "--id", "a", "--in", "0s"]), 0);
    run(hub.client(&["consume", "orders", "--count", "1", "--timeout", "30s"]), 0);
    ends(&hub, "cancel a", 1, "E_EVENTFLOW_SCHEDULE_EXECUTED");
    ends(&hub, "cancel b", 3, "E_EVENTFLOW_SCHEDULE_NOT_FOUND");
    run(hub.client(&["schedule", "orders", "reminded", "--id", "c", "--in", "1h"]), 0);
    run(hub.client(&["cancel", "c"]), 0);
    ends(&hub, "cancel c", 3, "E_EVENTFLOW_SCHEDULE_NOT_FOUND");
}

#[test]
fn what_doesnt_come_in_time_has_an_exit_code_of_its_own() {
    let hub = Started::new();
    let code = "E_EVENTFLOW_WAIT_TIMEOUT";
    run(hub.client(&["publish", "orders", "created", "--id", "a"]), 0);
    ends(&hub, "wait orders order-1 --timeout 3s", 4, code);
    // A question that isn't there may be on its way.
    for what in ["orders order-1", "--answer-to a", "--answer-to nobody", "--outcome a"] {
        ends(&hub, &format!("wait {what} --now"), 4, code);
    }
    // What is published is told all the same.
    let (stdout, stderr) = ends(&hub, "publish orders paid --id b --wait --timeout 4s", 4, code);
    assert!(
        stdout.contains("\"id\":\"b\"") && stderr.contains("event b is published, but"),
        "{stdout}{stderr}"
    );
    let (_, stderr) = ends(&hub, "request orders asked --id c --timeout 4s", 4, code);
    assert!(stderr.contains("event c is published, but"), "{stderr}");
    run(hub.client(&["show", "c"]), 0);
    ends(&hub, "subscribe none --count 1 --timeout 3s", 4, "E_EVENTFLOW_TIMEOUT");
}

#[test]
fn what_isnt_there_is_not_found() {
    let hub = Started::new();
    let code = "E_EVENTFLOW_DB_EVENT_NOT_FOUND";
    for line in [
        "show a",
        "log orders order-1",
        "log orders",
        "log --entity customer-4",
        "pids orders",
        "wait --outcome a",
        "wait orders order-1 --after a",
        "associate a --entity customer-4",
        "dissociate a --child parcels parcel-7",
        "delete a",
        "delete --log orders order-1",
    ] {
        ends(&hub, line, 3, code);
    }
    // The state of nothing is nothing, and told apart from an object that is empty.
    assert_eq!(ends(&hub, "state orders order-1", 3, code).0, "{}\n");
    run(hub.client(&["publish", "orders", "created", "--pid", "order-1"]), 0);
    assert_eq!(run(hub.client(&["state", "orders", "order-1"]), 0).0, "{}\n");
    assert_eq!(run(client(Path::new("/nowhere"), &["state", "-"]), 0).0, "{}\n");
}

#[test]
fn what_is_deleted_while_somebody_works_on_it_is_not_recalled() {
    let hub = Started::new();
    run(hub.client(&["publish", "orders", "created", "--id", "a"]), 0);
    let delete = format!("{} delete \"$EVENTFLOW_EVENT_ID\"", env!("CARGO_BIN_EXE_eventflow"));
    let consume = ["consume", "orders", "--exec", &delete, "--count", "1", "--timeout", "2s"];
    let (stdout, stderr) = run(hub.client(&consume), 4);
    assert!(stdout.contains("\"deleted\":true"), "{stdout}");
    assert!(
        stderr.contains("came too late 1") && stderr.contains("(E_EVENTFLOW_DB_EVENT_NOT_FOUND)"),
        "{stderr}"
    );
    ends(&hub, "show a", 3, "E_EVENTFLOW_DB_EVENT_NOT_FOUND");
}

#[test]
fn a_star_that_is_no_wildcard_is_doubted() {
    let hub = Started::new();
    for command in ["subscribe", "consume"] {
        let (_, stderr) = ends(&hub, &format!("{command} or* created --on paid=true --timeout 3s"), 0, "");
        assert!(stderr.contains("the * of \"or*\" stands for itself"), "{stderr}");
        assert!(stderr.contains("the command for \"paid\" never runs"), "{stderr}");
        let (_, stderr) = ends(&hub, &format!("{command} orders.* * --on paid=true --timeout 3s"), 0, "");
        assert!(!stderr.contains("stands for itself") && !stderr.contains("never runs"), "{stderr}");
    }
}

/// Runs a line on a terminal of its own, with this for its keyboard.
fn on_a_terminal(hub: &Started, line: &str, typed: &str, exit: i32) -> String {
    let mut script = program("script");
    let line = format!("{} {line}", env!("CARGO_BIN_EXE_eventflow"));
    script.args(["-qec", &line, "/dev/null"]).env("EVENTFLOW_DATA", hub.data()).env("TERM", "xterm");
    let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(typed.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(exit), "{line}: {said}");
    said
}

#[test]
fn on_a_terminal_a_stream_shows_its_progress() {
    if !crate::support::process::has("script", "a stream shows its progress") {
        return;
    }
    let hub = Started::new();
    let lines = hub.data().join("lines");
    std::fs::write(&lines, "{\"domain\":\"orders\",\"name\":\"created\"}\nno event\n").unwrap();
    let said = on_a_terminal(&hub, &format!("publish - <{}", lines.display()), "", 1);
    assert!(said.contains(" lines, ") && said.contains("/s"), "{said:?}");
    assert!(
        said.contains("line 2: ") && said.contains("published 1, there already 0, refused 1"),
        "{said:?}"
    );
    let said = on_a_terminal(&hub, &format!("publish - --quiet <{}", lines.display()), "", 1);
    assert!(!said.contains(" lines, "), "{said:?}");
}

#[test]
fn on_a_terminal_a_whole_log_goes_only_after_a_yes() {
    if !crate::support::process::has("script", "a whole log goes only after a yes") {
        return;
    }
    let hub = Started::new();
    run(hub.client(&["publish", "orders", "created", "--pid", "order-1"]), 0);
    let said = on_a_terminal(&hub, "delete --log orders order-1", "n\n", 1);
    assert!(said.contains("[y/N]") && said.contains("nothing was done"), "{said}");
    run(hub.client(&["log", "orders", "order-1"]), 0);
    let said = on_a_terminal(&hub, "delete --log orders order-1", "y\n", 0);
    assert!(said.contains("deleted 1 event of order-1 in orders"), "{said}");
    run(hub.client(&["publish", "orders", "created", "--pid", "order-1"]), 0);
    let said = on_a_terminal(&hub, "delete --log orders order-1 --yes", "", 0);
    assert!(!said.contains("[y/N]"), "{said}");
}
