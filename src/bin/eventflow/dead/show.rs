//! `eventflow dead show`.

use chrono::Local;
use clap::Args;
use eventflow::{
    spoke::SpokeConfig,
    wire::{Attempt, GroupTrace, Trace},
};

use super::{In, not_dead};
use crate::{
    connect,
    failure::Failure,
    legible::Legible,
    output::{Printer, Style, json, time},
    show::story,
    stop::Stop,
};

/// Print a dead event with its attempts in the group and their error texts.
///
/// If it isn't dead there the exit code is 3; `eventflow show` prints any event.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow dead show 01J8Z3N0Q4X5V6W7Y8Z9A0B1C2")]
pub(super) struct Show {
    /// The event's id
    id: String,
    #[command(flatten)]
    pub(super) of: In,
}

/// A dead event as programs read it.
#[derive(serde::Serialize)]
struct Shown<'a> {
    event: Legible<'a>,
    dead: &'a GroupTrace,
    attempts: &'a [Attempt],
}

/// Asks and prints.
pub(super) async fn run(
    arguments: Show,
    config: SpokeConfig,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    let Show { id, of } = arguments;
    let spoke = connect::connect(config, &stop).await?;
    let (event, mut trace) = stop.unless_requested(spoke.show(&id)).await?;
    spoke.close().await;
    let unless_dead = not_dead(&id, &of, &trace);
    narrow(&mut trace, &of.group);
    let dead = trace.groups.first().filter(|group| group.state == "dead");
    let Some(dead) = dead else { return Err(unless_dead) };
    printer.line(&match printer.style() {
        Style::Json => json(&Shown { event: Legible(&event), dead, attempts: &trace.attempts }),
        Style::People { .. } => story(&event, &trace, |millis| time(millis, &Local)),
    })?;
    Ok(printer.flush()?)
}

/// To what is about this group.
fn narrow(trace: &mut Trace, group: &str) {
    let is_it = |of: Option<&str>| of.unwrap_or_default() == group;
    trace.groups.retain(|stands| is_it(stands.group.as_ref().map(|group| group.as_str())));
    trace.attempts.retain(|attempt| is_it(attempt.group.as_ref().map(|group| group.as_str())));
}
