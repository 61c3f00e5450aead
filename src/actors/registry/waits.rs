//! Who waits for which event.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::{
    actors::{
        dispatched::Dispatched,
        waiters::{WaitKey, Waiters},
    },
    event::{Domain, EventId, Name, Pid},
};

/// What a wait is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Awaited {
    /// An event of a process.
    Process {
        /// The domain.
        domain: Domain,
        /// The process.
        pid: Pid,
        /// Which names; empty: any.
        names: Vec<Name>,
        /// Dispatched above this position.
        above: u64,
    },
    /// An event that answers this one.
    Answer {
        /// Which.
        rid: EventId,
    },
}

/// Gets the event; it is gone if nobody waits any more.
pub type Found = oneshot::Sender<Arc<Dispatched>>;

/// One who waits for an event of a process.
#[derive(Debug)]
struct Waiter {
    names: Vec<Name>,
    above: u64,
    found: Found,
}

/// All who wait for an event.
#[derive(Debug, Default)]
pub struct Waits {
    processes: Waiters<(Domain, Pid), Waiter>,
    answers: Waiters<EventId, Found>,
}

impl Waits {
    /// One more waits: for the first event from here on.
    pub fn add(&mut self, who: WaitKey, what: Awaited, found: Found) {
        match what {
            Awaited::Process { domain, pid, names, above } => {
                self.processes.add((domain, pid), who, Waiter { names, above, found });
            }
            Awaited::Answer { rid } => self.answers.add(rid, who, found),
        }
    }

    /// It waits no longer, if it did.
    pub fn remove(&mut self, who: WaitKey, what: Awaited) {
        match what {
            Awaited::Process { domain, pid, .. } => self.processes.remove(&(domain, pid), who),
            Awaited::Answer { rid } => self.answers.remove(&rid, who),
        }
    }

    /// Events were dispatched, in sequence: who waited for one gets it.
    pub fn dispatch(&mut self, events: &[Arc<Dispatched>]) {
        if self.processes.is_empty() && self.answers.is_empty() {
            return;
        }
        for dispatched in events {
            let event = &dispatched.event;
            let process = (event.domain.clone(), event.pid.clone());
            let met = self.processes.take(&process, |waiter| {
                dispatched.seq > waiter.above
                    && (waiter.names.is_empty() || waiter.names.contains(&event.name))
            });
            let answered = event.rid.as_ref().map(|rid| self.answers.take(rid, |_| true));
            let met = met.into_iter().map(|waiter| waiter.found);
            for found in met.chain(answered.unwrap_or_default()) {
                // Whoever doesn't wait any more has said so, or is about to.
                let _ = found.send(dispatched.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        actors::outlet::LinkId,
        event::{Data, Event},
    };

    fn key(number: u64) -> WaitKey {
        WaitKey { link: LinkId(1), number }
    }

    fn name(text: &str) -> Name {
        Name::parse(text.to_owned()).unwrap()
    }

    fn process(names: &[&str], above: u64) -> Awaited {
        Awaited::Process {
            domain: Domain::parse("orders").unwrap(),
            pid: Pid::parse("1").unwrap(),
            names: names.iter().map(|text| name(text)).collect(),
            above,
        }
    }

    fn event(seq: u64, pid: &str, of: &str, rid: Option<&str>) -> Arc<Dispatched> {
        let id = |text: &str| EventId::parse(text.to_owned()).unwrap();
        let event = Event {
            id: id(&format!("e{seq}")),
            timestamp: 0,
            domain: Domain::parse("orders").unwrap(),
            name: name(of),
            pid: Pid::parse(pid.to_owned()).unwrap(),
            rid: rid.map(id),
            data: Data::parse("{}").unwrap(),
        };
        Arc::new(Dispatched::new(event, seq))
    }

    #[test]
    fn each_gets_the_first_event_that_it_waits_for() {
        let mut waits = Waits::default();
        let rid = EventId::parse("question").unwrap();
        let wanted = [
            process(&[], 0),
            process(&["paid", "sent"], 0),
            process(&[], 3),
            Awaited::Answer { rid: rid.clone() },
            process(&["refunded"], 0),
        ];
        let mut found: Vec<_> = (0..)
            .zip(wanted.clone())
            .map(|(number, what)| {
                let (found, answer) = oneshot::channel();
                waits.add(key(number), what, found);
                answer
            })
            .collect();
        waits.dispatch(&[event(1, "other", "paid", None), event(2, "1", "created", None)]);
        waits.dispatch(&[event(3, "1", "sent", None), event(4, "other", "paid", Some("question"))]);
        waits.dispatch(&[event(5, "1", "paid", Some("question")), event(6, "1", "paid", None)]);
        let seqs: Vec<_> =
            found.iter_mut().map(|found| found.try_recv().ok().map(|event| event.seq)).collect();
        assert_eq!(seqs, [Some(2), Some(3), Some(5), Some(4), None]);
        for (number, what) in (0..).zip(wanted) {
            waits.remove(key(number), what);
        }
        assert!(waits.processes.is_empty() && waits.answers.is_empty());
    }
}
