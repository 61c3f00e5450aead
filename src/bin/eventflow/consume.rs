//! `eventflow consume`: work on events, by a command or by printing them.

use std::{future::Future, pin::pin, sync::Arc};

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
    output::{Printer, greet, remark},
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
    let watched = format!("{domain} {name}");
    let consume = spoke::Consume::new(domain, name).concurrency(concurrency).credit(credit);
    let mut claims = spoke.claims(consume).await?;
    // To print is done in order; only the acks are then under way, up to the credit.
    let style = printer.style();
    let (at_once, work) = match exec {
        Some(command) => (concurrency, Work::Run(command.into())),
        None => (credit, Work::Print(printer)),
    };
    let mut desk = Desk::new(work, at_once as usize, stop.clone());
    let hub = spoke.status().hub.map(|hub| format!(" at hub {hub}")).unwrap_or_default();
    greet(style, &format!("consuming {watched}{hub}; Ctrl-C ends it"));

    let mut absences = pin!(connect::tell_absences(&spoke));
    let ended = tokio::select! {
        ended = desk.take_work(&mut claims, &end) => ended,
        never = &mut absences => match never {},
    };
    if stop.is_requested() {
        desk.tell_what_runs();
    }
    let drained = tokio::select! {
        biased;
        () = stop.forced() => None,
        drained = desk.drain(&claims) => Some(drained),
        never = &mut absences => match never {},
    };
    let ended = match drained {
        // The second signal may have ended the last command first.
        Some(drained) if desk.killed == 0 => ended.and(drained),
        _ => {
            desk.cut_short().await;
            return Err(CUT_SHORT);
        }
    };
    drop(claims);
    tokio::select! {
        _ = spoke.close() => {}
        () = stop.forced() => return Err(CUT_SHORT),
    }
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
    /// Nothing was done: the hub offers them again.
    handed_back: u64,
    /// The link that brought them was gone, or the hub had offered them to somebody else.
    too_late: u64,
    /// The hub didn't say whether it recorded the outcome.
    unconfirmed: u64,
}

impl Counts {
    fn finished(&self) -> u64 {
        self.done + self.failed
    }

    fn line(&self) -> String {
        let Self { done, failed, handed_back, too_late, unconfirmed } = self;
        let mut line = format!("done {done}, failed {failed}");
        for (what, count) in
            [("handed back", handed_back), ("came too late", too_late), ("unconfirmed", unconfirmed)]
        {
            if *count > 0 {
                line += &format!(", {what} {count}");
            }
        }
        line
    }
}

/// How the work on one event ended.
#[derive(Debug)]
enum Ended {
    Done,
    Failed,
    HandedBack,
    TooLate,
    Unconfirmed,
    Unrunnable(String),
    /// Its command was killed.
    Killed,
}

struct Desk {
    work: Work,
    at_once: usize,
    tasks: JoinSet<Ended>,
    counts: Counts,
    /// Commands that the second signal ended.
    killed: u64,
    stop: Stop,
}

impl Desk {
    fn new(work: Work, at_once: usize, stop: Stop) -> Self {
        Self { work, at_once, tasks: JoinSet::new(), counts: Counts::default(), killed: 0, stop }
    }

    async fn take_work(&mut self, claims: &mut Claims, end: &End) -> Result<(), Failure> {
        let stop = self.stop.clone();
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
        let mut result = claims.stop().await.map_err(Failure::from);
        while let Some(ended) = self.tasks.join_next().await {
            // The first one is told; the others are waited for all the same.
            result = result.and(self.note(ended));
        }
        result
    }

    /// After the first signal.
    fn tell_what_runs(&self) {
        match (&self.work, self.tasks.len()) {
            (Work::Print(_), _) | (_, 0) => {}
            (_, 1) => remark("waiting for 1 running command; Ctrl-C again cuts it short"),
            (_, count) => {
                remark(&format!("waiting for {count} running commands; Ctrl-C again cuts them short"))
            }
        }
    }

