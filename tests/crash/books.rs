//! The books themselves, looked at before a run: what is wrong is found, what has its reason isn't.

use crate::{
    account::{Account, Death, STOPPED, Stop, Worker},
    journal::{Line, Step},
};

/// One worker that has this event, with these steps and their times.
fn worker(steps: &[(Step, i64)]) -> Worker {
    let line = |(step, at): &(Step, i64)| Line {
        at: *at,
        step: *step,
        number: 1,
        group: "-".to_owned(),
        event: "e".to_owned(),
        attempt: 1,
    };
    Worker { lines: steps.iter().map(line).collect(), stops: Vec::new(), death: None }
}

fn faults(workers: Vec<Worker>) -> String {
    let outcomes = [(("-".to_owned(), "e".to_owned()), "success".to_owned())].into();
    Account { acked: vec!["e".to_owned()], workers, outcomes, ..Account::default() }.faults().join("; ")
}

/// Judges runs of which it is known what is wrong.
pub fn check() {
    use Step::{Acked, Began, Handed, Lost};
    let acked = || worker(&[(Handed, 10), (Began, 20), (Acked, 30)]);
    assert_eq!(faults(vec![acked()]), "");
    let late = |handed| worker(&[(Handed, handed), (Began, 40), (Lost, 50)]);
    assert_eq!(faults(vec![acked(), late(25)]), "", "it was handed out before the ack");
    assert!(faults(vec![acked(), late(31)]).contains("handed out after its ack"));
    let unproven = worker(&[(Began, 40), (Lost, 50)]);
    assert!(faults(vec![acked(), unproven]).contains("handed out after its ack"));
    let not_begun = |handed| worker(&[(Handed, handed)]);
    assert_eq!(faults(vec![acked(), not_begun(29)]), "");
    assert!(faults(vec![acked(), not_begun(31)]).contains("handed out after its ack"));
    // It was stopped with the claim under way to it, and reads it long after.
    let awake = 20 + i64::try_from(STOPPED.as_millis()).unwrap();
    let steps = [(Handed, awake), (Began, awake), (Lost, awake + 1)];
    let stopped = |at| Worker { stops: vec![Stop { at }], ..worker(&steps) };
    assert_eq!(faults(vec![acked(), stopped(20)]), "");
    assert!(faults(vec![acked(), stopped(31)]).contains("handed out after its ack"));

    assert!(faults(vec![acked(), acked()]).contains("acked 2 times"));
    let killed = Worker { death: Some(Death { at: 60 }), ..worker(&[(Handed, 25), (Began, 40)]) };
    assert!(faults(vec![acked(), killed]).contains("handled after its ack"));
    assert!(faults(Vec::new()).contains("handled by nobody"));
    let plan = crate::Plan { events: 1, time: std::time::Duration::from_secs(20), seed: 1 };
    let idle = Account { plan: Some(plan), ..Account::default() }.faults().join("; ");
    assert!(idle.contains("consumers were killed") && idle.contains("hand-overs"), "{idle}");
}
