//! `eventflow consume`: work on events, by a command or by printing them.

use std::sync::Arc;

use eventflow::{
    event::code,
    spoke::{self, Claim, Claims, SettleError, SpokeConfig},
};
use tokio::task::{JoinError, JoinSet};

use crate::{
    arguments::{Consume, End},
    connect,
    exec::{self, Job, Verdict},
    failure::{CUT_SHORT, Failure, with_code},
    output::{Printer, remark},
    stop::Stop,
    subscribe::{elapsed, in_time},
};

/// Events that are asked for ahead of the work.
const CREDIT: u32 = 64;

/// Consumes until a signal, the count or the time is reached; then ends what is in hand.
pub(crate) async fn run(
    arguments: Consume,
    config: SpokeConfig,
    printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    let Consume { domain, name, exec, concurrency, end } = arguments;
    // No more than will be worked on, so that others can have the rest.
    let wanted = end.count.map_or(u32::MAX, |count| u32::try_from(count).unwrap_or(u32::MAX));
    let concurrency = concurrency.min(wanted);
    let credit = CREDIT.min(wanted).max(concurrency);
    let spoke = connect::connect(config, &stop).await?;
    let consume = spoke::Consume::new(domain, name).concurrency(concurrency).credit(credit);
    let mut claims = spoke.claims(consume).await?;
    // To print is done in order; only the acks are then under way, up to the credit.
    let (at_once, work) = match exec {
        Some(command) => (concurrency, Work::Run(command.into())),
        None => (credit, Work::Print(printer)),
    };
    let mut desk = Desk { work, at_once: at_once as usize, tasks: JoinSet::new(), counts: Counts::default() };

    let ended = desk.take_work(&mut claims, &end, &stop).await;
    let ended = tokio::select! {
        drained = desk.drain(&claims) => ended.and(drained),
        () = stop.forced() => {
            desk.tasks.shutdown().await;
            return Err(CUT_SHORT);
        }
    };
    drop(claims);
    spoke.close().await;
    remark(&desk.counts.line());
    ended?;
    in_time(&end, desk.counts.finished())?;
    if end.count.is_some() && desk.counts.failed > 0 { Err(Failure::Silent { exit: 1 }) } else { Ok(()) }
}

enum Work {
    Run(Arc<str>),
    Print(Printer),
}

/// What became of the events so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Counts {
    done: u64,
    failed: u64,
    /// Neither: the hub offers them again, or has done so.
    lost: u64,
}

impl Counts {
    fn finished(&self) -> u64 {
        self.done + self.failed
    }

    fn line(&self) -> String {
        let Self { done, failed, lost } = self;
        format!("done {done}, failed {failed}, lost {lost}")
    }
}

/// How the work on one event ended.
#[derive(Debug)]
enum Ended {
    Done,
    Failed,
    Lost,
    Unrunnable(String),
}

struct Desk {
    work: Work,
    at_once: usize,
    tasks: JoinSet<Ended>,
    counts: Counts,
}

impl Desk {
    async fn take_work(&mut self, claims: &mut Claims, end: &End, stop: &Stop) -> Result<(), Failure> {
        let over = elapsed(end);
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
    async fn drain(&mut self, claims: &Claims) -> Result<(), Failure> {
        let stopped = claims.stop().await;
        while let Some(ended) = self.tasks.join_next().await {
            self.note(ended)?;
        }
        Ok(stopped?)
    }

    fn begin(&mut self, claim: Claim) -> Result<(), Failure> {
        match &mut self.work {
            Work::Run(command) => {
                let command = command.clone();
                self.tasks.spawn(async move { work(claim, &command).await });
            }
            Work::Print(printer) => {
                // Visible before it is done; a claim that is dropped here goes back to the hub.
                printer.event(claim.event())?;
                printer.flush()?;
                self.tasks.spawn(async move { settled(&claim_id(&claim), claim.ack().await, Ended::Done) });
            }
        }
        Ok(())
    }

    fn note(&mut self, ended: Result<Ended, JoinError>) -> Result<(), Failure> {
        match ended {
            Ok(Ended::Done) => self.counts.done += 1,
            Ok(Ended::Failed) => self.counts.failed += 1,
            Ok(Ended::Lost) => self.counts.lost += 1,
            Ok(Ended::Unrunnable(sentence)) => {
                self.counts.lost += 1;
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

async fn work(claim: Claim, command: &str) -> Ended {
    let id = claim_id(&claim);
    let job = Job { event: claim.event(), seq: claim.seq(), attempt: claim.attempt() };
    match exec::run(command, job).await {
        Verdict::Done => settled(&id, claim.ack().await, Ended::Done),
        Verdict::Failed(reason) => {
            remark(&format!("{id} failed: {reason}"));
            settled(&id, claim.nack(reason).await, Ended::Failed)
        }
        Verdict::Unrunnable(sentence) => {
            // If this fails the hub offers the event again all the same.
            let _ = claim.release().await;
            Ended::Unrunnable(sentence)
        }
    }
}

fn claim_id(claim: &Claim) -> String {
    claim.event().id.to_string()
}

fn settled(id: &str, settled: Result<(), SettleError>, ended: Ended) -> Ended {
    match settled {
        Ok(()) => ended,
        Err(error) => {
            remark(&format!("{id}: {}", with_code(&crate::failure::sentence(&error), error.code())));
            Ended::Lost
        }
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

    fn desk() -> Desk {
        Desk { work: Work::Run("true".into()), at_once: 1, tasks: JoinSet::new(), counts: Counts::default() }
    }

    #[test]
    fn ends_are_counted() {
        let mut desk = desk();
        for ended in [Ended::Done, Ended::Done, Ended::Failed, Ended::Lost] {
            assert!(desk.note(Ok(ended)).is_ok());
        }
        assert_eq!(desk.counts, Counts { done: 2, failed: 1, lost: 1 });
        assert_eq!(desk.counts.finished(), 3);
        assert_eq!(desk.counts.line(), "done 2, failed 1, lost 1");
    }

    #[test]
    fn a_command_that_cant_be_run_ends_the_consumer() {
        let failure = desk().note(Ok(Ended::Unrunnable("no shell".to_owned()))).unwrap_err();
        assert!(
            matches!(failure, Failure::Told { sentence, .. } if sentence == "no shell: the event was handed back")
        );
    }

    #[test]
    fn an_ack_that_came_too_late_is_lost() {
        assert!(matches!(settled("a", Ok(()), Ended::Done), Ended::Done));
        assert!(matches!(settled("a", Err(SettleError::ClaimLost), Ended::Done), Ended::Lost));
    }
}
