//! What a [`Collector`] tells about itself.

use actix::Handler;
use serde::Serialize;

use super::{Collector, rounds::RoundsState};
use crate::actors::snapshot::{Snapshot, State};

/// How far it has looked, and who waits.
#[derive(Debug, Serialize)]
struct CollectorState {
    #[serde(flatten)]
    rounds: RoundsState,
    /// Events that break the rules, as far as it keeps them in mind.
    invalid: usize,
    /// It collects nothing any more.
    drained: bool,
}

impl Handler<Snapshot> for Collector {
    type Result = State;

    fn handle(&mut self, _: Snapshot, _: &mut Self::Context) -> Self::Result {
        State::of(&CollectorState {
            rounds: self.rounds.state(),
            invalid: self.invalid.len(),
            drained: self.drained,
        })
    }
}
