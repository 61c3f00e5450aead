//! Reads and small changes: waiting for the link, asked, and asked again when a link is lost.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    event::{Event, Fault, Retry, code},
    spoke::command::{Failure, Found, QueryCommand},
    wire::{Answer, Req, Request},
};

/// Queries asked at once; further ones wait.
const MOST_ASKED: usize = 64;
/// Queries that wait at most.
const MOST_WAITING: usize = 4096;
/// Events of one answer at most: more than any page that is asked for.
const MOST_EVENTS: usize = 4096;
/// The shortest wait before a hub that couldn't change something is asked again.
const AGAIN: Duration = Duration::from_millis(10);

#[derive(Debug, Default)]
pub(super) struct Queries {
    waiting: VecDeque<QueryCommand>,
    asked: BTreeMap<Req, Asked>,
    /// Changes that the hub refused for now: when to ask again. They count among those that wait.
    held: Vec<(Instant, QueryCommand)>,
}

#[derive(Debug)]
struct Asked {
    waiting: QueryCommand,
    events: Vec<Event>,
}

impl Queries {
    pub(super) fn add(&mut self, query: QueryCommand) {
        if self.waiting.len() + self.held.len() >= MOST_WAITING {
            self.waiting.retain(|waiting| !waiting.answer.is_closed());
            self.held.retain(|(_, waiting)| !waiting.answer.is_closed());
        }
        if self.waiting.len() + self.held.len() < MOST_WAITING {
            self.waiting.push_back(query);
        } else {
            let text = format!("{MOST_WAITING} reads and changes wait for the hub already: ask less at once");
            let fault = Fault::retryable(code::HUB_BUSY, text, Duration::from_secs(1));
            // A caller that has gone away needs no answer.
            let _ = query.answer.send(Err(Failure::Refused(fault)));
        }
    }

    /// All that waits, in its order, for another link to ask. What is for this hub alone ends.
    pub(super) fn hand_over(&mut self, fault: &Fault) -> Vec<QueryCommand> {
        let held = std::mem::take(&mut self.held).into_iter().map(|(_, waiting)| waiting);
        let all = std::mem::take(&mut self.waiting).into_iter().chain(held);
        let (bound, free): (Vec<_>, Vec<_>) =
            all.filter(|query| !query.answer.is_closed()).partition(|query| query.bound);
        for query in bound {
            // A caller that has gone away needs no answer.
            let _ = query.answer.send(Err(Failure::LinkLost(fault.clone())));
        }
        free
    }

    /// The next query to send, under this number.
    pub(super) fn next(&mut self, req: Req) -> Option<Request> {
        while self.asked.len() < MOST_ASKED {
            let waiting = self.waiting.pop_front()?;
            if waiting.answer.is_closed() {
                continue;
            }
            let request = waiting.query.request(req);
            self.asked.insert(req, Asked { waiting, events: Vec::new() });
            return Some(request);
        }
        None
    }

    /// One event of an answer; gives it back if it belongs to no query.
    pub(super) fn item(&mut self, req: Req, event: Event) -> Option<Event> {
        let Some(asked) = self.asked.get_mut(&req) else { return Some(event) };
        if asked.events.len() < MOST_EVENTS {
            asked.events.push(event);
        }
        None
    }

    /// Gives the answer back if it wasn't awaited.
    pub(super) fn answered(&mut self, req: Req, answer: Answer) -> Option<Answer> {
        let Some(asked) = self.asked.remove(&req) else { return Some(answer) };
        // A caller that has gone away needs no answer.
        let _ = asked.waiting.answer.send(Ok(Found { events: asked.events, answer }));
        None
    }

    /// Gives the fault back if this answer wasn't awaited.
    pub(super) fn refused(&mut self, req: Req, fault: Fault, now: Instant) -> Result<(), Fault> {
        let Some(Asked { waiting, .. }) = self.asked.remove(&req) else { return Err(fault) };
        let QueryCommand { query, again, .. } = &waiting;
        if let Retry::After(wait) = fault.retry
            && query.changes()
        {
            self.held.push((now + wait.max(AGAIN), waiting));
            return Ok(());
        }
        let done = again.then(|| query.done_before(&fault)).flatten();
        let result = match done {
            Some(answer) => Ok(Found { events: Vec::new(), answer }),
            None => Err(Failure::Refused(fault)),
        };
        // A caller that has gone away needs no answer.
        let _ = waiting.answer.send(result);
        Ok(())
    }

    /// What was asked is asked again on the next link, in the same order and before what came later. What must not be
    /// done twice is in doubt: its caller is told.
    pub(super) fn link_down(&mut self, fault: &Fault) {
        for Asked { waiting, .. } in std::mem::take(&mut self.asked).into_values().rev() {
            if waiting.query.is_repeatable() {
                self.waiting.push_front(QueryCommand { again: true, ..waiting });
            } else {
                // A caller that has gone away needs no answer.
                let _ = waiting.answer.send(Err(Failure::LinkLost(fault.clone())));
            }
        }
    }

    /// Asks again for what was put off until now.
    pub(super) fn expire(&mut self, now: Instant) {
        self.held.retain(|(_, waiting)| !waiting.answer.is_closed());
        for (_, waiting) in self.held.extract_if(.., |(due, _)| *due <= now) {
            self.waiting.push_back(waiting);
        }
    }

    /// When to look again, if ever.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.held.iter().map(|(due, _)| *due).min()
    }

    pub(super) fn close(&mut self, fault: &Fault) -> usize {
        let asked = std::mem::take(&mut self.asked).into_values().map(|asked| asked.waiting);
        let held = std::mem::take(&mut self.held).into_iter().map(|(_, waiting)| waiting);
        let mut count = 0;
        for waiting in asked.chain(held).chain(std::mem::take(&mut self.waiting)) {
            count += usize::from(waiting.answer.send(Err(Failure::Closed(fault.clone()))).is_ok());
        }
        count
    }

    /// Whether nobody waits for an answer.
    pub(super) fn is_empty(&self) -> bool {
        let asked = self.asked.values().map(|asked| &asked.waiting);
        let held = self.held.iter().map(|(_, waiting)| waiting);
        self.waiting.iter().chain(asked).chain(held).all(|waiting| waiting.answer.is_closed())
    }
}
