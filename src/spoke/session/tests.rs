//! The session without a socket: properties that hold whatever comes in whatever order.

use std::{collections::HashMap, time::Duration};

use proptest::prelude::*;
use tokio::sync::oneshot;

use super::{publishes::Publishes, *};
use crate::{
    event::{Data, Domain, EventId, Name, NewEvent, Pid, code},
    spoke::write::{Write, WriteCommand},
    wire::{Answer, Published},
};

fn limits(requests: u32, bytes: u64) -> LinkLimits {
    LinkLimits {
        window_requests: requests,
        window_bytes: bytes,
        data_bytes: 1 << 20,
        record_bytes: 2 << 20,
        units: 64,
        credit: 64,
        credit_bytes: 4 << 20,
        subscriptions: 64,
        lease_ms: 30_000,
        ping_ms: 30_000,
        silence_ms: 60_000,
    }
}

fn event(number: u64, size: usize) -> NewEvent {
    NewEvent {
        id: EventId::parse(format!("e{number}")).unwrap(),
        domain: Domain::parse("d").unwrap(),
        name: Name::parse("n").unwrap(),
        pid: Pid::parse("p").unwrap(),
        rid: None,
        data: Data::from_value(&"x".repeat(size)).unwrap(),
    }
}

/// One thing that happens to the publishes of a link.
#[derive(Debug, Clone)]
enum Step {
    Publish { size: usize, deadline: u64 },
    Send,
    Ack(usize),
    RefuseForNow(usize),
    Refuse(usize),
    Cut,
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_usize..200, 1_u64..60).prop_map(|(size, deadline)| Step::Publish { size, deadline }),
        6 => Just(Step::Send),
        3 => any::<usize>().prop_map(Step::Ack),
        1 => any::<usize>().prop_map(Step::RefuseForNow),
        1 => any::<usize>().prop_map(Step::Refuse),
        1 => Just(Step::Cut),
        1 => (1_u64..20).prop_map(Step::Wait),
    ]
}

/// The publish that is sent next.
fn sent(publishes: &mut Publishes, now: Instant) -> Option<(Req, NewEvent)> {
    match publishes.next(now)? {
        Request::Publish { req, event, .. } => Some((req, event)),
        other => panic!("expected a publish: {other:?}"),
    }
}

fn committed() -> Answer {
    Answer::Published(Published::fresh(0, 0))
}

proptest! {
    /// Against what the hub sees: the window is never exceeded, what is sent for the first time comes in the
    /// order of the calls, and each caller is told once.
    #[test]
    fn the_window_is_never_exceeded_and_every_publish_has_one_end(
        steps in proptest::collection::vec(step(), 1..200),
        requests in 1_u32..6,
        bytes in 1_u64..400,
    ) {
        let mut now = Instant::now();
        let mut publishes = Publishes::new(Backoff::new(Duration::from_millis(100), Duration::from_secs(5)));
        publishes.link_up(&limits(requests, bytes));
        // What the hub holds un-acked on this link.
        let mut hub: Vec<(Req, usize)> = Vec::new();
        let mut answers = HashMap::new();
        let mut req = 0;
        let mut newest = 0;
        for step in steps {
            match step {
                Step::Publish { size, deadline } => {
                    req += 1;
                    let (answer, answered) = oneshot::channel();
                    let waited = Duration::from_secs(deadline);
                    let write = Write::Publish(event(req, size).into());
                    publishes.add(req, WriteCommand { write, deadline: now + waited, waited, room: None, last: None, answer });
                    answers.insert(req, answered);
                }
                Step::Send => if let Some((sent, event)) = sent(&mut publishes, now) {
                    prop_assert_eq!(event.id.as_str(), format!("e{sent}"));
                    prop_assert!(hub.iter().all(|(held, _)| *held != sent), "sent twice on one link");
                    if sent > newest {
                        newest = sent;
                    } else {
                        prop_assert!(answers.contains_key(&sent));
                    }
                    hub.push((sent, event.weight()));
                    let weight: usize = hub.iter().map(|(_, weight)| weight).sum();
                    prop_assert!(hub.len() <= requests as usize);
                    prop_assert!(hub.len() == 1 || weight as u64 <= bytes);
                },
                Step::Ack(which) if !hub.is_empty() => {
                    let (acked, _) = hub.swap_remove(which % hub.len());
                    prop_assert_eq!(publishes.answered(acked, committed()), None);
                }
                Step::RefuseForNow(which) if !hub.is_empty() => {
                    let (refused, _) = hub.swap_remove(which % hub.len());
                    let fault = Fault::retryable(code::HUB_BUSY, "busy", Duration::from_millis(10));
                    prop_assert!(publishes.refused(refused, fault, now).is_ok());
                }
                Step::Refuse(which) if !hub.is_empty() => {
                    let (refused, _) = hub.swap_remove(which % hub.len());
                    let fault = Fault::refused(code::EVENT_CONFLICT, "conflict");
                    prop_assert!(publishes.refused(refused, fault, now).is_ok());
                }
                Step::Ack(_) | Step::RefuseForNow(_) | Step::Refuse(_) => {}
                Step::Cut => {
                    hub.clear();
                    publishes.link_down(&Fault::refused(code::LINK_LOST, "cut"));
                    publishes.link_up(&limits(requests, bytes));
                }
                Step::Wait(seconds) => {
                    now += Duration::from_secs(seconds);
                    publishes.expire(now);
                    prop_assert!(publishes.next_due().is_none_or(|due| due > now), "a timer in the past spins");
                }
            }
        }
        let open = answers.values_mut().filter_map(|answer| answer.try_recv().err()).count();
        prop_assert_eq!(publishes.close(&closed()), open);
        for mut answer in answers.into_values() {
            // Answered: either before, or just now.
            prop_assert_ne!(answer.try_recv().err(), Some(oneshot::error::TryRecvError::Empty));
        }
    }
}

#[test]
fn what_was_in_flight_stands_before_what_came_later() {
    let now = Instant::now();
    let mut publishes = Publishes::new(Backoff::new(Duration::from_millis(100), Duration::from_secs(5)));
    let mut answers = Vec::new();
    for req in 1..=6 {
        let (answer, answered) = oneshot::channel();
        let waited = Duration::from_secs(30);
        let write = Write::Publish(event(req, 1).into());
        let command = WriteCommand { write, deadline: now + waited, waited, room: None, last: None, answer };
        publishes.add(req, command);
        answers.push(answered);
    }
    publishes.link_up(&limits(4, 1 << 20));
    let all_sent = |publishes: &mut Publishes| {
        std::iter::from_fn(|| sent(publishes, now).map(|(req, _)| req)).collect::<Vec<_>>()
    };
    assert_eq!(all_sent(&mut publishes), [1, 2, 3, 4]);
    assert_eq!(publishes.answered(2, committed()), None);
    publishes.link_down(&Fault::refused(code::LINK_LOST, "cut"));
    publishes.link_up(&limits(256, 1 << 20));
    assert_eq!(all_sent(&mut publishes), [1, 3, 4, 5, 6]);
}
