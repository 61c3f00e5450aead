//! `eventflow nudge`: what an application has put into the database itself is published now.

use std::time::Duration;

use clap::Args;
use eventflow::{event::code, spoke::SpokeConfig, wire::Nudged};

use crate::{
    connect,
    failure::Failure,
    output::{Printer, Style, json},
    parse,
    stop::Stop,
};

/// Publish now what a program has put into the hub's database itself.
///
/// A program may insert its events in the same transaction as its own rows; the hub finds them by itself some 15 s after
/// the commit. This makes it at once: for the events of these ids, or without ids for all that is old enough
/// (the hub's collect.age, 10 s by default).
///
/// Each id is printed with how it stands: taken (published by this), published (it was before), unknown (no such event is
/// committed), unpublished (no row in event_published), scheduled or invalid. The exit code is 3 if one is unknown, and 1
/// if one isn't published for another reason.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow nudge 01J8Z3N0Q4X5V6W7Y8Z9A0B1C2")]
pub(crate) struct Nudge {
    /// The events, which are committed, at most 1,000
    pub(crate) ids: Vec<String>,
    /// How long to wait for the answer
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse::duration)]
    pub(crate) timeout: Duration,
}

/// Nudges.
pub(crate) async fn run(
    arguments: Nudge,
    mut config: SpokeConfig,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    config.request_deadline = arguments.timeout;
    let spoke = connect::connect(config, &stop).await?;
    if arguments.ids.is_empty() {
        let taken = stop.unless_forced(spoke.nudge_all()).await?;
        spoke.close().await;
        printer.line(&match printer.style() {
            Style::Json => json(&serde_json::json!({ "taken": taken })),
            Style::People { .. } => published(taken),
        })?;
        return Ok(printer.flush()?);
    }
    let events = stop.unless_forced(spoke.nudge(&arguments.ids)).await?;
    spoke.close().await;
    for event in &events {
        printer.line(&match printer.style() {
            Style::Json => json(event),
            Style::People { .. } => told(event),
        })?;
    }
    printer.flush()?;
    verdict(&events)
}

/// What was old enough. Right after a commit nothing is.
fn published(taken: u64) -> String {
    match taken {
        0 => "published 0 events; what is younger than the hub's collect.age waits: name the ids to have it at once".to_owned(),
        1 => "published 1 event".to_owned(),
        _ => format!("published {taken} events"),
    }
}

fn told(Nudged { id, state, reason }: &Nudged) -> String {
    match reason.as_str() {
        "" => format!("{state}: {id}"),
        reason => format!("{state}: {id}: {reason}"),
    }
}

/// Whether all of them are published.
fn verdict(events: &[Nudged]) -> Result<(), Failure> {
    let in_state = |state: &str| events.iter().filter(|event| event.state == state).count();
    let left = events.len() - in_state("taken") - in_state("published");
    match (left, in_state("unknown")) {
        (0, _) => Ok(()),
        (_, 0) => {
            let sentence = format!("{left} of the events are not published: see how they stand");
            Err(Failure::new(code::INVALID_BATCH, sentence))
        }
        (_, unknown) => {
            let sentence = format!("{unknown} of the events are not in the database: commit them first");
            Err(Failure::new(code::EVENT_NOT_FOUND, sentence))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(state: &str, reason: &str) -> Nudged {
        let id = "e1".parse().unwrap();
        Nudged { id, state: state.to_owned(), reason: reason.to_owned() }
    }

    #[test]
    fn who_nudges_in_vain_is_told_what_helps() {
        assert!(published(0).ends_with("name the ids to have it at once"));
        assert_eq!((published(1), published(2)), ("published 1 event".into(), "published 2 events".into()));
    }

    #[test]
    fn each_event_is_told_and_one_that_is_left_fails() {
        assert_eq!(told(&event("taken", "")), "taken: e1");
        assert_eq!(told(&event("invalid", "no JSON")), "invalid: e1: no JSON");
        assert!(verdict(&[event("taken", ""), event("published", "")]).is_ok());
        for (state, expected) in [("unknown", code::EVENT_NOT_FOUND), ("invalid", code::INVALID_BATCH)] {
            match verdict(&[event("taken", ""), event(state, "")]) {
                Err(Failure::Told { code, .. }) => assert_eq!(code, expected),
                other => panic!("{other:?}"),
            }
        }
    }
}
