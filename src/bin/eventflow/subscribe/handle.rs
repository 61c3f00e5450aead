//! Commands for the events of a subscription, one after the other.

use eventflow::{event::code, spoke::Subscription};

use super::taken;
use crate::{
    commands::Commands,
    end::End,
    exec::{self, Job, Verdict},
    failure::{CUT_SHORT, Failure},
    output::remark,
    stop::Stop,
};

/// Handles events until a signal, the count or the time is reached; a command that runs may end.
pub(super) async fn run(
    events: &mut Subscription,
    commands: &Commands,
    end: &End,
    stop: &Stop,
) -> Result<(), Failure> {
    let (mut done, mut failed) = (0_u64, 0_u64);
    let over = end.elapsed();
    tokio::pin!(over);
    while end.count.is_none_or(|count| done + failed < count) {
        let delivery = tokio::select! {
            biased;
            () = stop.requested() => break,
            () = &mut over => break,
            delivery = events.next() => delivery,
        };
        let Some((event, seq)) = taken(delivery, events)? else { continue };
        let Ok(command) = commands.get(&event.name) else { continue };
        let verdict = tokio::select! {
            verdict = exec::run(command, Job { event: &event, seq, attempt: 1 }) => verdict,
            // The command is killed as its future is dropped.
            () = stop.forced() => return Err(CUT_SHORT),
        };
        match verdict {
            Verdict::Done => done += 1,
            Verdict::Failed { how, said, .. } => {
                failed += 1;
                let last = said.lines().next_back().unwrap_or_default();
                remark(&format!("{} failed: {}", event.id, exec::reason(&how, last)));
            }
            Verdict::Unrunnable(sentence) => return Err(Failure::new(code::CONSUME_FAILED, sentence)),
        }
    }
    remark(&format!("done {done}, failed {failed}"));
    if !stop.is_requested() {
        end.in_time(done + failed)?;
    }
    if end.count.is_some() && failed > 0 { Err(Failure::Silent { exit: 1 }) } else { Ok(()) }
}
