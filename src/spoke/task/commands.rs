//! What handles and other links give this one to do.

use tokio::{sync::oneshot, time::Instant};

use super::{Closing, TURN, Task};
use crate::spoke::{
    Drained,
    command::{Command, Remark},
};

impl Task {
    pub(super) fn take_commands(&mut self, first: Option<Command>) {
        let Some(first) = first else {
            // Every handle is gone: what they left behind is brought to its end.
            self.orphaned = true;
            self.begin_close(Instant::now() + self.close_deadline, None);
            return;
        };
        let now = Instant::now();
        self.take_command(first, now);
        for _ in 1..TURN {
            match self.commands.try_recv() {
                Ok(command) => self.take_command(command, now),
                Err(_) => break,
            }
        }
    }

    /// What was moved here comes before what was sent here after that.
    fn take_command(&mut self, command: Command, now: Instant) {
        while let Ok(moved) = self.posted.try_recv() {
            self.take(moved, now);
        }
        self.take(command, now);
    }

    pub(super) fn take_posted(&mut self, first: Command) {
        let now = Instant::now();
        self.take(first, now);
        for _ in 1..TURN {
            match self.posted.try_recv() {
                Ok(command) => self.take(command, now),
                Err(_) => break,
            }
        }
    }

    pub(super) fn take(&mut self, command: Command, now: Instant) {
        match command {
            Command::Close { by, answer } => self.begin_close(by, Some(answer)),
            Command::Reach(hub) => self.reach.push(hub),
            Command::End(fault) => self.end = Some(fault),
            command => self.session.command(command, now),
        }
    }

    /// What this link can't send goes to others, if there are any: what the session has, and what comes after it.
    pub(super) fn hand_over(&mut self) {
        let Self { session, commands, posted, crew, .. } = self;
        let (mut bound, is_draining) = (Vec::new(), session.is_draining());
        let all = || {
            let mut moving = session.hand_over();
            while let Ok(command) = posted.try_recv() {
                bound.push(command);
            }
            while let Ok(command) = commands.try_recv() {
                bound.push(command);
            }
            moving.extend(bound.extract_if(.., |command| matches!(command, Command::Write(_))));
            moving
        };
        if is_draining {
            crew.drains(all);
        } else {
            crew.down(all);
        }
        let now = Instant::now();
        bound.into_iter().for_each(|command| self.take(command, now));
    }

    pub(super) fn take_remarks(&mut self, first: Remark) {
        self.session.remark(first);
        for _ in 1..TURN {
            match self.remarks.try_recv() {
                Ok(remark) => self.session.remark(remark),
                Err(_) => break,
            }
        }
    }

    pub(super) fn begin_close(&mut self, by: Instant, caller: Option<oneshot::Sender<Drained>>) {
        let closing = self.closing.get_or_insert_with(|| Closing { by, callers: Vec::new() });
        closing.callers.extend(caller);
        self.session.begin_close();
    }
}
