//! `eventflow publish - --batch`: all lines or none.

use eventflow::{
    event::code,
    spoke::{self, SpokeConfig},
};

use super::{
    lines::Lines,
    progress::{Counts, Progress},
};
use crate::{connect, failure::Failure, ndjson::MAX_LINE, output::Printer, stop::Stop};

/// The most events of a batch.
const MOST: usize = eventflow::wire::MOST_EVENTS;

pub(super) async fn run(config: SpokeConfig, mut printer: Printer, stop: Stop) -> Result<(), Failure> {
    let events = stop.unless_requested(read()).await?;
    let spoke = connect::connect(config, &stop).await?;
    let answers = stop.unless_forced(spoke.publish_all(events)).await?;
    spoke.close().await;
    let published = answers.iter().filter(|answer| answer.fresh).count() as u64;
    let counts = Counts { published, duplicate: answers.len() as u64 - published, refused: 0 };
    printer.line(&counts.line(printer.style()))?;
    Ok(printer.flush()?)
}

/// Reads all lines; each bad one is told, and then there is no batch.
async fn read() -> Result<Vec<spoke::Publish>, Failure> {
    let mut lines = Lines::read();
    let mut told = Progress::start(true);
    let mut events = Vec::new();
    while let Some((number, event)) = lines.next().await? {
        if lines.bytes() > MAX_LINE {
            let sentence =
                format!("the batch is longer than {MAX_LINE} bytes: no hub takes one of that size");
            return Err(Failure::new(code::EVENT_TOO_LARGE, sentence));
        }
        match event {
            Ok(_) if events.len() == MOST => {
                let sentence =
                    format!("a batch has at most {MOST} events: publish fewer, or without --batch");
                return Err(Failure::new(code::INVALID_BATCH, sentence));
            }
            Ok(event) => events.push(event),
            Err(fault) => told.refused(number, &fault.to_string()),
        }
    }
    match told.counts.refused {
        0 => Ok(events),
        refused => {
            let sentence = format!("nothing was published: {refused} of the batch's lines are no events");
            Err(Failure::new(code::INVALID_BATCH, sentence))
        }
    }
}
