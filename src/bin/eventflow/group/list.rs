//! `eventflow group list`: which groups there are.

use clap::Args;
use eventflow::{
    event,
    spoke::SpokeConfig,
    wire::{Backlog, GroupSettings},
};

use super::{Ask, called, told};
use crate::{
    connect,
    failure::Failure,
    output::{Printer, Style, json},
    stop::Stop,
    table::table,
};

/// List all groups with what they do with events that fail.
///
/// How many events wait in each is what `eventflow backlog` prints.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow group list --json")]
pub(super) struct List {
    #[command(flatten)]
    pub(super) ask: Ask,
}

/// A group as programs read it.
#[derive(serde::Serialize)]
struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a event::Group>,
    settings: &'a GroupSettings,
    consumers: u64,
}

/// Asks and prints.
pub(super) async fn run(config: SpokeConfig, mut printer: Printer, stop: Stop) -> Result<(), Failure> {
    let spoke = connect::connect(config, &stop).await?;
    let groups = stop.unless_requested(spoke.backlog()).await?;
    spoke.close().await;
    let lines = match printer.style() {
        Style::Json => groups.iter().map(line).collect(),
        Style::People { .. } => table(["group", "consumers", "what fails"], groups.iter().map(row).collect()),
    };
    for line in lines {
        printer.line(&line)?;
    }
    Ok(printer.flush()?)
}

fn line(stands: &Backlog) -> String {
    let Backlog { group, settings, consumers, .. } = stands;
    json(&Line { group: group.as_ref(), settings, consumers: *consumers })
}

fn row(stands: &Backlog) -> [String; 3] {
    let name = stands.group.as_ref().map(event::Group::as_str).unwrap_or_default();
    [called(name).to_owned(), stands.consumers.to_string(), told(&stands.settings)]
}
