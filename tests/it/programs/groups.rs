//! What newcomers meet with groups: whose a state is, where a group starts, where the dead events are.

use super::{trouble::ends, *};

fn hub_with_dead_of_billing() -> Started {
    let hub = Started::new();
    run(hub.client(&["group", "set", "billing", "--max-attempts", "1"]), 0);
    let consume = |exec: &str, exit| {
        let arguments = ["consume", "orders", "--group", "billing", "--exec", exec, "--count", "1"];
        run(hub.client(&[&arguments[..], &["--from", "all", "--timeout", "30s"]].concat()), exit)
    };
    run(hub.client(&["publish", "orders", "created", "--id", "a"]), 0);
    consume("echo looking >&2; echo no such customer >&2; exit 1", 1);
    hub
}

#[test]
fn where_events_are_dead_is_told_to_whom_names_no_group() {
    let hub = hub_with_dead_of_billing();
    let code = "E_EVENTFLOW_DB_EVENT_NOT_FOUND";
    for line in ["dead list", "dead redrive --all", "dead delete --all"] {
        let (_, stderr) = ends(&hub, line, 3, code);
        assert!(stderr.contains("there are dead events in --group billing"), "{line}: {stderr}");
    }
    for line in ["dead show a", "dead delete a"] {
        let (_, stderr) = ends(&hub, line, 3, "E_EVENTFLOW_NOT_DEAD");
        assert!(stderr.contains("it is dead in --group billing"), "{line}: {stderr}");
    }
    let (_, stderr) = ends(&hub, "dead list --domain parcels --group billing", 3, code);
    assert!(!stderr.contains("--group"), "{stderr}");
    // The default group has nothing of it.
    let (stdout, _) = run(hub.client(&["show", "a"]), 0);
    assert!(stdout.contains(r#""state":"orphan""#) && stdout.contains(r#""group":"billing","state":"dead""#));
}

#[test]
fn a_group_that_exists_goes_on_where_it_is() {
    let hub = hub_with_dead_of_billing();
    let consume = |more: &str| ends(&hub, &format!("consume {more} --timeout 2s"), 0, "").1;
    let no_effect = "--from has no effect";
    assert!(consume("orders --group billing --from all").contains(no_effect));
    assert!(!consume("orders --group billing --from all --quiet").contains(no_effect));
    assert!(!consume("orders --group billing").contains(no_effect));
    assert!(!consume("parcels --group billing --from all").contains(no_effect), "a binding that is new");
}

#[test]
fn what_a_group_cant_have_is_wrong_usage() {
    let hub = Started::new();
    for name in ["default", "(default)", "*"] {
        ends(&hub, &format!("consume orders --group {name}"), 2, "'--group <GROUP>'");
        ends(&hub, &format!("group set {name} --delay 1s"), 2, "'<GROUP>'");
    }
    ends(&hub, "group set billing --delay 40d", 2, "at most a day");
    ends(&hub, "group set billing --delay 2h --max-delay 1h", 2, "E_EVENTFLOW_INVALID_RECORD");
    run(hub.client(&["group", "set", "billing", "--delay", "1s"]), 0);
    ends(&hub, "group unbind billing orders created --yes", 3, "E_EVENTFLOW_BINDING_NOT_FOUND");
}

#[test]
fn a_time_amiss_is_no_id() {
    let nowhere = Path::new("/nowhere");
    for line in [
        "subscribe orders --from 2030-02-30",
        "subscribe orders --from pos-x",
        "consume orders --group billing --from 12:00",
        "group seek billing --to 2030-01-31T12:00",
    ] {
        let arguments: Vec<_> = line.split(' ').collect();
        let (_, stderr) = run(client(nowhere, &arguments), 2);
        assert!(stderr.contains("must be a ") && stderr.contains("id:ID"), "{line}: {stderr}");
    }
}

#[test]
fn a_recurring_schedule_that_differs_names_the_option() {
    let hub = Started::new();
    let create =
        |rule: &str| hub.client(&["recur", "create", "nightly", rule, "reports", "due"]).output().unwrap();
    assert!(create("@daily").status.success());
    let refused = create("@weekly");
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("--replace replaces it"), "{}", text(&refused.stderr));
}
