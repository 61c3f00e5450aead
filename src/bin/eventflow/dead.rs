//! `eventflow dead …`: events that failed for good.

mod delete;
mod list;
mod redrive;
mod show;

use std::time::Duration;

use clap::{Args, Subcommand};
use eventflow::spoke::{ConsumerGroup, DeadReader, Spoke, SpokeConfig};

use crate::{
    failure::Failure,
    group::{called, named},
    output::Printer,
    parse,
    stop::Stop,
};

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
    #[arg(long, value_name = "GROUP", default_value = "", hide_default_value = true)]
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
fn not_dead(id: &str, of: &In) -> Failure {
    let sentence = format!("the event {id:?} isn't dead in {}: nothing was done", of.called());
    Failure::new(eventflow::event::code::EVENT_NOT_FOUND, sentence)
}

/// Nothing is dead.
fn none(of: &In, narrowed: &Narrowed) -> Failure {
    let sentence = format!("no event of {} is dead in {}", narrowed.told(), called(&of.group));
    Failure::new(eventflow::event::code::EVENT_NOT_FOUND, sentence)
}
