//! What a link's task and its dialer know of the fleet. They don't keep it alive: when every handle is gone, it is.

use std::sync::{Arc, Weak};

use tokio::time::Instant;

use super::{
    Board, Fleet,
    state::{LinkId, Standing},
};
use crate::{
    event::{Fault, Position},
    spoke::{
        Status,
        command::{Command, Key},
    },
    wire::{HubAddress, Welcome},
};

#[derive(Debug, Clone)]
pub(in crate::spoke) struct Crew {
    link: LinkId,
    fleet: Weak<Fleet>,
    board: Arc<Board>,
}

impl Crew {
    pub(super) fn new(link: LinkId, fleet: Weak<Fleet>, board: Arc<Board>) -> Self {
        Self { link, fleet, board }
    }

    /// The link is up. False: its hub has another one already.
    pub(in crate::spoke) fn admit(&self, welcome: &Welcome) -> bool {
        self.fleet.upgrade().is_none_or(|fleet| fleet.admit(self.link, welcome))
    }

    /// The link is down: what it can't send goes to others, if there are any.
    pub(in crate::spoke) fn down(&self, hand_over: impl FnOnce() -> Vec<Command>) {
        if let Some(fleet) = self.fleet.upgrade() {
            fleet.shift(self.link, Standing::Down, hand_over);
        }
    }

    /// The link's hub is stopping: nothing new is sent there.
    pub(in crate::spoke) fn drains(&self, hand_over: impl FnOnce() -> Vec<Command>) {
        if let Some(fleet) = self.fleet.upgrade() {
            fleet.shift(self.link, Standing::Draining, hand_over);
        }
    }

    /// A dial has failed.
    pub(in crate::spoke) fn tried(&self) {
        if let Some(fleet) = self.fleet.upgrade() {
            if let Some(link) = fleet.state().links.get_mut(&self.link)
                && link.standing == Standing::New
            {
                link.standing = Standing::Down;
            }
            self.board.changed();
        }
    }

    /// The hub refuses this spoke for good. True: all of them do.
    pub(in crate::spoke) fn refused(&self, fault: &Fault) -> bool {
        self.fleet.upgrade().is_none_or(|fleet| fleet.refused(self.link, fault))
    }

    /// A hub is there.
    pub(in crate::spoke) fn learn(&self, hub: HubAddress) {
        if let Some(fleet) = self.fleet.upgrade() {
            fleet.learn(hub, false);
        }
    }

    /// Whether the link is given up; else when to ask again, if ever.
    pub(in crate::spoke) fn gives_up(
        &self,
        standing: impl FnOnce() -> Vec<(Key, Position)>,
    ) -> Result<(), Option<Instant>> {
        self.fleet.upgrade().map_or(Err(None), |fleet| fleet.gives_up(self.link, standing))
    }

    pub(in crate::spoke) fn report(&self, status: Status) {
        self.board.report(self.link, status);
    }

    /// The link is no more.
    pub(in crate::spoke) fn leave(&self) {
        if let Some(fleet) = self.fleet.upgrade() {
            fleet.remove(&mut fleet.state(), self.link);
        }
    }

    /// The task has ended, and the spoke with it or not.
    pub(in crate::spoke) fn ended(&self, is_end: bool) {
        if is_end {
            self.board.end(self.link);
        } else {
            self.board.leave(self.link);
        }
    }
}
