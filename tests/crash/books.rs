//! The books themselves, looked at before a run: what is wrong is found, what has its reason isn't.

use crate::{
    account::{Account, Death, STOPPED, Stop, Worker, rank, too_slow},
    consumer::LEASE,
    journal::{
        Line,
        Step::{self, Acked, Began, Handed, InDoubt, Lost},
    },
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

fn account(workers: Vec<Worker>) -> Account {
    let outcomes = [(("-".to_owned(), "e".to_owned()), "success".to_owned())].into();
    Account { acked: vec!["e".to_owned()], workers, outcomes, ..Account::default() }
}

fn faults(workers: Vec<Worker>) -> String {
    account(workers).faults().join("; ")
}

/// Judges runs of which it is known what is wrong.
pub fn check() {
    outcomes();
    causes();
    hand_overs();
    let plan = crate::Plan { events: 1, time: std::time::Duration::from_secs(20), seed: 1 };
    let idle = Account { plan: Some(plan), ..Account::default() }.faults().join("; ");
    assert!(idle.contains("consumers were killed") && idle.contains("hand-overs"), "{idle}");
    let ten: Vec<i64> = (1..=10).collect();
    assert!(too_slow(&[5, 9_000]).is_none(), "of few one may");
    assert!(too_slow(&[5, 2_001, 9_000]).is_some() && too_slow(&[5, 10_001]).is_some());
    let mut many = vec![5; 298];
    many.extend([2_001; 3]);
    assert!(too_slow(&many).is_none());
    many.push(2_001);
    assert!(too_slow(&many).is_some());
    assert_eq!((rank(&ten, 50), rank(&ten, 99), rank(&[], 99)), (5, 10, 0), "of few the slowest counts");
    let many: Vec<i64> = (1..=200).collect();
    assert_eq!((rank(&many, 99), rank(&many, 100)), (198, 200));
}

fn acked() -> Worker {
    worker(&[(Handed, 10), (Began, 20), (Acked, 30)])
}

fn outcomes() {
    assert_eq!(faults(vec![acked()]), "");
    let late = worker(&[(Handed, 31), (Began, 40), (Lost, 50)]);
    assert!(faults(vec![acked(), late]).contains("handed out after its ack"));
    let unproven = worker(&[(Began, 40), (Lost, 50)]);
    assert!(faults(vec![acked(), unproven]).contains("handed out after its ack"));
    assert!(faults(vec![acked(), worker(&[(Handed, 31)])]).contains("handed out after its ack"));
    // It was stopped with the claim under way to it, and reads it long after.
    let awake = 20 + i64::try_from(STOPPED.as_millis()).unwrap();
    let steps = [(Handed, awake), (Began, awake), (Lost, awake + 1)];
    let stopped = |at| Worker { stops: vec![Stop { at }], ..worker(&steps) };
    assert_eq!(faults(vec![acked(), stopped(5)]), "");
    assert!(faults(vec![acked(), stopped(31)]).contains("handed out after its ack"));

    assert!(faults(vec![acked(), acked()]).contains("acked 2 times"));
    let killed = Worker { death: Some(Death { at: 60 }), ..worker(&[(Handed, 25), (Began, 40)]) };
    assert!(faults(vec![acked(), killed]).contains("handled after its ack"));
    assert!(faults(Vec::new()).contains("handled by nobody"));
}

/// Two have one event: what took it from the first must have happened before the second got it.
fn causes() {
    // Both live, nothing happens, and the second ack is refused or never answered.
    for end in [Lost, InDoubt] {
        let second = worker(&[(Handed, 25), (Began, 28), (end, 29)]);
        let both = faults(vec![acked(), second]);
        assert!(both.contains("handed to two at once") && both.contains("without a cause"), "{both}");
    }
    let not_begun = faults(vec![acked(), worker(&[(Handed, 29)])]);
    assert!(not_begun.contains("handed to two at once"), "{not_begun}");

    let kept = i64::try_from(LEASE.as_millis()).unwrap();
    // Well after all that has slack, and with other words of its process before.
    let (from, other) = (20_000, 20_000 + kept);
    let first = || worker(&[(Handed, from), (Began, from + 1), (Lost, other + 500)]);
    let second = || worker(&[(Handed, other), (Began, other + 1), (Acked, other + 2)]);
    let run = |first: Worker, kills: &[(i64, i64)]| {
        let (hub_kills, hub_back) = kills.iter().copied().unzip();
        Account { hub_kills, hub_back, ..account(vec![first, second()]) }.faults().join("; ")
    };
    assert_eq!(run(first(), &[]), "", "its process was held up until the lease ran out");
    let busy = || {
        let mut busy = first();
        let said = |at| Line { at, number: 2, event: "f".to_owned(), step: Handed, ..busy.lines[0].clone() };
        let words: Vec<Line> = (1..10).map(|nth| said(from + nth * kept / 8)).collect();
        busy.lines.splice(2..2, words);
        busy
    };
    let causeless = run(busy(), &[]);
    assert!(causeless.contains("taken") && causeless.contains("two at once"), "{causeless}");
    assert_eq!(run(busy(), &[(from + 500, from + 900)]), "", "the hub was killed");
    for elsewhen in [(from - 9_000, from - 8_000), (other + 600, other + 700)] {
        assert_eq!(run(busy(), &[elsewhen]), causeless, "before it was handed out, or after all was over");
    }
    // That explains the first's end, and not that the second got it before.
    let after = run(busy(), &[(other + 100, other + 200)]);
    assert!(!after.contains("taken") && after.contains("two at once"), "{after}");
    let stopped = |at| Worker { stops: vec![Stop { at }], ..busy() };
    assert_eq!(run(stopped(from + 500), &[]), "", "it was stopped");
    assert_eq!(run(stopped(from - 15_000), &[]), causeless, "long before");
    let others = Worker { stops: vec![Stop { at: from }], ..worker(&[]) };
    let others = Account { workers: vec![busy(), second(), others], ..account(Vec::new()) }.faults();
    assert_eq!(others.join("; "), causeless, "the stop of another takes nothing from this one");
}

/// One is killed, another begins after its lease is over once more: only a third one that was stopped and had it in between
/// excuses that.
fn hand_overs() {
    let lease = i64::try_from(LEASE.as_millis()).unwrap();
    let (died, began) = (20_000, 20_000 + lease + 200);
    let run = |third: Option<Worker>| {
        let first = worker(&[(Handed, died - 20), (Began, died - 10)]);
        let killed = Worker { death: Some(Death { at: died }), ..first };
        let second = worker(&[(Handed, began), (Began, began), (Acked, began + 5)]);
        let workers = [killed, second].into_iter().chain(third).collect();
        let all = account(workers).hand_overs();
        (all.took, all.to_sleepers)
    };
    assert_eq!(run(None), (vec![lease + 200], 0));
    let awake = died - 1_000 + i64::try_from(STOPPED.as_millis()).unwrap();
    let sleeper = |steps: &[(Step, i64)]| Worker { stops: vec![Stop { at: died - 1_000 }], ..worker(steps) };
    assert_eq!(run(Some(sleeper(&[(Handed, awake), (Began, awake + 1), (Lost, awake + 2)]))), (vec![], 1));
    assert_eq!(run(Some(sleeper(&[(Handed, awake)]))), (vec![], 1), "not begun");
    assert_eq!(run(Some(sleeper(&[]))), (vec![lease + 200], 0), "it had something else");
    let killed = |at| Worker { death: Some(Death { at }), ..sleeper(&[]) };
    assert_eq!(run(Some(killed(died + 500))), (vec![], 1), "killed in its sleep it wrote nothing down");
    assert_eq!(run(Some(killed(died - 500))), (vec![lease + 200], 0), "dead already");
}
