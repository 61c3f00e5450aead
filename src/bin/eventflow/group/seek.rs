//! `eventflow group seek`: a group goes back or ahead in what is stored.

use clap::Args;
use eventflow::spoke::{SpokeConfig, StartAt};

use super::{Ask, named};
use crate::{confirm::Sure, connect, failure::Failure, output::Printer, parse, stop::Stop};

/// Serve a named group again from a place in what is stored, whatever became of those events in it.
///
/// What is older than that place and waits is passed over: `--to TIME` with a later time goes ahead. On a terminal it
/// asks before.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow group seek billing --to 24h --yes")]
pub(super) struct Seek {
    /// The group
    #[arg(value_parser = parse::group)]
    group: String,
    /// From here on: all, a time (2030-01-31T12:00:00Z, 2030-01-31, milliseconds since 1970, or a span before now such as 24h), or after the event of this id
    #[arg(long, value_name = "all|TIME|ID", value_parser = parse::start)]
    to: StartAt,
    #[command(flatten)]
    sure: Sure,
    #[command(flatten)]
    pub(super) ask: Ask,
}

/// Asks, moves it and says so.
pub(super) async fn run(
    arguments: Seek,
    config: SpokeConfig,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    let Seek { group, to, sure, .. } = arguments;
    let question = format!("serve the group {group} from there on, whatever was done already?");
    sure.confirm(&question, &stop).await?;
    let spoke = connect::connect(config, &stop).await?;
    stop.unless_forced(named(&spoke, &group).seek(to)).await?;
    spoke.close().await;
    printer.did("group", &group, "moved")?;
    Ok(printer.flush()?)
}
