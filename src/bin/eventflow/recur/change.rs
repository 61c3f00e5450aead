//! `eventflow recur pause|resume|run|remove`.

use clap::Args;
use eventflow::spoke::SpokeConfig;

use crate::{
    connect,
    failure::Failure,
    output::{Printer, Style, harmless, json},
    stop::Stop,
};

/// Let a recurring schedule rest until it is resumed.
///
/// If there is none of this name the exit code is 3.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow recur pause nightly")]
pub(super) struct Pause {
    /// The schedule's name
    name: String,
}

/// Let a paused schedule run again, from now on.
///
/// What it missed meanwhile is skipped. If there is none of this name the exit code is 3.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow recur resume nightly")]
pub(super) struct Resume {
    /// The schedule's name
    name: String,
}

/// Have a recurring schedule publish its event now, besides its times.
///
/// A paused one can do so too. If there is none of this name the exit code is 3.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow recur run nightly")]
pub(super) struct Run {
    /// The schedule's name
    name: String,
}

/// Remove a recurring schedule; what it has published stays.
///
/// If there is none of this name the exit code is 3.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow recur remove nightly")]
pub(super) struct Remove {
    /// The schedule's name
    name: String,
}

pub(super) async fn pause(
    Pause { name }: &Pause,
    config: SpokeConfig,
    printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    let spoke = connect::connect(config, &stop).await?;
    stop.unless_forced(spoke.pause_recurring(name)).await?;
    spoke.close().await;
    done(printer, "paused", name)
}

pub(super) async fn resume(
    Resume { name }: &Resume,
    config: SpokeConfig,
    printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    let spoke = connect::connect(config, &stop).await?;
    stop.unless_forced(spoke.resume_recurring(name)).await?;
    spoke.close().await;
    done(printer, "resumed", name)
}

pub(super) async fn run(
    Run { name }: &Run,
    config: SpokeConfig,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    let spoke = connect::connect(config, &stop).await?;
    let ran = stop.unless_forced(spoke.run_recurring(name)).await?;
    spoke.close().await;
    let line = match printer.style() {
        Style::Json => {
            json(&serde_json::json!({ "name": name, "id": ran.id, "timestamp": ran.published.timestamp }))
        }
        Style::People { .. } => format!("{} published {}", harmless(name), ran.id),
    };
    printer.line(&line)?;
    Ok(printer.flush()?)
}

pub(super) async fn remove(
    Remove { name }: &Remove,
    config: SpokeConfig,
    printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    let spoke = connect::connect(config, &stop).await?;
    stop.unless_forced(spoke.remove_recurring(name)).await?;
    spoke.close().await;
    done(printer, "removed", name)
}

fn done(mut printer: Printer, what: &str, name: &str) -> Result<(), Failure> {
    let line = match printer.style() {
        Style::Json => json(&serde_json::json!({ "name": name, what: true })),
        Style::People { .. } => format!("{what} {}", harmless(name)),
    };
    printer.line(&line)?;
    Ok(printer.flush()?)
}
