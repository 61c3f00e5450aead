//! `eventflow group remove`.

use clap::Args;
use eventflow::spoke::SpokeConfig;

use super::{Ask, named};
use crate::{confirm::Sure, connect, failure::Failure, output::Printer, stop::Stop};

/// Remove a named group with its bindings and outcomes. The events stay stored.
///
/// On a terminal it asks before. A consumer that comes with its name makes it anew, without what it knew.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow group remove billing --yes")]
pub(super) struct Remove {
    /// The group
    group: String,
    #[command(flatten)]
    sure: Sure,
    #[command(flatten)]
    pub(super) ask: Ask,
}

/// Asks, removes it and says so.
pub(super) async fn run(
    arguments: Remove,
    config: SpokeConfig,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    let Remove { group, sure, .. } = arguments;
    sure.confirm(&format!("remove the group {group:?} with all that it knows?"), &stop).await?;
    let spoke = connect::connect(config, &stop).await?;
    stop.unless_forced(named(&spoke, &group).remove()).await?;
    spoke.close().await;
    printer.did("group", &group, "removed")?;
    Ok(printer.flush()?)
}
