//! Recurring schedules: what the journal adds to their runs, and whom it tells.

use std::sync::Arc;

use actix::Handler;
use tokio::sync::oneshot;

use super::{
    Journal,
    batch::{ReplyTo, Told, mismatch},
    due::dispatched,
    sequence::Sequence,
};
use crate::{
    actors::{dispatched::Dispatched, mail::mail},
    event::{Fault, RecurringName},
    metrics::HubMetrics,
    store::{Due, Recurred, StoreError, Write, Written},
    wire::{Answer, Made},
};

/// Places that a run of recurring schedules gets beyond one for each: for those that make up for what they missed.
const SPARE: usize = 256;

/// Publishes what recurring schedules are due for, and moves them on. One at a time.
#[derive(Debug)]
pub struct RunRecurring {
    /// Which ones.
    pub due: Vec<Due<RecurringName>>,
    /// Gets the number of those that were due.
    pub done: oneshot::Sender<Result<usize, Fault>>,
}
mail!(RunRecurring => ());

impl Handler<RunRecurring> for Journal {
    type Result = ();

    fn handle(&mut self, message: RunRecurring, ctx: &mut Self::Context) {
        let RunRecurring { due, done } = message;
        let bytes = due.iter().map(|due| due.bytes).sum();
        let mut names: Vec<RecurringName> = due.into_iter().map(|due| due.id).collect();
        // One may be there with an older time too.
        names.sort_unstable();
        names.dedup();
        let write = Write::RunRecurring { names, places: Vec::new(), hub: self.config.hub.clone() };
        self.enqueue(write, bytes, ReplyTo::Recurring(done));
        self.pump(ctx);
    }
}

/// Places for the events of so many schedules; those that aren't taken leave holes.
pub(super) fn places(schedules: usize, sequence: &mut Sequence, now: u64) -> Vec<(u64, i64)> {
    let place = |_| {
        let place = sequence.next(now);
        (place.seq, place.timestamp)
    };
    (0..schedules + SPARE).map(place).collect()
}

/// The answer to whoever made or changed a recurring schedule, or had it run.
pub(super) fn changed(written: Written, told: &mut Told, metrics: &HubMetrics) -> Result<Answer, Fault> {
    match written {
        Written::Recurring { next, made } => {
            let due = next.as_ref().map(|next| next.due);
            if made == Made::Duplicate {
                metrics.duplicates.inc();
            } else {
                told.advanced.extend(next);
            }
            Ok(Answer::Recurring { next: due, made })
        }
        Written::Changed(next) => {
            told.advanced.extend(next);
            Ok(Answer::Done)
        }
        Written::RanExtra(event, published) => {
            if let Some(event) = event {
                metrics.published.inc();
                metrics.recurring_runs.inc();
                told.committed.push(Arc::new(Dispatched::new(*event, published.seq)));
            } else {
                metrics.duplicates.inc();
            }
            Ok(Answer::Published(published))
        }
        other => Err(mismatch(&other)),
    }
}

/// What ran is dispatched like any publish; returns how many schedules that were.
pub(super) fn ran(
    result: Result<Written, StoreError>,
    told: &mut Told,
    metrics: &HubMetrics,
) -> Result<usize, Fault> {
    let recurred = match result {
        Ok(Written::Recurred(recurred)) => recurred,
        Ok(other) => return Err(mismatch(&other)),
        Err(error) => return Err(error.into()),
    };
    let count = recurred.len();
    for Recurred { name, ran, late, left_out, next, broken } in recurred {
        metrics.recurring_runs.add(ran.len() as u64);
        metrics.recurring_missed.add(late);
        metrics.recurring_left_out.add(left_out);
        if left_out > 0 {
            tracing::warn!(recurring = %name, left_out, "runs were missed, and are left out");
        }
        if let Some(reason) = broken {
            tracing::error!(recurring = %name, reason, "a recurring schedule rests until it is made anew");
        }
        told.committed.extend(ran.into_iter().map(|ran| dispatched(ran, metrics)));
        told.advanced.extend(next);
    }
    Ok(count)
}
