//! What is in hand: events that are worked on at once, and what became of the others.

use std::time::Duration;

use eventflow::{
    event::code,
    spoke::{Claim, Claims, Nack},
};
use tokio::task::{JoinError, JoinSet};

use super::{
    counts::{Counts, Ended},
    work::{claim_id, failed, settled, work},
};
use crate::{
    commands::Commands,
    end::End,
    failure::Failure,
    output::{Printer, remark},
    stop::Stop,
};

/// What is done with an event.
pub(super) enum Work {
    /// With the time that each command may take.
    Run(Commands, Option<Duration>),
    Print(Printer),
}

/// The events in hand.
pub(super) struct Desk {
    work: Work,
    at_once: usize,
    tasks: JoinSet<Ended>,
    pub(super) counts: Counts,
    /// Commands that the second signal ended.
    pub(super) killed: u64,
    stop: Stop,
}

impl Desk {
    pub(super) fn new(work: Work, at_once: usize, stop: Stop) -> Self {
        Self { work, at_once, tasks: JoinSet::new(), counts: Counts::default(), killed: 0, stop }
    }

    pub(super) async fn take_work(&mut self, claims: &mut Claims, end: &End) -> Result<(), Failure> {
        let stop = self.stop.clone();
        let over = end.elapsed();
        tokio::pin!(over);
        let wanted = end.count.unwrap_or(u64::MAX);
        while self.counts.finished() < wanted {
            let begun = self.counts.finished() + self.tasks.len() as u64;
            tokio::select! {
                biased;
                () = stop.requested() => break,
                () = &mut over => break,
                Some(ended) = self.tasks.join_next() => self.note(ended)?,
                claim = claims.next(), if self.tasks.len() < self.at_once && begun < wanted => match claim {
                    Some(claim) => self.begin(claim)?,
                    None => return Err(lost(claims)),
                },
            }
        }
        Ok(())
    }

    /// Hands back what was not begun and waits for what was.
    pub(super) async fn drain(&mut self, claims: &Claims) -> Result<(), Failure> {
        let mut result = claims.stop().await.map_err(Failure::from);
        while let Some(ended) = self.tasks.join_next().await {
            // The first one is told; the others are waited for all the same.
            result = result.and(self.note(ended));
        }
        result
    }

    /// After the first signal.
    pub(super) fn tell_what_runs(&self) {
        match (&self.work, self.tasks.len()) {
            (Work::Print(_), _) | (_, 0) => {}
            (_, 1) => remark("waiting for 1 running command; Ctrl-C again cuts it short"),
            (_, count) => {
                remark(&format!("waiting for {count} running commands; Ctrl-C again cuts them short"))
            }
        }
    }

    /// After the second signal: each piece of work hears it by itself and kills its command.
    pub(super) async fn cut_short(&mut self) {
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(failure) = self.note(ended) {
                failure.tell();
            }
        }
        match self.killed {
            0 => remark("cut short"),
            1 => remark("cut short: 1 command killed, its event was handed back"),
            killed => remark(&format!("cut short: {killed} commands killed, their events were handed back")),
        }
    }

    fn begin(&mut self, claim: Claim) -> Result<(), Failure> {
        match &mut self.work {
            Work::Run(commands, limit) => {
                let (command, stop) = (commands.get(&claim.event().name).cloned(), self.stop.clone());
                let limit = *limit;
                self.tasks.spawn(async move {
                    match command {
                        Ok(command) => work(claim, &command, limit, &stop).await,
                        Err(unhandled) => failed(claim, Nack::new(unhandled.to_string()), None, &stop).await,
                    }
                });
            }
            Work::Print(printer) => {
                // Visible before it is done; a claim that is dropped here goes back to the hub.
                printer.claimed(claim.event(), claim.attempt())?;
                printer.flush()?;
                let stop = self.stop.clone();
                self.tasks.spawn(async move {
                    let id = claim_id(&claim);
                    settled(&id, claim.ack(), Ended::Done, &stop).await
                });
            }
        }
        Ok(())
    }

    fn note(&mut self, ended: Result<Ended, JoinError>) -> Result<(), Failure> {
        match ended {
            Ok(Ended::Done) => self.counts.done += 1,
            Ok(Ended::Failed) => self.counts.failed += 1,
            Ok(Ended::Killed) => self.killed += 1,
            Ok(Ended::HandedBack) => self.counts.handed_back += 1,
            Ok(Ended::TooLate) => self.counts.too_late += 1,
            Ok(Ended::Unconfirmed) => self.counts.unconfirmed += 1,
            Ok(Ended::Unrunnable(sentence)) => {
                self.counts.handed_back += 1;
                return Err(Failure::new(
                    code::CONSUME_FAILED,
                    format!("{sentence}: the event was handed back"),
                ));
            }
            Err(error) => {
                return Err(Failure::new(code::INTERNAL, format!("the work on an event ended: {error}")));
            }
        }
        Ok(())
    }
}

fn lost(claims: &Claims) -> Failure {
    match claims.fault() {
        Some(fault) => Failure::new(&fault.code, format!("the consumer ended: {}", fault.message)),
        None => Failure::new(code::CLOSED, "the consumer ended"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::Run;

    fn desk() -> Desk {
        let commands = Commands::of(Run { exec: Some("true".to_owned()), on: Vec::new() }).unwrap();
        Desk::new(Work::Run(commands, None), 1, Stop::listen().unwrap())
    }

    #[tokio::test]
    async fn a_command_that_cant_be_run_ends_the_consumer() {
        let failure = desk().note(Ok(Ended::Unrunnable("no shell".to_owned()))).unwrap_err();
        assert!(
            matches!(failure, Failure::Told { sentence, .. } if sentence == "no shell: the event was handed back")
        );
    }
}
