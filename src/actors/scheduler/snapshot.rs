//! What a [`Scheduler`] tells about itself.

use std::time::Instant;

use actix::Handler;
use serde::Serialize;

use super::{Scheduler, queue::QueueState};
use crate::actors::snapshot::{Snapshot, State};

/// What is near, and how the scheduler stands to the database.
#[derive(Debug, Serialize)]
struct SchedulerState {
    #[serde(flatten)]
    queue: QueueState,
    /// The same of recurring schedules.
    recurring: QueueState,
    /// The database is in trouble and left alone for so long, in milliseconds.
    rests_ms: Option<u64>,
    /// It runs nothing any more.
    drained: bool,
}

impl Handler<Snapshot> for Scheduler {
    type Result = State;

    fn handle(&mut self, _: Snapshot, _: &mut Self::Context) -> Self::Result {
        let rests = self.rest.map(|rest| rest.saturating_duration_since(Instant::now()));
        State::of(&SchedulerState {
            queue: self.queue.state(),
            recurring: self.recurring.state(),
            rests_ms: rests.map(|rest| u64::try_from(rest.as_millis()).unwrap_or(u64::MAX)),
            drained: self.drained,
        })
    }
}
