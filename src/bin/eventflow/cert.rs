//! `eventflow cert …`: the certificates that spokes connect with.

mod issue;
mod list;
mod renew;
mod revoke;

use std::path::Path;

use clap::{Args, Subcommand};
use eventflow::spoke::SpokeConfig;

use crate::{
    admin::{Admin, AdminLink},
    failure::Failure,
    output::Printer,
    stop::Stop,
};

/// Issue, list, revoke and renew the certificates that spokes connect with.
///
/// Issue, list and revoke ask the hub through its admin HTTP, which needs a token; on the hub's own machine both are
/// found in its data folder. Renew goes over a link, by the credentials that it renews.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow cert issue --out billing.toml")]
pub(crate) struct Cert {
    #[command(flatten)]
    link: AdminLink,
    #[command(subcommand)]
    command: Command,
}

// Their help stands at the arguments of each.
#[derive(Debug, Subcommand)]
enum Command {
    Issue(issue::Issue),
    List(list::List),
    Revoke(revoke::Revoke),
    Renew(renew::Renew),
}

/// Runs the command; `folder` is the hub's data folder, `config` leads to a link.
pub(crate) async fn run(
    cert: Cert,
    folder: &Path,
    config: impl FnOnce() -> Result<SpokeConfig, Failure>,
    printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    let admin = |stop| Admin::find(&cert.link, folder, stop);
    match cert.command {
        Command::Issue(arguments) => issue::run(arguments, &admin(stop)?, printer).await,
        Command::List(_) => list::run(&admin(stop)?, printer).await,
        Command::Revoke(arguments) => revoke::run(arguments, &admin(stop)?, printer).await,
        Command::Renew(_) => renew::run(config()?, printer, stop).await,
    }
}
