//! `eventflow publish`: one event, a stream of them, or a batch.

mod batch;
mod lines;
mod progress;
mod stream;

use std::time::{Duration, Instant};

use clap::Args;
use eventflow::{
    event::{EventId, Expect},
    spoke::{RequestError, Spoke, SpokeConfig},
    wire::{Ended, PublishState, Published},
};

use crate::{
    connect,
    failure::Failure,
    fields::Fields,
    group::named,
    ndjson,
    output::{self, Printer, Style},
    parse,
    stop::Stop,
    wait,
};

/// Publish one event, or many from standard input.
///
/// It returns when the hub has the event on disk. Publishing the same id and content again is harmless.
///
/// With `-` instead of a domain, each line of standard input is one event:
/// {"domain": …, "name": …, "pid": …, "data": …, "id": …, "rid": …, "expect": …}, where all but domain and name may be
/// left out. A line that is refused is reported with its number, the others are published; at the end come the counts.
/// With --batch it is all of them or none.
///
/// With --expect the event is only stored if the log of its process ends with the event of this id, or has none: else
/// the exit code is 1, and the code E_EVENTFLOW_LOG_CONFLICT.
///
/// With --wait the outcome is waited for: the exit code is 1 if it isn't success, and 4 if there was none in time.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow publish orders created --pid order-1 --data '{\"total\":12}'")]
pub(crate) struct Publish {
    /// The domain; `-`: read events from standard input
    #[arg(value_name = "DOMAIN|-")]
    pub(crate) domain: String,
    /// What happened
    pub(crate) name: Option<String>,
    /// Taken for the data by many; it is refused with a word on how to give that.
    #[arg(hide = true)]
    pub(crate) surplus: Option<String>,
    #[command(flatten)]
    pub(crate) fields: Fields,
    /// Wait for the outcome too
    #[arg(long, conflicts_with_all = ["persist", "batch"])]
    pub(crate) wait: bool,
    /// With --wait: its outcome in this group [default: the default group]
    #[arg(long, value_name = "GROUP", requires = "wait", value_parser = parse::group)]
    pub(crate) group: Option<String>,
    /// Only store the event: nobody gets it until the same id and content is published
    #[arg(long, conflicts_with = "batch")]
    pub(crate) persist: bool,
    /// Only if the log of the process ends with this event, or, for `none`, has no event
    #[arg(long, value_name = "none|ID", requires = "pid")]
    pub(crate) expect: Option<String>,
    /// With `-`: publish all lines, at most 1,000, or none
    #[arg(long)]
    pub(crate) batch: bool,
    /// How long to try until the event is acknowledged and, with --wait, done; connecting included
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse::duration)]
    pub(crate) timeout: Duration,
}

impl Publish {
    /// Whether events come from standard input, one a line.
    pub(crate) fn is_stream(&self) -> bool {
        self.domain == "-"
    }

    /// What is said of a single event.
    pub(crate) fn is_about_one(&self) -> bool {
        self.name.is_some() || self.fields.any() || self.wait || self.persist || self.expect.is_some()
    }
}

/// Publishes what the arguments say.
pub(crate) async fn run(
    arguments: Publish,
    mut config: SpokeConfig,
    printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    config.publish_deadline = arguments.timeout;
    match (arguments.is_stream(), arguments.batch) {
        (true, true) => batch::run(config, printer, stop).await,
        (true, false) => stream::run(config, printer, stop).await,
        (false, _) => one(arguments, config, printer, stop).await,
    }
}

