//! Events that are published at their time: what the journal adds to them, and whom it tells.

use std::{sync::Arc, time::Duration};

use actix::Handler;
use tokio::sync::oneshot;

use super::{
    Journal,
    batch::{ReplyTo, mismatch},
    sequence::Sequence,
};
use crate::{
    actors::{clock::now_millis, dispatched::Dispatched, mail::mail},
    event::{Event, Fault},
    metrics::HubMetrics,
    store::{Due, Ran, Running, StoreError, Write, Written},
    wire::Answer,
};

/// Publishes what is due, once. One at a time.
#[derive(Debug)]
pub struct RunDue {
    /// The events, in the order in which they are to run.
    pub due: Vec<Due>,
    /// Gets the number of those that ran.
    pub done: oneshot::Sender<Result<usize, Fault>>,
}
mail!(RunDue => ());

impl Handler<RunDue> for Journal {
    type Result = ();

    fn handle(&mut self, message: RunDue, ctx: &mut Self::Context) {
        let RunDue { due, done } = message;
        let bytes = due.iter().map(|due| due.bytes).sum();
        let events = due.into_iter().map(|due| Running { id: due.id, seq: 0, timestamp: 0 }).collect();
        let write = Write::RunDue { events, hub: self.config.hub.clone() };
        self.enqueue(write, bytes, ReplyTo::Scheduler(done));
        self.pump(ctx);
    }
}

/// When an event is stored that gets its place in the sequence later: `now` is in microseconds.
pub(super) fn stored_at(now: u64) -> i64 {
    i64::try_from(now / 1_000).unwrap_or(i64::MAX)
}

/// What the scheduler is to be told of an event.
pub(super) fn of(event: &Event, due: i64) -> Due {
    Due { due, id: event.id.clone(), bytes: event.data.as_str().len() }
}

/// Gives places to what runs, in its order; those that don't run leave holes.
pub(super) fn place(events: &mut [Running], sequence: &mut Sequence, now: u64) {
    for running in events {
        let place = sequence.next(now);
        running.seq = place.seq;
        running.timestamp = place.timestamp;
    }
}

/// The answer to a schedule; a new one is told to the scheduler.
pub(super) fn scheduled(
    due: Due,
    result: Result<Written, StoreError>,
    told: &mut Vec<Due>,
    metrics: &HubMetrics,
) -> Result<Answer, Fault> {
    match result {
        Ok(Written::Scheduled { due: at, fresh, replaced }) => {
            if replaced {
                metrics.schedules_waiting.dec();
            }
            if fresh {
                metrics.schedules_waiting.inc();
                told.push(due);
            } else {
                metrics.duplicates.inc();
            }
            Ok(Answer::Scheduled { due: at, fresh })
        }
        Ok(other) => Err(mismatch(&other)),
        Err(error) => Err(error.into()),
    }
}

/// What ran is dispatched like any publish; returns how many.
pub(super) fn ran(
    result: Result<Written, StoreError>,
    committed: &mut Vec<Arc<Dispatched>>,
    metrics: &HubMetrics,
) -> Result<usize, Fault> {
    match result {
        Ok(Written::Ran(ran)) => {
            let count = ran.len();
            committed.extend(ran.into_iter().map(|ran| dispatch(ran, metrics)));
            Ok(count)
        }
        Ok(other) => Err(mismatch(&other)),
        Err(error) => Err(error.into()),
    }
}

fn dispatch(ran: Ran, metrics: &HubMetrics) -> Arc<Dispatched> {
    metrics.schedules_executed.inc();
    metrics.schedules_waiting.dec();
    dispatched(ran, metrics)
}

/// An event that was due and is published now.
pub(super) fn dispatched(ran: Ran, metrics: &HubMetrics) -> Arc<Dispatched> {
    metrics.published.inc();
    let late = now_millis().saturating_sub(ran.due);
    metrics.schedule_lateness.record(Duration::from_millis(u64::try_from(late).unwrap_or(0)));
    Arc::new(Dispatched::new(ran.event, ran.seq))
}
