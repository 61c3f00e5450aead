//! `eventflow dead redrive`.

use clap::{ArgGroup, Args};
use eventflow::spoke::SpokeConfig;

use super::{In, Narrowed, none, not_dead};
use crate::{
    connect,
    failure::Failure,
    output::{Printer, Style, json},
    stop::Stop,
};

/// Try a dead event again, or all of a group, each in a new round with attempts of its own.
///
/// What became of earlier rounds stays on record. An event that an npm spoke claimed and left is taken back too, if it
/// is named. If there is nothing to redrive the exit code is 3.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: eventflow dead redrive --all --domain orders",
    group = ArgGroup::new("what").required(true).args(["id", "all"])
)]
pub(super) struct Redrive {
    /// The event's id
    #[arg(conflicts_with_all = ["domain", "name"])]
    id: Option<String>,
    /// All dead events of the group, narrowed by --domain and --name
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    narrowed: Narrowed,
    #[command(flatten)]
    pub(super) of: In,
}

/// Redrives and counts.
pub(super) async fn run(
    arguments: Redrive,
    config: SpokeConfig,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    let Redrive { id, narrowed, of, .. } = arguments;
    let spoke = connect::connect(config, &stop).await?;
    let group = of.of(&spoke);
    if let Some(id) = id {
        let redriven = stop.unless_forced(group.redrive(&id)).await?;
        if !redriven {
            let (_, trace) = stop.unless_requested(spoke.show(&id)).await?;
            return Err(not_dead(&id, &of, &trace));
        }
        spoke.close().await;
        printer.done("redriven", &id)?;
        return Ok(printer.flush()?);
    }
    let count = stop.unless_forced(group.redrive_all(narrowed.domain(), narrowed.name())).await?;
    if count == 0 {
        return Err(none(&spoke, &of, &narrowed).await);
    }
    spoke.close().await;
    printer.line(&match printer.style() {
        Style::Json => json(&serde_json::json!({ "redriven": count })),
        Style::People { .. } => {
            format!("{count} {} again", if count == 1 { "is tried" } else { "are tried" })
        }
    })?;
    Ok(printer.flush()?)
}
