use super::*;
use crate::event::{Event, Group, MAX_DEPTH, Pid, Uid};

fn dead(domain: &str, data: &str) -> Dispatched {
    let event = Event {
        id: EventId::parse("e1").unwrap(),
        timestamp: 7,
        domain: Domain::parse(domain).unwrap(),
        name: Name::parse("created").unwrap(),
        pid: Pid::parse("order-1").unwrap(),
        rid: None,
        data: Data::parse(data.to_owned()).unwrap(),
    };
    Dispatched::new(event, 9)
}

fn last(group: Option<&str>, round: u32, error: &str) -> Attempt {
    Attempt {
        number: 5,
        round,
        group: group.map(|group| Group::parse(group).unwrap()),
        consumer: Uid::parse("WORK-1.EVENTFLOW-SPOKE").unwrap(),
        started: 1,
        ended: 2,
        reason: "nack".to_owned(),
        error: error.to_owned(),
    }
}

fn policy() -> Policy {
    Policy { dead_letter: Some(Domain::parse("failures").unwrap()), ..Policy::default() }
}

#[test]
fn a_letter_tells_all_that_there_is_to_know() {
    let letters = Letters::new(1_000);
    let letter =
        letters.of(&policy(), &dead("orders", r#"{"total":1.0}"#), &last(Some("billing"), 2, "no \"one\""));
    let letter = letter.unwrap();
    assert_eq!((&*letter.domain, &*letter.name, &*letter.pid), ("failures", "created", "order-1"));
    assert_eq!(letter.rid.as_deref(), Some("e1"));
    assert!(letter.id.starts_with("dl-") && letter.id.len() == 43, "{}", letter.id);
    assert_eq!(
        letter.data.as_str(),
        r#"{"event":"e1","group":"billing","domain":"orders","name":"created","reason":"nack","error":"no \"one\"","attempts":5,"round":2,"data":{"total":1.0}}"#
    );
    assert!(letters.of(&Policy::default(), &dead("orders", "{}"), &last(None, 1, "")).is_none());
}

#[test]
fn each_event_group_and_round_has_one_letter() {
    let letters = Letters::new(1_000);
    let id = |group, round| letters.of(&policy(), &dead("orders", "{}"), &last(group, round, "")).unwrap().id;
    let ids = [id(None, 1), id(None, 2), id(Some("billing"), 1), id(Some("mail"), 1)];
    assert_eq!(id(None, 1), ids[0]);
    assert_eq!(ids.iter().collect::<std::collections::HashSet<_>>().len(), 4);
}

#[test]
fn data_that_does_not_fit_is_left_out() {
    let letters = Letters::new(200);
    let long = format!("{{\"text\":\"{}\"}}", "x".repeat(300));
    let letter = letters.of(&policy(), &dead("orders", &long), &last(None, 1, "")).unwrap();
    assert!(letter.data.len() <= 200 && letter.data.as_str().ends_with("\"round\":1}"));
    let deep = format!("{}{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
    let letter = Letters::new(10_000).of(&policy(), &dead("orders", &deep), &last(None, 1, "")).unwrap();
    assert!(letter.data.as_str().ends_with("\"round\":1}"));
    let long = last(None, 1, &"é".repeat(9_000));
    assert!(Letters::new(10_000).of(&policy(), &dead("orders", "{}"), &long).unwrap().data.len() < 1_500);
}

#[test]
fn what_arrives_in_any_groups_dead_letter_domain_has_no_letter() {
    let letters = Letters::new(1_000);
    letters.go_to(GroupNo::DEFAULT, policy().dead_letter.as_ref());
    assert!(letters.of(&policy(), &dead("failures", "{}"), &last(None, 1, "")).is_none());
    let other = Policy { dead_letter: Some(Domain::parse("others").unwrap()), ..Policy::default() };
    assert!(letters.of(&other, &dead("failures", "{}"), &last(None, 1, "")).is_none());
    letters.go_to(GroupNo::DEFAULT, None);
    assert!(letters.of(&other, &dead("failures", "{}"), &last(None, 1, "")).is_some());
}
