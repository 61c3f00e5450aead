use super::*;

fn query(json: &str) -> Result<LogQuery, serde_json::Error> {
    serde_json::from_str(json)
}

#[test]
fn a_query_says_whose_events_it_wants() {
    let domain = || Domain::parse("orders").unwrap();
    let of = query(r#"{"domain":"orders","pid":"1","names":["a"],"from":5,"to":9}"#).unwrap();
    assert_eq!(of.of, LogOf::Process { domain: domain(), pid: Pid::parse("1").unwrap() });
    assert_eq!((of.names.len(), of.from, of.to), (1, Some(5), Some(9)));
    let of = query(r#"{"domain":"orders"}"#).unwrap();
    assert_eq!(of, LogOf::Domain { domain: domain() }.into());
    let of = query(r#"{"eid":"e"}"#).unwrap();
    assert_eq!(of.of, LogOf::Entity { eid: Eid::parse("e").unwrap(), domain: None });
    for wrong in [
        "{}",
        r#"{"pid":"1"}"#,
        r#"{"cpid":"1"}"#,
        r#"{"domain":"d","pid":"1","cpid":"1"}"#,
        r#"{"domain":"d","pid":"1","eid":"1"}"#,
        r#"{"domain":"d","pid":" 1"}"#,
        r#"{"domain":"d","other":1}"#,
    ] {
        assert!(query(wrong).is_err(), "{wrong}");
    }
    let many = format!(r#"{{"domain":"d","names":[{}"x"]}}"#, r#""x","#.repeat(MOST_NAMES));
    assert!(query(&many).unwrap_err().to_string().contains("at most 64"));
}

#[test]
fn a_wait_is_for_a_process_or_for_an_answer() {
    for right in [
        r#"{"domain":"d","pid":"p","timeout_ms":0}"#,
        r#"{"domain":"d","pid":"p","names":["a","b"],"after_id":"e","timeout_ms":10}"#,
        r#"{"domain":"d","pid":"p","after":-5,"timeout_ms":10}"#,
        r#"{"rid":"r","timeout_ms":86400000}"#,
    ] {
        let wait: Wait = serde_json::from_str(right).unwrap();
        assert_eq!(serde_json::to_string(&wait).unwrap(), right);
    }
    for wrong in [
        r#"{"timeout_ms":1}"#,
        r#"{"domain":"d","timeout_ms":1}"#,
        r#"{"domain":"d","pid":"p"}"#,
        r#"{"domain":"d","pid":"p","after":1,"after_id":"e","timeout_ms":1}"#,
        r#"{"rid":"r","domain":"d","pid":"p","timeout_ms":1}"#,
        r#"{"rid":"r","after":1,"timeout_ms":1}"#,
        r#"{"rid":"r","timeout_ms":86400001}"#,
    ] {
        assert!(serde_json::from_str::<Wait>(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn an_outcome_is_waited_for_as_long_as_an_event_at_most() {
    let options = |ms: u128| {
        serde_json::from_str::<OutcomeOptions>(&format!(r#"{{"group":"mail","timeout_ms":{ms}}}"#))
    };
    let day = LONGEST_WAIT.as_millis();
    assert_eq!(u128::from(options(day).unwrap().timeout_ms), day);
    for wrong in [day + 1, u64::MAX.into()] {
        let error = options(wrong).unwrap_err().to_string();
        assert!(error.contains("at most 86400000 may be waited for"), "{error}");
    }
    let without = r#"{"group":"mail"}"#;
    assert!(serde_json::from_str::<OutcomeOptions>(without).is_err(), "it must be said");
}

#[test]
fn what_is_related_or_deleted_says_which_members_are_expected() {
    for right in [r#"{"domain":"d","cpid":"p"}"#, r#"{"eid":"e"}"#] {
        let association: Association = serde_json::from_str(right).unwrap();
        assert_eq!(serde_json::to_string(&association).unwrap(), right);
    }
    for right in [r#"{"id":"e"}"#, r#"{"domain":"d","pid":"p"}"#] {
        let deletion: Deletion = serde_json::from_str(right).unwrap();
        assert_eq!(serde_json::to_string(&deletion).unwrap(), right);
    }
    for wrong in ["{}", r#"{"cpid":"p"}"#, r#"{"domain":"d","cpid":"p","eid":"e"}"#] {
        let text = serde_json::from_str::<Association>(wrong).unwrap_err().to_string();
        assert!(text.contains("`domain` and `cpid`, or `eid` alone"), "{wrong}: {text}");
    }
    for wrong in ["{}", r#"{"pid":"p"}"#, r#"{"id":"e","domain":"d","pid":"p"}"#] {
        let text = serde_json::from_str::<Deletion>(wrong).unwrap_err().to_string();
        assert!(text.contains("`id` alone, or `domain` and `pid`"), "{wrong}: {text}");
    }
    let text = serde_json::from_str::<Deletion>(r#"{"event":"e"}"#).unwrap_err().to_string();
    assert!(text.contains("unknown field `event`"), "{text}");
}
