//! What another link takes over.

use std::time::Duration;

use super::{Session, waits::Waits};
use crate::{
    event::{Fault, Position, code},
    spoke::command::{Command, Key},
};

impl Session {
    /// What waits and isn't bound to this link, in its order, for another one to take.
    pub(in crate::spoke) fn hand_over(&mut self) -> Vec<Command> {
        let writes = self.publishes.hand_over().into_iter().map(Command::Write);
        if self.limits.is_some() {
            // A hub that is stopping still answers what it is asked.
            return writes.collect();
        }
        let fault = self.lost_for_now();
        self.subscriptions.hand_over(&fault);
        self.consumers.hand_over(&fault);
        writes.chain(self.queries.hand_over(&fault).into_iter().map(Command::Query)).collect()
    }

    /// The link is given up, its hub or it is no more: what all links have goes on without it.
    pub(in crate::spoke) fn abandon(&mut self) {
        self.waits = Waits::default();
        self.subscriptions.abandon();
        self.consumers.abandon();
    }

    /// Where subscriptions stand at this hub.
    pub(in crate::spoke) fn standing(&self) -> Vec<(Key, Position)> {
        self.subscriptions.standing()
    }

    /// Whether the hub of this link is stopping.
    pub(in crate::spoke) fn is_draining(&self) -> bool {
        self.hub_drains
    }

    fn lost_for_now(&self) -> Fault {
        let text = self.trouble.as_deref().unwrap_or("there is no link");
        Fault::retryable(code::LINK_LOST, text, Duration::ZERO)
    }
}
