//! `eventflow publish -`: line after line, each on its own.

use std::collections::VecDeque;

use eventflow::{
    spoke::{Pending, PublishError, Spoke, SpokeConfig},
    wire::Published,
};

use super::{lines::Lines, progress::Progress};
use crate::{
    connect,
    failure::{CUT_SHORT, Failure},
    output::Printer,
    stop::Stop,
};

/// Publishes whose answer is awaited at most; the spoke bounds their bytes.
const IN_FLIGHT: usize = 4_096;

pub(super) async fn run(config: SpokeConfig, mut printer: Printer, stop: Stop) -> Result<(), Failure> {
    let spoke = connect::connect(config, &stop).await?;
    let mut progress = Progress::start(printer.is_quiet());
    let ended = tokio::select! {
        ended = connect::telling(&spoke, pump(&spoke, Lines::read(), &mut progress, &stop)) => ended,
        () = stop.forced() => Err(CUT_SHORT),
    };
    if ended.is_ok() {
        spoke.close().await;
    }
    progress.end();
    printer.line(&progress.counts.line(printer.style()))?;
    printer.flush()?;
    ended?;
    if progress.counts.refused > 0 { Err(Failure::Silent { exit: 1 }) } else { Ok(()) }
}

/// Publishes line after line and awaits the answers in the order of the lines.
async fn pump(spoke: &Spoke, mut lines: Lines, progress: &mut Progress, stop: &Stop) -> Result<(), Failure> {
    let mut pending: VecDeque<(u64, Pending)> = VecDeque::new();
    let mut more = true;
    while more || !pending.is_empty() {
        tokio::select! {
            biased;
            (line, answer) = front(&mut pending), if !pending.is_empty() => {
                pending.pop_front();
                progress.answered(line, answer);
            }
            () = stop.requested(), if more => more = false,
            line = lines.next(), if more && pending.len() < IN_FLIGHT => match line? {
                None => more = false,
                Some((number, Err(fault))) => progress.refused(number, &fault.to_string()),
                Some((number, Ok(event))) => match spoke.publish_later(event).await {
                    Ok(answer) => pending.push_back((number, answer)),
                    Err(error) => progress.answered(number, Err(error)),
                },
            }
        }
    }
    Ok(())
}

/// The answer to the oldest publish. Safe to cancel: the publish stays where it is.
async fn front(pending: &mut VecDeque<(u64, Pending)>) -> (u64, Result<Published, PublishError>) {
    match pending.front_mut() {
        Some((line, answer)) => (*line, answer.await),
        None => std::future::pending().await,
    }
}
