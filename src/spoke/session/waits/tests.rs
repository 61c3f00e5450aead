//! Waits without a socket: properties that hold whatever comes in whatever order.

use proptest::prelude::*;
use tokio::sync::oneshot;

use super::*;
use crate::{
    event::{Data, Domain, EventId, Name, Pid},
    spoke::command::closed,
};

fn event() -> Event {
    Event {
        id: EventId::parse("e1").unwrap(),
        timestamp: 0,
        domain: Domain::parse("d").unwrap(),
        name: Name::parse("n").unwrap(),
        pid: Pid::parse("p").unwrap(),
        rid: None,
        data: Data::parse("null").unwrap(),
    }
}

/// One thing that happens to the waits of a link.
#[derive(Debug, Clone)]
enum Step {
    Wait { seconds: u64 },
    Send,
    Find(usize),
    TimeOut(usize),
    RefuseForNow(usize),
    GiveUp(usize),
    Cut,
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1_u64..100).prop_map(|seconds| Step::Wait { seconds }),
        6 => Just(Step::Send),
        2 => any::<usize>().prop_map(Step::Find),
        2 => any::<usize>().prop_map(Step::TimeOut),
        1 => any::<usize>().prop_map(Step::RefuseForNow),
        1 => any::<usize>().prop_map(Step::GiveUp),
        1 => Just(Step::Cut),
        1 => (1_u64..20).prop_map(Step::Pass),
    ]
}

proptest! {
    /// Against what callers see: none is told twice or forgotten, what is asked lies within the rest of its time, and
    /// only at the end of that time does a time-out of the hub count.
    #[test]
    fn every_wait_has_one_end_and_is_asked_within_its_time(steps in proptest::collection::vec(step(), 1..200)) {
        let mut now = Instant::now();
        let mut waits = Waits::default();
        // What the hub waits for on this link: number and deadline.
        let mut hub: Vec<(Req, Instant)> = Vec::new();
        // Callers that still wait, each named by the id that it waits for the outcome of.
        let mut callers = BTreeMap::new();
        let mut number = 0_u64;
        for step in steps {
            match step {
                Step::Wait { seconds } => {
                    number += 1;
                    let (answer, answered) = oneshot::channel();
                    let deadline = now + Duration::from_secs(seconds);
                    let wanted = Wanted::Outcome(EventId::parse(number.to_string()).unwrap(), None);
                    waits.add(WaitCommand { wanted, deadline, answer });
                    callers.insert(number, (deadline, answered));
                }
                Step::Send => {
                    number += 1;
                    if let Some(request) = waits.next(number, now) {
                        let Request::Outcome { req, id, options } = request else { panic!("expected an outcome") };
                        let (deadline, _) = callers.get(&id.parse::<u64>().unwrap()).unwrap();
                        let timeout = Duration::from_millis(options.timeout_ms);
                        prop_assert!(!timeout.is_zero() && timeout <= SLICE && now + timeout <= *deadline);
                        hub.push((req, *deadline));
                    }
                },
                Step::Find(which) if !hub.is_empty() => {
                    let (req, _) = hub.swap_remove(which % hub.len());
                    waits.item(req, event());
                    prop_assert_eq!(waits.answered(req, Answer::Done), None);
                }
                Step::TimeOut(which) if !hub.is_empty() => {
                    let (req, _) = hub.swap_remove(which % hub.len());
                    let fault = Fault::refused(code::WAIT_TIMEOUT, "late");
                    prop_assert_eq!(waits.refused(req, fault, now), Ok(()));
                }
                Step::RefuseForNow(which) if !hub.is_empty() => {
                    let (req, _) = hub.swap_remove(which % hub.len());
                    let fault = Fault::retryable(code::HUB_BUSY, "busy", Duration::from_millis(10));
                    prop_assert_eq!(waits.refused(req, fault, now), Ok(()));
                }
                Step::Find(_) | Step::TimeOut(_) | Step::RefuseForNow(_) => {}
                Step::GiveUp(which) => {
                    if let Some(caller) = callers.keys().nth(which % callers.len().max(1)).copied() {
                        callers.remove(&caller);
                        // The hub goes on waiting for nobody.
                    }
                }
                Step::Cut => {
                    hub.clear();
                    waits.link_down();
                }
                Step::Pass(seconds) => {
                    now += Duration::from_secs(seconds);
                    waits.expire(now);
                    prop_assert!(waits.next_due().is_none_or(|due| due > now), "a timer in the past spins");
                }
            }
            // Callers keep the time themselves.
            callers.retain(|_, (deadline, _)| *deadline > now);
        }
        let mut open = 0;
        for (_, answered) in callers.values_mut() {
            match answered.try_recv() {
                Ok(Ok(found)) => prop_assert_eq!(found.events, [event()]),
                Ok(Err(failure)) => prop_assert!(matches!(failure, Failure::Refused(_))),
                Err(oneshot::error::TryRecvError::Empty) => open += 1,
                Err(oneshot::error::TryRecvError::Closed) => prop_assert!(false, "a wait was forgotten"),
            }
        }
        prop_assert_eq!(waits.close(&closed()), open);
    }
}
