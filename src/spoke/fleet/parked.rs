//! What waits for any link at all.

use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use super::Fleet;
use crate::{
    event::Fault,
    spoke::{
        Drained, PublishError,
        command::{Command, Failure, deadline_in},
        write::WriteCommand,
    },
};

/// Publishes and queries, in their order. Publishes are bounded by their buffer; of a query the caller waits.
#[derive(Debug, Default)]
pub(super) struct Parked {
    waiting: VecDeque<Command>,
    /// Publishes among them.
    writes: usize,
    /// The soonest deadline.
    due: Option<Instant>,
}

impl Parked {
    /// Gives the deadline if it comes before all others.
    pub(super) fn push(&mut self, command: Command) -> Option<Instant> {
        let due = match &command {
            Command::Write(write) => {
                self.writes += 1;
                write.deadline
            }
            // Its caller keeps the time.
            _ => deadline_in(Duration::MAX),
        };
        self.waiting.push_back(command);
        let sooner = self.due.is_none_or(|other| due < other);
        sooner.then(|| *self.due.insert(due))
    }

    pub(super) fn take(&mut self) -> VecDeque<Command> {
        std::mem::take(self).waiting
    }

    pub(super) fn writes(&self) -> usize {
        self.writes
    }

    /// Tells the callers whose deadline has passed; when to look again, if ever.
    fn expire(&mut self, now: Instant) -> Option<Instant> {
        for command in self.take() {
            match command {
                Command::Write(WriteCommand { deadline, waited, last, answer, .. }) if deadline <= now => {
                    // A caller that has gone away needs no answer.
                    let _ = answer.send(Err(PublishError::TimedOut { waited, last }));
                }
                Command::Query(query) if query.answer.is_closed() => {}
                command => _ = self.push(command),
            }
        }
        self.due
    }

    /// Tells every caller that the spoke is closed; says how many there were.
    pub(super) fn close(&mut self, fault: &Fault) -> Drained {
        let mut left = Drained::default();
        for command in self.take() {
            match command {
                Command::Write(write) => {
                    left.publishes += 1;
                    let _ = write.answer.send(Err(PublishError::Closed(fault.clone())));
                }
                Command::Query(query) => {
                    let told = query.answer.send(Err(Failure::Closed(fault.clone())));
                    left.requests += usize::from(told.is_ok());
                }
                _ => {}
            }
        }
        left
    }
}

/// Looks after the deadlines for as long as anything is parked.
pub(super) async fn reap(fleet: Weak<Fleet>, sooner: Arc<Notify>, mut due: Instant) {
    loop {
        tokio::select! {
            () = sleep_until(due) => {}
            () = sooner.notified() => {}
        }
        let Some(fleet) = fleet.upgrade() else { return };
        let mut state = fleet.state();
        match state.parked.expire(Instant::now()) {
            Some(next) => due = next,
            None => {
                state.reaping = false;
                fleet.told_parked(&state);
                return;
            }
        }
        fleet.told_parked(&state);
    }
}
