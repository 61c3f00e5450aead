//! What goes out on a link, and what it counts for while it waits.

use std::sync::Arc;

use bytes::Bytes;

use super::WindowPermit;
use crate::{
    actors::dispatched::Dispatched,
    event::{Event, Fault},
    wire::{Answer, RecurringState, Req, Sub, Token},
};

/// What a small frame counts for besides its payload, in bytes: its place in the queue and its allocations.
const FRAME: usize = 128;

/// What an event of a batch's answer counts for: about its JSON.
const PUBLISHED: usize = 64;

/// What a run to come counts for: two times and an id, as texts.
const RUN: usize = 192;

/// What an event that waits for its time counts for: its texts, at their longest.
const SCHEDULED: usize = 512;

/// An answer to one request.
#[derive(Debug)]
pub struct Answered {
    /// Which request.
    pub req: Req,
    /// How it ended.
    pub result: Result<Answer, Fault>,
    /// The place in the publish window that it frees once it's written.
    pub permit: Option<WindowPermit>,
}

impl Answered {
    /// What it counts for in a queue, in bytes: a peer can make answers long, by what it asks and by mistakes.
    fn weight(&self) -> usize {
        let text = match &self.result {
            Ok(Answer::Page(next)) => next.len(),
            Ok(Answer::Renewed(renewed)) => renewed.cert.len() + renewed.root.len(),
            Ok(Answer::Batch(published)) => published.len() * PUBLISHED,
            Ok(Answer::Trace(trace)) => {
                trace.attempts.iter().map(|attempt| FRAME + attempt.error.len()).sum()
            }
            Ok(Answer::Outcome(Some(ended))) => ended.error.len(),
            Ok(Answer::Pids { pids, next }) => {
                next.len() + pids.iter().map(|pid| size_of_val(pid) + pid.len()).sum::<usize>()
            }
            Ok(Answer::Schedules { events, next }) => next.len() + events.len() * SCHEDULED,
            Ok(Answer::Recurrings { states, next }) => {
                next.len() + states.iter().map(recurring).sum::<usize>()
            }
            Ok(Answer::RecurringShown { shown, data }) => {
                recurring(&shown.state) + shown.runs.len() * RUN + data.len()
            }
            Ok(_) => 0,
            Err(fault) => fault.code.len() + fault.message.len(),
        };
        size_of::<Self>() + text
    }
}

/// What a recurring schedule counts for, its data not counted.
fn recurring(state: &RecurringState) -> usize {
    size_of::<RecurringState>() + state.name.len() + state.what.rule.len() + state.what.zone.len() + FRAME
}

/// An event for the subscriptions of a link.
#[derive(Debug)]
pub struct EventPush {
    /// Which subscriptions match.
    pub subs: Vec<Sub>,
    /// The event.
    pub event: Arc<Dispatched>,
}

impl EventPush {
    /// What an event for subscriptions counts for in a queue, in bytes.
    #[must_use]
    pub fn weight_of(event: &Dispatched) -> usize {
        FRAME + event.weight()
    }
}

/// A claim for a consumer of a link.
#[derive(Debug)]
pub struct ClaimPush {
    /// Which consumer.
    pub sub: Sub,
    /// Names the claim.
    pub token: Token,
    /// 1 at the first delivery.
    pub attempt: u32,
    /// The event.
    pub event: Arc<Dispatched>,
}

/// What the writer of a link is to send.
#[derive(Debug)]
pub enum Frame {
    /// Answers to requests.
    Answers(Vec<Answered>),
    /// One event of an answer that has several.
    Item(Req, Box<Event>),
    /// Events for subscriptions, v1.
    Events(Vec<EventPush>),
    /// Claims.
    Claims(Vec<ClaimPush>),
    /// Events for npm links.
    Npm(Vec<Arc<Dispatched>>),
    /// Bytes that are encoded already.
    Raw(Bytes),
    /// The last words: after them the link is closed. Without words for npm links.
    Bye(Option<Fault>),
}

impl Frame {
    /// What it counts for in a queue, in bytes.
    pub(super) fn weight(&self) -> usize {
        let events = |events: usize, weights: usize| events * FRAME + weights;
        match self {
            Frame::Answers(answers) => FRAME + answers.iter().map(Answered::weight).sum::<usize>(),
            Frame::Item(_, event) => FRAME + event.weight(),
            Frame::Events(pushes) => {
                events(pushes.len(), pushes.iter().map(|push| push.event.weight()).sum())
            }
            Frame::Claims(pushes) => {
                events(pushes.len(), pushes.iter().map(|push| push.event.weight()).sum())
            }
            Frame::Npm(pushes) => pushes.len() * 4 * FRAME,
            Frame::Raw(bytes) => FRAME + bytes.len(),
            Frame::Bye(_) => FRAME,
        }
    }
}
