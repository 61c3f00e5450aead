//! What a [`Keeper`] tells about itself.

use actix::Handler;
use serde::Serialize;

use super::{Keeper, pass::Report};
use crate::actors::snapshot::{Snapshot, State};

/// Its last pass.
#[derive(Debug, Serialize)]
struct KeeperState {
    /// Some domain's events expire or go.
    on: bool,
    /// A pass is under way.
    passing: bool,
    /// Passes since the start.
    passes: u64,
    /// Domains in which it knows how far it has looked; none while a pass is under way.
    domains: Option<usize>,
    /// What the last pass did.
    last: Option<Report>,
}

impl Handler<Snapshot> for Keeper {
    type Result = State;

    fn handle(&mut self, _: Snapshot, _: &mut Self::Context) -> Self::Result {
        State::of(&KeeperState {
            on: !self.config.policies.keeps_all(),
            passing: self.walk.is_none(),
            passes: self.passes,
            domains: self.walk.as_ref().map(|walk| walk.domains()),
            last: self.last.clone(),
        })
    }
}
