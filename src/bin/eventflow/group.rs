//! `eventflow group …`: groups of consumers, as they are and as they are to be.

mod list;
mod purge;
mod remove;
mod seek;
mod set;
mod show;
mod unbind;

use std::time::Duration;

use clap::{Args, Subcommand};
use eventflow::{
    spoke::{ConsumerGroup, Spoke, SpokeConfig},
    wire::GroupSettings,
};

use crate::{failure::Failure, output::Printer, parse, stop::Stop, table::span};

/// List groups of consumers, change what they do with events that fail, move them in what is stored, remove them.
///
/// A named group is made by its first `eventflow consume --group GROUP` or by `eventflow group set`. An empty name, '',
/// is the default group, which npm peers know: it can only be set and unbound.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow group list")]
pub(crate) struct Group {
    #[command(subcommand)]
    command: Command,
}

// Their help stands at the arguments of each.
#[derive(Debug, Subcommand)]
enum Command {
    List(list::List),
    Show(show::Show),
    Set(set::Set),
    Seek(seek::Seek),
    Purge(purge::Purge),
    Remove(remove::Remove),
    Unbind(unbind::Unbind),
}

/// What all of them take.
#[derive(Debug, Clone, Args)]
pub(crate) struct Ask {
    /// How long to wait for the answer
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse::duration)]
    pub(crate) timeout: Duration,
}

impl Group {
    /// How long the answer may take.
    pub(crate) fn timeout(&self) -> Duration {
        match &self.command {
            Command::List(list::List { ask })
            | Command::Show(show::Show { ask, .. })
            | Command::Set(set::Set { ask, .. })
            | Command::Seek(seek::Seek { ask, .. })
            | Command::Purge(purge::Purge { ask, .. })
            | Command::Remove(remove::Remove { ask, .. })
            | Command::Unbind(unbind::Unbind { ask, .. }) => ask.timeout,
        }
    }
}

/// Runs the command.
pub(crate) async fn run(
    group: Group,
    mut config: SpokeConfig,
    printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    config.request_deadline = group.timeout();
    match group.command {
        Command::List(_) => list::run(config, printer, stop).await,
        Command::Show(arguments) => show::run(arguments, config, printer, stop).await,
        Command::Set(arguments) => set::run(arguments, config, printer, stop).await,
        Command::Seek(arguments) => seek::run(arguments, config, printer, stop).await,
        Command::Purge(arguments) => purge::run(arguments, config, printer, stop).await,
        Command::Remove(arguments) => remove::run(arguments, config, printer, stop).await,
        Command::Unbind(arguments) => unbind::run(arguments, config, printer, stop).await,
    }
}

/// The group of this name; the default one has an empty name.
pub(crate) fn named(spoke: &Spoke, name: &str) -> ConsumerGroup {
    if name.is_empty() { spoke.default_group() } else { spoke.group(name) }
}

/// What a group is called for people.
pub(crate) fn called(name: &str) -> &str {
    if name.is_empty() { "(default)" } else { name }
}

/// What a group does with events that fail, as people read it.
pub(crate) fn told(settings: &GroupSettings) -> String {
    let mut parts = Vec::new();
    parts.extend(settings.max_attempts.map(|count| format!("dead after {count} attempts")));
    if let (Some(delay), Some(most)) = (settings.delay, settings.max_delay) {
        parts.push(format!("retries wait {} to {}", precise(delay), precise(most)));
    }
    match (settings.key_order, settings.dead_blocks) {
        (Some(true), Some(true)) => parts.push("in key order, a dead event blocks its process".to_owned()),
        (Some(true), _) => parts.push("in key order".to_owned()),
        _ => {}
    }
    let letters = settings.dead_letter.as_ref().filter(|domain| !domain.is_empty());
    parts.extend(letters.map(|domain| format!("dead letters in {domain}")));
    parts.join(", ")
}

fn precise(millis: u64) -> String {
    if millis.is_multiple_of(1_000) { span(millis) } else { format!("{millis}ms") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_for_people() {
        let mut settings = GroupSettings {
            max_attempts: Some(5),
            delay: Some(500),
            max_delay: Some(300_000),
            key_order: Some(false),
            dead_blocks: Some(false),
            dead_letter: None,
        };
        assert_eq!(told(&settings), "dead after 5 attempts, retries wait 500ms to 5m 0s");
        settings.key_order = Some(true);
        settings.dead_blocks = Some(true);
        settings.dead_letter = Some("failures".to_owned());
        assert!(
            told(&settings)
                .ends_with("in key order, a dead event blocks its process, dead letters in failures")
        );
        assert_eq!(told(&GroupSettings::default()), "");
    }
}
