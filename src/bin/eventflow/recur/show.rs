//! `eventflow recur show`.

use std::fmt::Write as _;

use chrono::Local;
use clap::Args;
use eventflow::{
    spoke::{RecurringDetails, SpokeConfig},
    wire::{RecurringShown, RecurringState},
};

use crate::{
    connect,
    failure::Failure,
    output::{Printer, Style, harmless, json, time},
    stop::Stop,
};

/// Print a recurring schedule and its next runs, in its own zone and in UTC.
///
/// If there is none of this name the exit code is 3.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow recur show nightly --runs 10")]
pub(super) struct Show {
    /// The schedule's name
    name: String,
    /// So many runs to come
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
}

pub(super) async fn run(
    arguments: &Show,
    config: SpokeConfig,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    let spoke = connect::connect(config, &stop).await?;
    let details = stop.unless_requested(spoke.recurring(&arguments.name, arguments.runs)).await?;
    spoke.close().await;
    let text = match printer.style() {
        Style::Json => json(&All { shown: &details.shown, data: &details.data }),
        Style::People { .. } => story(&details, |millis| time(millis, &Local)),
    };
    printer.line(&text)?;
    Ok(printer.flush()?)
}

/// As programs read it.
#[derive(serde::Serialize)]
struct All<'a> {
    #[serde(flatten)]
    shown: &'a RecurringShown,
    data: &'a eventflow::event::Data,
}

fn story(details: &RecurringDetails, time: impl Fn(i64) -> String) -> String {
    let RecurringShown { state, runs } = &details.shown;
    let RecurringState { name, what, next, last, ran, left_out, publisher, made } = state;
    let mut out = String::new();
    let mut row = |name: &str, value: &str| {
        // Writing to a string can't fail.
        let _ = writeln!(out, "{name:<10} {}", harmless(value));
    };
    row("name", name);
    row("rule", &format!("{} {}", what.rule, what.zone));
    row("event", &format!("{} {}", what.domain, what.event));
    if let Some(pid) = &what.pid {
        row("pid", pid);
    }
    row("missed", what.missed.as_str());
    for (name, bound) in [("start", what.start), ("end", what.end)] {
        if let Some(bound) = bound {
            row(name, &time(bound));
        }
    }
    row("made", &format!("{} by {publisher}", time(*made)));
    if let Some(last) = last {
        row("last", &time(*last));
    }
    row("ran", &format!("{ran}, left out {left_out}"));
    if next.is_none() {
        row("state", if what.paused { "paused: these would be its next runs" } else { "over" });
    }
    for run in runs {
        row("next", &format!("{}  {}", run.local, run.utc));
    }
    row("data", details.data.as_str());
    out.truncate(out.trim_end().len());
    out
}
