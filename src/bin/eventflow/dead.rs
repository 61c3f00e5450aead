//! `eventflow dead …`: events that failed for good.

mod delete;
mod list;
mod redrive;
mod show;

use std::time::Duration;

use clap::{Args, Subcommand};
use eventflow::{
    event::{Group, code},
    spoke::{ConsumerGroup, DeadReader, Spoke, SpokeConfig},
    wire::Trace,
};

use crate::{failure::Failure, group::named, output::Printer, parse, stop::Stop};

/// How many other groups an answer names at most.
const GROUPS_NAMED: usize = 5;

/// List events that failed for good, look at their attempts, try them again or delete them.
///
/// An event is dead in a group after the group's --max-attempts, or at once when its consumer gave it up. Each group
/// has outcomes of its own: without --group it is about the default group.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow dead list")]
pub(crate) struct Dead {
    #[command(subcommand)]
    command: Command,
}

// Their help stands at the arguments of each.
#[derive(Debug, Subcommand)]
enum Command {
    List(list::List),
    Show(show::Show),
    Redrive(redrive::Redrive),
    Delete(delete::Delete),
}

/// In which group, and how long the answer may take.
#[derive(Debug, Clone, Args)]
struct In {
    /// In this group [default: the default one]
    #[arg(long, value_name = "GROUP", default_value = "", hide_default_value = true, value_parser = parse::group)]
    group: String,
    /// How long to wait for each answer
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse::duration)]
    timeout: Duration,
}

impl In {
    fn of(&self, spoke: &Spoke) -> ConsumerGroup {
        named(spoke, &self.group)
    }

    fn called(&self) -> String {
        match self.group.as_str() {
            "" => "the default group".to_owned(),
            name => format!("the group {name:?}"),
        }
    }
}

/// Which of several.
#[derive(Debug, Clone, Args)]
struct Narrowed {
    /// Only events of this domain or pattern
    #[arg(long, value_name = "DOMAIN")]
    domain: Option<String>,
    /// Only events of this name or pattern
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

impl Narrowed {
    fn narrow(&self, mut reader: DeadReader) -> DeadReader {
        if let Some(domain) = &self.domain {
            reader = reader.domain(domain);
        }
        if let Some(name) = &self.name {
            reader = reader.name(name);
        }
        reader
    }

    fn domain(&self) -> &str {
        self.domain.as_deref().unwrap_or("*")
    }

    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or("*")
    }

    /// For a question.
    fn told(&self) -> String {
        format!("{} {}", self.domain(), self.name())
    }
}

impl Dead {
    /// How long an answer may take.
    pub(crate) fn timeout(&self) -> Duration {
        match &self.command {
            Command::List(list::List { of, .. })
            | Command::Show(show::Show { of, .. })
            | Command::Redrive(redrive::Redrive { of, .. })
            | Command::Delete(delete::Delete { of, .. }) => of.timeout,
        }
    }
}

/// Runs the command.
pub(crate) async fn run(
    dead: Dead,
    mut config: SpokeConfig,
    printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    config.request_deadline = dead.timeout();
    match dead.command {
        Command::List(arguments) => list::run(arguments, config, printer, stop).await,
        Command::Show(arguments) => show::run(arguments, config, printer, stop).await,
        Command::Redrive(arguments) => redrive::run(arguments, config, printer, stop).await,
        Command::Delete(arguments) => delete::run(arguments, config, printer, stop).await,
    }
}

/// One event is named, and it isn't dead there.
fn not_dead(id: &str, of: &In, trace: &Trace) -> Failure {
    let dead = trace.groups.iter().filter(|stands| stands.state == "dead");
    let elsewhere = hint("it is dead in", dead.filter_map(|stands| stands.group.as_ref()));
    let sentence = format!("the event {id:?} isn't dead in {}: nothing was done{elsewhere}", of.called());
    Failure::new(code::NOT_DEAD, sentence)
}

/// Nothing is dead. Whoever named no group may have meant another.
async fn none(spoke: &Spoke, of: &In, narrowed: &Narrowed) -> Failure {
    let groups = match of.group.as_str() {
        // Its failure would hide what was found out.
        "" => spoke.backlog().await.unwrap_or_default(),
        _ => Vec::new(),
    };
    let dead = groups.iter().filter(|stands| stands.dead > 0);
    let elsewhere = hint("there are dead events in", dead.filter_map(|stands| stands.group.as_ref()));
    let sentence = format!("no event of {} is dead in {}{elsewhere}", narrowed.told(), of.called());
    Failure::new(code::EVENT_NOT_FOUND, sentence)
}

/// Groups to look in, some of them if there are many; nothing if there is none.
fn hint<'a>(what: &str, groups: impl Iterator<Item = &'a Group>) -> String {
    let mut names: Vec<&str> = groups.map(Group::as_str).take(GROUPS_NAMED + 1).collect();
    if names.len() > GROUPS_NAMED {
        names[GROUPS_NAMED] = "…";
    }
    if names.is_empty() { String::new() } else { format!("; {what} --group {}", names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_to_look_in_are_named_up_to_a_number() {
        let groups: Vec<Group> = (0..7).map(|no| Group::parse(format!("g{no}")).unwrap()).collect();
        assert_eq!(hint("see", groups[..2].iter()), "; see --group g0, g1");
        assert_eq!(hint("see", groups.iter()), "; see --group g0, g1, g2, g3, g4, …");
        assert_eq!(hint("see", [].iter()), "");
    }
}