async fn one(
    arguments: Publish,
    config: SpokeConfig,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    let Publish { domain, name, fields, wait, group, persist, expect, timeout, .. } = arguments;
    let expect = expect.map(Expect::parse).transpose().map_err(|error| Failure::misused(error.into()))?;
    let (id, event) = fields.event(&domain, &name.unwrap_or_default())?;
    let group = wait::group(group)?;
    let began = Instant::now();
    let spoke = connect::connect(config, &stop).await?;
    let left = || timeout.saturating_sub(began.elapsed());
    let event = ndjson::expecting(event, expect).deadline(left());
    // The event may be stored or not, so the first signal waits for the answer.
    let done = match persist {
        true => stop.unless_forced(spoke.persist(event)).await?,
        false => stop.unless_forced(spoke.publish(event)).await?,
    };
    let outcome = if wait { Some(outcome(&spoke, &group, &id, done, left(), &stop).await) } else { None };
    // What is published is told, whatever became of the wait.
    let ended = outcome.as_ref().and_then(|outcome| outcome.as_ref().ok());
    printer.line(&answer(&id, done, ended, persist, printer.style()))?;
    printer.flush()?;
    spoke.close().await;
    match outcome {
        Some(outcome) => wait::verdict(&outcome?),
        None => Ok(()),
    }
}

/// Waits for the outcome of what is published.
async fn outcome(
    spoke: &Spoke,
    group: &str,
    id: &EventId,
    published: Published,
    left: Duration,
    stop: &Stop,
) -> Result<Ended, Failure> {
    let outcome = async {
        let outcome = named(spoke, group).outcome(id, left.max(wait::LAST_LOOK)).await;
        outcome.map_err(|error| RequestError::Unanswered { id: id.clone(), published, error })
    };
    stop.unless_requested(connect::telling(spoke, outcome)).await
}

/// What became of one publish, for programs.
#[derive(serde::Serialize)]
struct Answer<'a> {
    id: &'a EventId,
    duplicate: bool,
    /// How it stands, if it was there already.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<PublishState>,
    timestamp: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'a Ended>,
}

/// What became of one publish.
fn answer(id: &EventId, done: Published, outcome: Option<&Ended>, persist: bool, style: Style) -> String {
    let Published { fresh, timestamp, seq, state } = done;
    match style {
        // What is only stored has no number yet.
        Style::Json => {
            let seq = (seq > 0).then_some(seq);
            output::json(&Answer { id, duplicate: !fresh, state, timestamp, seq, outcome })
        }
        Style::People { .. } => {
            let word = match (fresh, persist) {
                (true, false) => "published",
                (true, true) => "stored, not published:",
                (false, _) => "was there already:",
            };
            let ended = outcome.map(|ended| format!("\n{}", wait::told(ended))).unwrap_or_default();
            let state = state.map(|state| format!(", {}", state.as_str())).unwrap_or_default();
            format!("{word} {id} at {}{state}{ended}", output::time(timestamp, &chrono::Local))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_for_people_and_programs() {
        let id = EventId::parse("a").unwrap();
        let done = Published::fresh(5, 7);
        assert_eq!(
            answer(&id, done, None, false, Style::Json),
            r#"{"id":"a","duplicate":false,"timestamp":5,"seq":7}"#
        );
        let again = Published { fresh: false, state: Some(PublishState::Pending), ..done };
        let people = Style::People { colours: false };
        assert!(answer(&id, done, None, false, people).starts_with("published a at 19"));
        assert!(answer(&id, again, None, false, people).starts_with("was there already: a at 19"));
        assert!(answer(&id, again, None, false, people).ends_with(", pending"));
        assert_eq!(
            answer(&id, again, None, false, Style::Json),
            r#"{"id":"a","duplicate":true,"state":"pending","timestamp":5,"seq":7}"#
        );
        let stored = Published { seq: 0, ..done };
        assert_eq!(
            answer(&id, stored, None, true, Style::Json),
            r#"{"id":"a","duplicate":false,"timestamp":5}"#
        );
        let ended = Ended { state: "success".to_owned(), consumer: None, ended: 9, error: String::new() };
        assert_eq!(
            answer(&id, done, Some(&ended), false, Style::Json),
            r#"{"id":"a","duplicate":false,"timestamp":5,"seq":7,"outcome":{"state":"success","ended":9}}"#
        );
    }
}
