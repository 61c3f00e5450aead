//! Where publishes go, and what a link can't send any more.

use std::sync::Arc;

use tokio::{sync::mpsc::error::TrySendError, time::Instant};

use super::{
    Fleet, parked,
    state::{Home, LinkId, Stage, Standing, State},
};
use crate::spoke::{command::Command, write::WriteCommand};

impl Fleet {
    /// The link stands so now. What it can't send goes to others, unless it is alone.
    pub(super) fn shift(&self, id: LinkId, standing: Standing, hand_over: impl FnOnce() -> Vec<Command>) {
        let mut state = self.state();
        if let Some(link) = state.links.get_mut(&id) {
            if link.standing == Standing::Up {
                link.heard_of = Instant::now();
            }
            // One that is new is so until its first dial has ended.
            if link.standing != Standing::New {
                link.standing = standing;
            }
        }
        // One that is given up isn't among them any more.
        let others = state.links.keys().any(|other| *other != id);
        if others && state.stage != Stage::Closing {
            for command in hand_over() {
                self.route(&mut state, command);
            }
            self.told_parked(&state);
        }
    }

    /// Has a command that isn't bound to a link go on where it can.
    pub(super) fn route(&self, state: &mut State, command: Command) {
        match state.home(&command) {
            Home::Link(port) => port.post(command),
            Home::Nowhere => {
                let Some(due) = state.parked.push(command) else { return };
                if std::mem::replace(&mut state.reaping, true) {
                    self.sooner.notify_one();
                } else {
                    tokio::spawn(parked::reap(self.me.clone(), self.sooner.clone(), due));
                }
            }
        }
    }

    pub(super) fn told_parked(&self, state: &State) {
        self.board.parked(state.parked.writes());
    }

    /// Hands a publish over, once its link has room for it. The error: the spoke is closed.
    pub(in crate::spoke) async fn write(&self, write: WriteCommand) -> Result<(), ()> {
        let mut command = Command::Write(write);
        loop {
            let port = {
                let mut state = self.state();
                match state.home(&command) {
                    Home::Nowhere if state.is_over() => return Err(()),
                    Home::Nowhere => {
                        self.route(&mut state, command);
                        self.told_parked(&state);
                        return Ok(());
                    }
                    Home::Link(port) => match port.commands.try_send(command) {
                        Ok(()) => return Ok(()),
                        Err(TrySendError::Full(back)) => {
                            command = back;
                            port
                        }
                        Err(TrySendError::Closed(_)) => return Err(()),
                    },
                }
            };
            let Ok(permit) = port.commands.reserve().await else { continue };
            let state = self.state();
            if matches!(state.home(&command), Home::Link(home) if Arc::ptr_eq(&home, &port)) {
                permit.send(command);
                return Ok(());
            }
        }
    }
}
