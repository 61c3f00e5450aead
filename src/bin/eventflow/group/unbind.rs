//! `eventflow group unbind`: a binding of a group goes.

use clap::Args;
use eventflow::spoke::SpokeConfig;

use super::{Ask, called, named};
use crate::{confirm::Sure, connect, failure::Failure, output::Printer, parse, stop::Stop};

/// Remove a binding of a group: events of these patterns are no longer kept for it.
///
/// `eventflow group show GROUP` lists its bindings. On a terminal it asks before. A consumer that comes with the same
/// patterns binds anew. If there is no such binding the exit code is 3.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow group unbind billing orders created --yes")]
pub(super) struct Unbind {
    /// The group; '' is the default one
    #[arg(value_parser = parse::group)]
    group: String,
    /// The binding's domain or pattern
    domain: String,
    /// The binding's name or pattern
    name: String,
    #[command(flatten)]
    sure: Sure,
    #[command(flatten)]
    pub(super) ask: Ask,
}

/// Asks, unbinds it and says so.
pub(super) async fn run(
    arguments: Unbind,
    config: SpokeConfig,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    let Unbind { group, domain, name, sure, .. } = arguments;
    let question = format!("keep nothing of {domain} {name} for the group {} any more?", called(&group));
    sure.confirm(&question, &stop).await?;
    let spoke = connect::connect(config, &stop).await?;
    stop.unless_forced(named(&spoke, &group).unbind(&domain, &name)).await?;
    spoke.close().await;
    printer.did("group", &group, "unbound")?;
    Ok(printer.flush()?)
}