    /// After the second signal: each piece of work hears it by itself and kills its command.
    async fn cut_short(&mut self) {
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
            Work::Run(command) => {
                let (command, stop) = (command.clone(), self.stop.clone());
                self.tasks.spawn(async move { work(claim, &command, &stop).await });
            }
            Work::Print(printer) => {
                // Visible before it is done; a claim that is dropped here goes back to the hub.
                printer.event(claim.event())?;
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

async fn work(claim: Claim, command: &str, stop: &Stop) -> Ended {
    let id = claim_id(&claim);
    let job = Job { event: claim.event(), seq: claim.seq(), attempt: claim.attempt() };
    let verdict = tokio::select! {
        verdict = exec::run(command, job) => Some(verdict),
        // The command is killed as its future is dropped.
        () = stop.forced() => None,
    };
    let Some(verdict) = verdict else {
        // Dropped, it would be released. The end of the link returns it, as an attempt that counts.
        std::mem::forget(claim);
        return Ended::Killed;
    };
    match verdict {
        Verdict::Done => settled(&id, claim.ack(), Ended::Done, stop).await,
        Verdict::Failed { how, said } => {
            // All that it said has been shown: the last line says which end this is.
            let last = said.lines().next_back().unwrap_or_default();
            remark(&format!("{id} failed: {}", exec::reason(&how, last)));
            settled(&id, claim.nack(exec::reason(&how, &said)), Ended::Failed, stop).await
        }
        Verdict::Unrunnable(sentence) => {
            // If this fails the hub offers the event again all the same.
            tokio::select! {
                _ = claim.release() => {}
                () = stop.forced() => {}
            }
            Ended::Unrunnable(sentence)
        }
    }
}

fn claim_id(claim: &Claim) -> String {
    claim.event().id.to_string()
}

/// Waits for the hub's word, until the second signal.
async fn settled(
    id: &str,
    settling: impl Future<Output = Result<(), SettleError>>,
    ended: Ended,
    stop: &Stop,
) -> Ended {
    let settled = tokio::select! {
        settled = settling => settled,
        () = stop.forced() => return Ended::Unconfirmed,
    };
    let Err(error) = settled else { return ended };
    remark(&format!("{id}: {}", with_code(&crate::failure::sentence(&error), error.code())));
    match error {
        SettleError::ClaimLost | SettleError::EventDeleted | SettleError::LinkLost => Ended::TooLate,
        SettleError::Refused(_) => Ended::HandedBack,
        _ => Ended::Unconfirmed,
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
        Desk::new(Work::Run("true".into()), 1, Stop::listen().unwrap())
    }

    #[tokio::test]
    async fn ends_are_counted_and_named() {
        let mut desk = desk();
        assert_eq!(desk.counts.line(), "done 0, failed 0");
        for ended in [Ended::Done, Ended::Done, Ended::Failed, Ended::HandedBack, Ended::TooLate] {
            assert!(desk.note(Ok(ended)).is_ok());
        }
        assert_eq!(desk.counts.finished(), 3);
        assert_eq!(desk.counts.line(), "done 2, failed 1, handed back 1, came too late 1");
    }

    #[tokio::test]
    async fn a_command_that_cant_be_run_ends_the_consumer() {
        let failure = desk().note(Ok(Ended::Unrunnable("no shell".to_owned()))).unwrap_err();
        assert!(
            matches!(failure, Failure::Told { sentence, .. } if sentence == "no shell: the event was handed back")
        );
    }

    #[tokio::test]
    async fn an_ack_that_came_too_late_is_told_from_one_that_counts() {
        let stop = Stop::listen().unwrap();
        let end = |answer| settled("a", std::future::ready(answer), Ended::Done, &stop);
        assert!(matches!(end(Ok(())).await, Ended::Done));
        assert!(matches!(end(Err(SettleError::ClaimLost)).await, Ended::TooLate));
    }
}
