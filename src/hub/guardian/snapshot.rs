//! What a [`Guardian`] tells about itself.

use std::time::Instant;

use actix::Handler;
use serde::Serialize;

use super::{FAILURE_WINDOW, FAILURES, Guardian};
use crate::actors::snapshot::{Snapshot, Stall, State};

impl Handler<Stall> for Guardian {
    type Result = ();

    fn handle(&mut self, message: Stall, _: &mut Self::Context) {
        if let Some(core) = self.core.borrow().as_ref() {
            core.registry.signal(message);
        }
    }
}

/// The core and its failures.
#[derive(Debug, Serialize)]
struct GuardianState {
    /// Cores made since the start, before this one.
    generation: u64,
    /// Actors of the core that run.
    core_alive: usize,
    /// Failures of the core within the last minute.
    recent_failures: usize,
    /// Beyond so many the hub ends.
    recent_failures_limit: usize,
    /// A new core is being made.
    restarting: bool,
    /// The hub stops.
    draining: bool,
    /// Threads that links are spread over.
    link_threads: usize,
}

impl Handler<Snapshot> for Guardian {
    type Result = State;

    fn handle(&mut self, _: Snapshot, _: &mut Self::Context) -> Self::Result {
        let now = Instant::now();
        let recent = self.failures.iter().filter(|at| now.duration_since(**at) < FAILURE_WINDOW);
        State::of(&GuardianState {
            generation: self.generation,
            core_alive: self.members,
            recent_failures: recent.count(),
            recent_failures_limit: FAILURES,
            restarting: self.core.borrow().is_none() && !self.draining,
            draining: self.draining,
            link_threads: self.arbiters.len(),
        })
    }
}
