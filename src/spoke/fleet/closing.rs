//! The end of all links.

use std::sync::PoisonError;

use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};

use super::{Fleet, state::Stage};
use crate::spoke::{
    Drained, Status,
    command::{Command, Remark, closed},
};

impl Fleet {
    /// Brings all that is under way to its end; says what was left.
    pub(in crate::spoke) async fn close(&self) -> Drained {
        let by = Instant::now() + self.config.close_deadline;
        if self.stop_consumers() {
            // With a link nothing is parked.
            let idle = |status: &Status| {
                status.claims_held == 0 && (status.hub.is_some() || status.publishes_waiting == 0)
            };
            // What is left at the deadline is counted below.
            let _ = timeout_at(by, self.board.when(idle)).await;
        }
        let (ports, mut drained) = {
            let mut state = self.state();
            state.stage = Stage::Closing;
            let ports: Vec<_> = state.links.values().map(|link| link.port.clone()).collect();
            (ports, state.parked.close(&closed()))
        };
        let mut answers = Vec::new();
        for port in ports {
            let (answer, answered) = oneshot::channel();
            // Behind what was published before. One that has ended needs no word.
            let _ = port.commands.send(Command::Close { by, answer }).await;
            answers.push(answered);
        }
        for answered in answers {
            // One that has ended before has nothing left.
            let left = answered.await.unwrap_or_default();
            drained.publishes += left.publishes;
            drained.claims += left.claims;
            drained.requests += left.requests;
        }
        drained
    }

    /// With several links consumers are stopped on all before any of them ends, since a handler may publish anywhere.
    fn stop_consumers(&self) -> bool {
        let mut state = self.state();
        if state.links.len() < 2 || state.stage != Stage::Open {
            return false;
        }
        state.stage = Stage::Stopping;
        for key in std::mem::take(&mut state.consumers).into_keys() {
            state.links.values().for_each(|link| link.port.remark(Remark::Consumer(key)));
        }
        true
    }
}

/// Every handle is gone: what they left behind is brought to its end by the links.
impl Drop for Fleet {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let parked = state.parked.take();
        if let Some(link) = state.links.values().next() {
            parked.into_iter().for_each(|command| link.port.post(command));
        }
    }
}
