//! `eventflow recur list`.

use chrono::Local;
use clap::Args;
use eventflow::{event::code, spoke::SpokeConfig, wire::RecurringState};

use crate::{
    connect,
    failure::Failure,
    output::{Printer, Style, harmless, json, time},
    stop::Stop,
};

/// List the recurring schedules, by name.
///
/// If there is none the exit code is 3.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow recur list")]
pub(super) struct List {}

pub(super) async fn run(config: SpokeConfig, mut printer: Printer, stop: Stop) -> Result<(), Failure> {
    let spoke = connect::connect(config, &stop).await?;
    let mut reader = spoke.recurring_schedules();
    let mut found = false;
    while let Some(page) = stop.unless_requested(reader.next_page()).await? {
        for state in &page {
            let line = match printer.style() {
                Style::Json => json(state),
                Style::People { .. } => line(state),
            };
            printer.line(&line)?;
            found = true;
        }
        printer.flush()?;
    }
    spoke.close().await;
    if found {
        return Ok(());
    }
    Err(Failure::new(code::RECURRING_NOT_FOUND, "there is no recurring schedule"))
}

fn line(state: &RecurringState) -> String {
    let RecurringState { name, what, next, .. } = state;
    let next = match next {
        Some(due) => time(*due, &Local),
        None if what.paused => "paused".to_owned(),
        None => "over".to_owned(),
    };
    let when = format!("{} {}", what.rule, what.zone);
    harmless(&format!("{name:<24} {when:<32} {} {}  {next}", what.domain, what.event))
}
