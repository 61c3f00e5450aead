//! `eventflow request`: publish an event and get the answer to it.

use std::time::{Duration, Instant};

use clap::Args;
use eventflow::spoke::{self, RequestError, SpokeConfig};

use crate::{connect, failure::Failure, fields::Fields, output::Printer, parse, stop::Stop, wait::LAST_LOOK};

/// Publish an event and print the first answer to it.
///
/// An answer is an event whose rid is the event's id: `eventflow publish … --rid ID` makes one. If none comes in time
/// the exit code is 4; the event stays published, and `eventflow wait --answer-to ID` goes on waiting.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow request stock asked --pid article-3 --timeout 5s")]
pub(crate) struct Request {
    /// The domain
    pub(crate) domain: String,
    /// What is asked
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) fields: Fields,
    /// How long to wait for the answer, connecting and publishing included
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse::duration)]
    pub(crate) timeout: Duration,
}

/// Publishes, waits and prints.
pub(crate) async fn run(
    arguments: Request,
    config: SpokeConfig,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    let Request { domain, name, fields, timeout } = arguments;
    let (id, event) = fields.event(&domain, &name)?;
    let began = Instant::now();
    let left = || timeout.saturating_sub(began.elapsed());
    let spoke = connect::connect(config, &stop).await?;
    let published = stop.unless_forced(spoke.publish(event.deadline(left()))).await?;
    let answer = async {
        let answer = spoke::Wait::answer_to(id.as_str()).timeout(left().max(LAST_LOOK));
        spoke.wait(answer).await.map_err(|error| RequestError::Unanswered {
            id: id.clone(),
            published,
            error,
        })
    };
    let answer = stop.unless_requested(connect::telling(&spoke, answer)).await?;
    spoke.close().await;
    printer.event(&answer)?;
    Ok(printer.flush()?)
}
