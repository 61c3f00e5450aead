//! `eventflow group show`: one group, its settings, bindings and consumers.

use chrono::Local;
use clap::Args;
use eventflow::{spoke::SpokeConfig, wire::Backlog};

use super::{Ask, called, named, told};
use crate::{
    backlog, connect,
    failure::Failure,
    output::{Printer, Style, harmless, json, time},
    parse,
    stop::Stop,
    table::table,
};

/// Print a group's settings, its bindings and its connected consumers.
///
/// If there is no such group the exit code is 3.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow group show billing")]
pub(super) struct Show {
    /// The group; '' is the default one
    #[arg(value_parser = parse::group)]
    group: String,
    #[command(flatten)]
    pub(super) ask: Ask,
}

/// Asks and prints.
pub(super) async fn run(
    arguments: Show,
    config: SpokeConfig,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    let spoke = connect::connect(config, &stop).await?;
    let stands = stop.unless_requested(named(&spoke, &arguments.group).backlog()).await?;
    spoke.close().await;
    match printer.style() {
        Style::Json => printer.line(&json(&stands))?,
        Style::People { .. } => {
            for line in page(&arguments.group, &stands) {
                printer.line(&line)?;
            }
        }
    }
    Ok(printer.flush()?)
}

fn page(name: &str, stands: &Backlog) -> Vec<String> {
    let mut lines = vec![harmless(&format!("{}: {}", called(name), told(&stands.settings)))];
    let bindings = stands.bindings.iter().map(|binding| {
        let since = time(binding.created, &Local);
        [binding.domain.to_string(), binding.name.to_string(), binding.consumers.to_string(), since]
    });
    lines.push(String::new());
    lines.extend(table(["domain", "name", "consumers", "bound since"], bindings.collect()));
    lines.extend(backlog::consumers(stands));
    lines
}
