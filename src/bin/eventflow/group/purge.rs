//! `eventflow group purge`: a group passes over what waits.

use clap::Args;
use eventflow::spoke::SpokeConfig;

use super::{Ask, named};
use crate::{
    confirm::Sure,
    connect,
    failure::Failure,
    output::{Printer, Style, harmless, json},
    parse,
    stop::Stop,
};

/// Pass over all that waits in a named group. The events stay stored; what consumers hold stays theirs.
///
/// On a terminal it asks before. `eventflow group seek` brings them back.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow group purge billing --yes")]
pub(super) struct Purge {
    /// The group
    #[arg(value_parser = parse::group)]
    group: String,
    #[command(flatten)]
    sure: Sure,
    #[command(flatten)]
    pub(super) ask: Ask,
}

/// Asks, purges and counts.
pub(super) async fn run(
    arguments: Purge,
    config: SpokeConfig,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    let Purge { group, sure, .. } = arguments;
    sure.confirm(&format!("pass over all that waits in the group {group:?}?"), &stop).await?;
    let spoke = connect::connect(config, &stop).await?;
    let events = stop.unless_forced(named(&spoke, &group).purge()).await?;
    spoke.close().await;
    printer.line(&match printer.style() {
        Style::Json => json(&serde_json::json!({ "group": group, "purged": events })),
        Style::People { .. } => {
            let what = if events == 1 { "event" } else { "events" };
            harmless(&format!("{group} passes over {events} {what}"))
        }
    })?;
    Ok(printer.flush()?)
}
