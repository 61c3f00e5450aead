//! What [`Deliveries`] tell about themselves.

use actix::Handler;
use serde::Serialize;

use super::{
    Deliveries,
    group::GroupState,
    message::{Held, Holding},
};
use crate::actors::snapshot::{Snapshot, State};

/// The default group, and what is under way around it.
#[derive(Debug, Serialize)]
struct DeliveriesState {
    #[serde(flatten)]
    group: GroupState,
    /// Up to where everything has an outcome, as it was saved last.
    cursor: u64,
    /// Named groups there are.
    named_groups: usize,
    /// Consumers whose binding is being made.
    joining: usize,
}

impl Handler<Snapshot> for Deliveries {
    type Result = State;

    fn handle(&mut self, _: Snapshot, _: &mut Self::Context) -> Self::Result {
        let group = self.groups.default_group();
        State::of(&DeliveriesState {
            group: group.state(),
            cursor: group.saved(),
            named_groups: self.groups.named(),
            joining: self.joining.len(),
        })
    }
}

impl Handler<Holding> for Deliveries {
    type Result = Held;

    fn handle(&mut self, message: Holding, _: &mut Self::Context) -> Self::Result {
        Held(message.0.iter().map(|link| (*link, self.groups.held_by(*link))).collect())
    }
}
