//! `eventflow recur …`: events that the hub publishes again and again.

mod change;
mod create;
mod list;
mod show;

use std::time::Duration;

use clap::{Args, Subcommand};
use eventflow::spoke::SpokeConfig;

use crate::{failure::Failure, output::Printer, parse, stop::Stop};

/// Make, list and change recurring schedules: events that the hub publishes again and again.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: eventflow recur create nightly '30 2 * * *' reports due --zone Europe/Berlin"
)]
pub(crate) struct Recur {
    /// How long to wait for each answer
    #[arg(long, global = true, value_name = "DURATION", default_value = "30s", value_parser = parse::duration)]
    pub(crate) timeout: Duration,
    #[command(subcommand)]
    command: Command,
}

// Their help stands at the arguments of each.
#[derive(Debug, Subcommand)]
enum Command {
    Create(create::Create),
    List(list::List),
    Show(show::Show),
    Pause(change::Pause),
    Resume(change::Resume),
    Run(change::Run),
    Remove(change::Remove),
}

/// Runs the command.
pub(crate) async fn run(
    recur: Recur,
    mut config: SpokeConfig,
    printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    config.request_deadline = recur.timeout;
    match recur.command {
        Command::Create(arguments) => create::run(arguments, config, printer, stop).await,
        Command::List(_) => list::run(config, printer, stop).await,
        Command::Show(arguments) => show::run(&arguments, config, printer, stop).await,
        Command::Pause(arguments) => change::pause(&arguments, config, printer, stop).await,
        Command::Resume(arguments) => change::resume(&arguments, config, printer, stop).await,
        Command::Run(arguments) => change::run(&arguments, config, printer, stop).await,
        Command::Remove(arguments) => change::remove(&arguments, config, printer, stop).await,
    }
}
