//! `eventflow group set`: what a group does with events that fail.

use std::time::Duration;

use clap::{ArgGroup, Args};
use eventflow::{
    event::code,
    spoke::{GroupChange, GroupError, SpokeConfig},
    wire::GroupSettings,
};

use super::{Ask, called, named, told};
use crate::{
    connect,
    failure::Failure,
    output::{Printer, Style, harmless, json},
    parse,
    stop::Stop,
};

/// Change a group's settings, and print those that hold from now on. A named group that isn't there yet is made.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: eventflow group set billing --max-attempts 8 --delay 5s",
    group = ArgGroup::new("what").required(true).multiple(true).args([
        "max_attempts", "delay", "max_delay", "key_order", "dead_blocks", "dead_letter",
    ])
)]
pub(super) struct Set {
    /// The group; '' is the default one
    #[arg(value_parser = parse::group)]
    group: String,
    /// After so many attempts an event is dead
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    max_attempts: Option<u32>,
    /// How long the first retry waits; each further one twice as long, give or take a fifth
    #[arg(long, value_name = "DURATION", value_parser = parse::back_off)]
    delay: Option<Duration>,
    /// The longest such wait
    #[arg(long, value_name = "DURATION", value_parser = parse::back_off)]
    max_delay: Option<Duration>,
    /// Events of one process are handed out one at a time, in order
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    key_order: Option<bool>,
    /// With key order: a dead event holds back the later ones of its process
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    dead_blocks: Option<bool>,
    /// Publish a dead event in this domain too; '': no more
    #[arg(long, value_name = "DOMAIN")]
    dead_letter: Option<String>,
    #[command(flatten)]
    pub(super) ask: Ask,
}

impl Set {
    fn change(&self) -> GroupChange {
        let mut change = GroupChange::new();
        if let Some(attempts) = self.max_attempts {
            change = change.max_attempts(attempts);
        }
        if let Some(delay) = self.delay {
            change = change.delay(delay);
        }
        if let Some(delay) = self.max_delay {
            change = change.max_delay(delay);
        }
        if let Some(in_order) = self.key_order {
            change = change.key_order(in_order);
        }
        if let Some(blocks) = self.dead_blocks {
            change = change.dead_blocks(blocks);
        }
        if let Some(domain) = &self.dead_letter {
            change = change.dead_letter(domain.as_str());
        }
        change
    }
}

/// What may not be set is an argument's fault, even if only the hub knows.
fn refused(error: GroupError) -> Failure {
    match error {
        GroupError::Refused(fault) if fault.code == code::INVALID_RECORD => Failure::misused(fault),
        error => error.into(),
    }
}

/// The settings as programs read them.
#[derive(serde::Serialize)]
struct Line<'a> {
    group: &'a str,
    settings: &'a GroupSettings,
}

/// Changes and prints.
pub(super) async fn run(
    arguments: Set,
    config: SpokeConfig,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    let group = &arguments.group;
    let spoke = connect::connect(config, &stop).await?;
    let set = async { named(&spoke, group).set(arguments.change()).await.map_err(refused) };
    let settings = stop.unless_forced(set).await?;
    spoke.close().await;
    printer.line(&match printer.style() {
        Style::Json => json(&Line { group, settings: &settings }),
        Style::People { .. } => harmless(&format!("{}: {}", called(group), told(&settings))),
    })?;
    Ok(printer.flush()?)
}
