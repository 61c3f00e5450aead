//! What an [`Announcer`] tells about itself.

use actix::Handler;
use serde::Serialize;

use super::Announcer;
use crate::actors::snapshot::{Snapshot, State};

/// Where it says that the hub is, and what it had to take back.
#[derive(Debug, Serialize)]
struct AnnouncerState {
    /// Host that peers are told.
    host: String,
    /// Port that peers are told.
    port: u16,
    /// A look at the hub's own row is under way.
    looking: bool,
    /// How often the mark that this hub has stopped was taken back.
    reopened: u64,
}

impl Handler<Snapshot> for Announcer {
    type Result = State;

    fn handle(&mut self, _: Snapshot, _: &mut Self::Context) -> Self::Result {
        State::of(&AnnouncerState {
            host: self.config.host.clone(),
            port: self.config.port,
            looking: self.looking,
            reopened: self.reopened,
        })
    }
}
