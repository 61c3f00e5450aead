//! Waits: asked in slices, and asked again, with the rest of the time, when a link is lost.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    event::{Event, Fault, Retry, code},
    spoke::command::{Failure, Found, WaitCommand, Wanted},
    wire::{Answer, OutcomeOptions, Req, Request, Wait},
};

/// Waits asked at once, which is what a hub takes; further ones wait.
const MOST_ASKED: usize = 1000;
/// Waits that wait for a place at most.
const MOST_WAITING: usize = 4096;
/// The longest wait that is asked in one go. The hub can't be told that a caller has gone away: a wait that was given
/// up holds its place there no longer than this. Nothing is missed in between, since what is stored counts.
const SLICE: Duration = Duration::from_secs(30);
/// The shortest pause after a hub said that it can't wait now.
const AGAIN: Duration = Duration::from_millis(10);

/// All waits that have no end yet. Their callers keep the time and give up by themselves.
#[derive(Debug, Default)]
pub(super) struct Waits {
    waiting: VecDeque<WaitCommand>,
    asked: BTreeMap<Req, Asked>,
    /// Until then the hub wants no waits.
    held_until: Option<Instant>,
}

#[derive(Debug)]
struct Asked {
    wait: WaitCommand,
    /// Whether the hub was asked for all of the rest of the time.
    is_last: bool,
    event: Option<Event>,
}

impl Waits {
    pub(super) fn add(&mut self, wait: WaitCommand) {
        if self.waiting.len() >= MOST_WAITING {
            self.waiting.retain(|wait| !wait.answer.is_closed());
        }
        if self.waiting.len() < MOST_WAITING {
            self.waiting.push_back(wait);
        } else {
            let text = format!("{MOST_WAITING} waits have no place at the hub yet: wait for less at once");
            let fault = Fault::retryable(code::HUB_BUSY, text, Duration::from_secs(1));
            // A caller that has gone away needs no answer.
            let _ = wait.answer.send(Err(Failure::Refused(fault)));
        }
    }

    /// The next wait to send, under this number.
    pub(super) fn next(&mut self, req: Req, now: Instant) -> Option<Request> {
        if self.held_until.is_some_and(|until| now < until) {
            return None;
        }
        while self.asked.len() < MOST_ASKED {
            let wait = self.waiting.pop_front()?;
            let rest = wait.deadline.saturating_duration_since(now);
            if wait.answer.is_closed() || rest.is_zero() {
                // The caller's own clock has told it, or does so now.
                continue;
            }
            let timeout = whole(rest.min(SLICE));
            let request = match wait.wanted.clone() {
                Wanted::Event(wanted) => Request::Wait { req, wait: Wait { wanted, timeout } },
                Wanted::Outcome(id, group) => {
                    let timeout_ms = crate::wire::retry_ms(timeout);
                    Request::Outcome { req, id, options: OutcomeOptions { group, timeout_ms } }
                }
            };
            self.asked.insert(req, Asked { wait, is_last: rest <= SLICE, event: None });
            return Some(request);
        }
        None
    }

    /// The event of an answer.
    pub(super) fn item(&mut self, req: Req, event: Event) {
        if let Some(asked) = self.asked.get_mut(&req) {
            asked.event = Some(event);
        }
    }

    /// Gives the answer back if it wasn't awaited.
    pub(super) fn answered(&mut self, req: Req, answer: Answer) -> Option<Answer> {
        let Some(Asked { wait, event, .. }) = self.asked.remove(&req) else { return Some(answer) };
        // A caller that has gone away needs no answer.
        let _ = wait.answer.send(Ok(Found { events: event.into_iter().collect(), answer }));
        None
    }

    /// Gives the fault back if this answer wasn't awaited.
    pub(super) fn refused(&mut self, req: Req, fault: Fault, now: Instant) -> Result<(), Fault> {
        let Some(Asked { wait, is_last, .. }) = self.asked.remove(&req) else { return Err(fault) };
        if fault.code == code::WAIT_TIMEOUT && !is_last {
            self.waiting.push_back(wait);
        } else if let Retry::After(pause) = fault.retry {
            // It says something of the hub, hardly of the one wait.
            self.held_until = self.held_until.max(Some(now + pause.max(AGAIN)));
            self.waiting.push_front(wait);
        } else {
            // A caller that has gone away needs no answer.
            let _ = wait.answer.send(Err(Failure::Refused(fault)));
        }
        Ok(())
    }

    /// What was asked is asked again on the next link, in the same order and before what came later.
    pub(super) fn link_down(&mut self) {
        self.held_until = None;
        for asked in std::mem::take(&mut self.asked).into_values().rev() {
            self.waiting.push_front(asked.wait);
        }
    }

    /// Ends a pause that is over.
    pub(super) fn expire(&mut self, now: Instant) {
        self.held_until = self.held_until.filter(|until| now < *until);
    }

    /// When to look again, if ever.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.held_until.filter(|_| !self.waiting.is_empty())
    }

    /// Tells every caller that the spoke is closed; says how many there were.
    pub(super) fn close(&mut self, fault: &Fault) -> usize {
        let asked = std::mem::take(&mut self.asked).into_values().map(|asked| asked.wait);
        let mut count = 0;
        for wait in asked.chain(std::mem::take(&mut self.waiting)) {
            count += usize::from(wait.answer.send(Err(Failure::Closed(fault.clone()))).is_ok());
        }
        count
    }
}

/// In whole milliseconds, none of them cut: what crosses the link.
fn whole(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX))
}
