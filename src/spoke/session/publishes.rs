//! Publishes, schedules and all else that stores events, from the call to the answer: waiting, in flight, in
//! doubt, refused for now.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tokio::time::Instant;

use super::window::Window;
use crate::{
    event::{Fault, Retry},
    spoke::{PublishError, backoff::Backoff, write::WriteCommand},
    wire::{Answer, LinkLimits, Req, Request},
};

/// All publishes that have no answer yet. A batch is one; so is an event to be persisted or scheduled: the hub may
/// or may not count it in its window.
///
/// A publish keeps its request number for life, so the numbers give the order of the calls: what a lost link
/// or a refusal for now brings back stands before all that came later. A refusal for now holds back
/// everything that waits: it says something of the hub (busy, full, draining), hardly of the one event.
#[derive(Debug)]
pub(super) struct Publishes {
    waiting: BTreeMap<Req, Waiting>,
    in_flight: HashMap<Req, InFlight>,
    deadlines: BTreeSet<(Instant, Req)>,
    window: Window,
    limits: Option<LinkLimits>,
    held_until: Option<Instant>,
    backoff: Backoff,
    retried: u64,
}

#[derive(Debug)]
struct Waiting {
    command: WriteCommand,
    /// Why it isn't the first try.
    last: Option<Fault>,
}

#[derive(Debug)]
struct InFlight {
    weight: usize,
    /// None: its caller was told that the deadline passed. The hub's window still counts it.
    publish: Option<Waiting>,
}

impl Publishes {
    pub(super) fn new(backoff: Backoff) -> Self {
        Self {
            waiting: BTreeMap::new(),
            in_flight: HashMap::new(),
            deadlines: BTreeSet::new(),
            window: Window::default(),
            limits: None,
            held_until: None,
            backoff,
            retried: 0,
        }
    }

    pub(super) fn add(&mut self, req: Req, mut command: WriteCommand) {
        self.deadlines.insert((command.deadline, req));
        let last = command.last.take();
        self.waiting.insert(req, Waiting { command, last });
    }

    /// All that waits, in its order, for another link to send.
    pub(super) fn hand_over(&mut self) -> Vec<WriteCommand> {
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        let handed = waiting.map(|(req, Waiting { command, last })| {
            self.deadlines.remove(&(command.deadline, req));
            WriteCommand { last, ..command }
        });
        handed.collect()
    }

    pub(super) fn link_up(&mut self, limits: &LinkLimits) {
        self.window = Window::of(limits);
        self.limits = Some(limits.clone());
    }

    /// What was in flight is in doubt: it waits, in its old place, to be sent again under the same id.
    pub(super) fn link_down(&mut self, fault: &Fault) {
        self.window = Window::default();
        self.held_until = None;
        for (req, in_flight) in self.in_flight.drain() {
            if let Some(mut publish) = in_flight.publish {
                publish.last = Some(fault.clone());
                self.waiting.insert(req, publish);
            }
        }
    }

    /// The oldest publish that waits, if it may be sent now; from then on it is in flight.
    pub(super) fn next(&mut self, now: Instant) -> Option<Request> {
        if self.held_until.is_some_and(|until| now < until) {
            return None;
        }
        loop {
            let first = self.waiting.first_entry()?;
            let write = &first.get().command.write;
            if let Some(fault) = self.limits.as_ref().and_then(|limits| write.beyond(limits)) {
                // The hub would cut the link of a client that doesn't keep to its limits.
                let (req, publish) = first.remove_entry();
                self.finish(req, publish, Err(PublishError::Refused(fault)));
                continue;
            }
            let weight = write.weight();
            if !self.window.take(weight) {
                return None;
            }
            let (req, publish) = first.remove_entry();
            let request = publish.command.write.request(req);
            self.retried += u64::from(publish.last.is_some());
            self.in_flight.insert(req, InFlight { weight, publish: Some(publish) });
            return Some(request);
        }
    }

    /// Gives the answer back if it wasn't awaited.
    pub(super) fn answered(&mut self, req: Req, answer: Answer) -> Option<Answer> {
        let Some(in_flight) = self.take(req) else { return Some(answer) };
        self.backoff.reset();
        if let Some(publish) = in_flight.publish {
            self.finish(req, publish, Ok(answer));
        }
        None
    }

    /// A refusal without a retry is final. Gives the fault back if this answer wasn't awaited.
    pub(super) fn refused(&mut self, req: Req, fault: Fault, now: Instant) -> Result<(), Fault> {
        let Some(in_flight) = self.take(req) else { return Err(fault) };
        let Some(mut publish) = in_flight.publish else { return Ok(()) };
        match fault.retry {
            Retry::Never => self.finish(req, publish, Err(PublishError::refused(fault))),
            Retry::After(wait) => {
                // Of what was in flight together, the first one refused sets the wait.
                if self.held_until.is_none() {
                    self.held_until = Some(now + wait.max(self.backoff.next()));
                }
                publish.last = Some(fault);
                self.waiting.insert(req, publish);
            }
        }
        Ok(())
    }

    /// Tells the callers whose deadline has passed, and ends a hold that is over.
    pub(super) fn expire(&mut self, now: Instant) {
        self.held_until = self.held_until.filter(|until| now < *until);
        while let Some(&(deadline, req)) = self.deadlines.first()
            && deadline <= now
        {
            self.deadlines.pop_first();
            let publish = match self.in_flight.get_mut(&req) {
                Some(in_flight) => in_flight.publish.take(),
                None => self.waiting.remove(&req),
            };
            if let Some(Waiting { command, last }) = publish {
                // A caller that has gone away needs no answer.
                let _ = command.answer.send(Err(PublishError::TimedOut { waited: command.waited, last }));
            }
        }
    }

    /// When to look again, if ever.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let deadline = self.deadlines.first().map(|(deadline, _)| *deadline);
        let held = self.held_until.filter(|_| !self.waiting.is_empty());
        [deadline, held].into_iter().flatten().min()
    }

    /// Tells every caller that the spoke is closed; says how many there were.
    pub(super) fn close(&mut self, fault: &Fault) -> usize {
        let in_flight = self.in_flight.drain().filter_map(|(_, in_flight)| in_flight.publish);
        let publishes: Vec<_> = std::mem::take(&mut self.waiting).into_values().chain(in_flight).collect();
        self.deadlines.clear();
        let count = publishes.len();
        for publish in publishes {
            // A caller that has gone away needs no answer.
            let _ = publish.command.answer.send(Err(PublishError::Closed(fault.clone())));
        }
        count
    }

    /// Whether nobody waits for an answer.
    pub(super) fn is_empty(&self) -> bool {
        self.deadlines.is_empty()
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn retried(&self) -> u64 {
        self.retried
    }

    fn take(&mut self, req: Req) -> Option<InFlight> {
        let in_flight = self.in_flight.remove(&req)?;
        self.window.give_back(in_flight.weight);
        Some(in_flight)
    }

    fn finish(&mut self, req: Req, publish: Waiting, result: Result<Answer, PublishError>) {
        self.deadlines.remove(&(publish.command.deadline, req));
        // A caller that has gone away needs no answer.
        let _ = publish.command.answer.send(result);
    }
}
