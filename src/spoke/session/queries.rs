//! Reads: waiting for the link, asked, and asked again when a link is lost.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use crate::{
    event::{Event, Fault, code},
    spoke::command::{Answering, Failure, Found, Query},
    wire::{Answer, Req, Request},
};

/// Reads asked at once; further ones wait.
const MOST_ASKED: usize = 64;
/// Reads that wait at most.
const MOST_WAITING: usize = 4096;
/// Events of one answer at most: more than any page that is asked for.
const MOST_EVENTS: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Queries {
    waiting: VecDeque<Waiting>,
    asked: BTreeMap<Req, Asked>,
}

#[derive(Debug)]
struct Waiting {
    query: Query,
    answer: Answering<Found>,
}

#[derive(Debug)]
struct Asked {
    waiting: Waiting,
    events: Vec<Event>,
}

impl Queries {
    pub(super) fn add(&mut self, query: Query, answer: Answering<Found>) {
        if self.waiting.len() >= MOST_WAITING {
            self.waiting.retain(|waiting| !waiting.answer.is_closed());
        }
        if self.waiting.len() < MOST_WAITING {
            self.waiting.push_back(Waiting { query, answer });
        } else {
            let text = format!("{MOST_WAITING} reads wait for the hub already: read less at once");
            let fault = Fault::retryable(code::HUB_BUSY, text, Duration::from_secs(1));
            // A caller that has gone away needs no answer.
            let _ = answer.send(Err(Failure::Refused(fault)));
        }
    }

    /// The next read to send, under this number.
    pub(super) fn next(&mut self, req: Req) -> Option<Request> {
        while self.asked.len() < MOST_ASKED {
            let waiting = self.waiting.pop_front()?;
            if waiting.answer.is_closed() {
                continue;
            }
            let request = match waiting.query.clone() {
                Query::Read(id) => Request::Read { req, id },
                Query::Log { query, page, limit } => Request::Log { req, query, page, limit },
                Query::Show(id) => Request::Show { req, id },
            };
            self.asked.insert(req, Asked { waiting, events: Vec::new() });
            return Some(request);
        }
        None
    }

    /// One event of an answer.
    pub(super) fn item(&mut self, req: Req, event: Event) {
        if let Some(asked) = self.asked.get_mut(&req)
            && asked.events.len() < MOST_EVENTS
        {
            asked.events.push(event);
        }
    }

    /// Gives the answer back if it wasn't awaited.
    pub(super) fn answered(&mut self, req: Req, answer: Answer) -> Option<Answer> {
        let Some(asked) = self.asked.remove(&req) else { return Some(answer) };
        // A caller that has gone away needs no answer.
        let _ = asked.waiting.answer.send(Ok(Found { events: asked.events, answer }));
        None
    }

    /// Gives the fault back if this answer wasn't awaited.
    pub(super) fn refused(&mut self, req: Req, fault: Fault) -> Result<(), Fault> {
        let Some(asked) = self.asked.remove(&req) else { return Err(fault) };
        // A caller that has gone away needs no answer.
        let _ = asked.waiting.answer.send(Err(Failure::Refused(fault)));
        Ok(())
    }

    /// What was asked is asked again on the next link, in the same order and before what came later.
    pub(super) fn link_down(&mut self) {
        for asked in std::mem::take(&mut self.asked).into_values().rev() {
            self.waiting.push_front(asked.waiting);
        }
    }

    pub(super) fn close(&mut self, fault: &Fault) -> usize {
        let asked = std::mem::take(&mut self.asked).into_values().map(|asked| asked.waiting);
        let mut count = 0;
        for waiting in asked.chain(std::mem::take(&mut self.waiting)) {
            count += usize::from(waiting.answer.send(Err(Failure::Closed(fault.clone()))).is_ok());
        }
        count
    }

    /// Whether nobody waits for an answer.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.iter().all(|waiting| waiting.answer.is_closed())
            && self.asked.values().all(|asked| asked.waiting.answer.is_closed())
    }
}
