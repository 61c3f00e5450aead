//! `eventflow hub …`: what an operator asks a running hub, through its admin HTTP.

mod log_level;
mod retention;
mod status;

use std::path::Path;

use clap::{Args, Subcommand};

use crate::{
    admin::{Admin, AdminLink},
    failure::Failure,
    output::Printer,
    stop::Stop,
};

/// Ask a running hub how it is, what it keeps, and how much its log tells.
///
/// The hub answers through its admin HTTP, which needs a token. On the hub's own machine both are found in its data
/// folder.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow hub status")]
pub(crate) struct Hub {
    #[command(flatten)]
    pub(crate) link: AdminLink,
    #[command(subcommand)]
    pub(crate) command: Command,
}

// Their help stands at the arguments of each.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Status(status::Status),
    Retention(retention::Retention),
    LogLevel(log_level::LogLevel),
}

/// Runs the command; `folder` is the hub's data folder.
pub(crate) async fn run(hub: Hub, folder: &Path, printer: Printer, stop: Stop) -> Result<(), Failure> {
    let admin = Admin::find(&hub.link, folder, stop)?;
    match hub.command {
        Command::Status(_) => status::run(&admin, printer).await,
        Command::Retention(_) => retention::run(&admin, printer).await,
        Command::LogLevel(arguments) => log_level::run(&admin, arguments, printer).await,
    }
}
