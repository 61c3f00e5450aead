//! The command line client.

mod arguments;
mod connect;
mod consume;
mod exec;
mod failure;
mod history;
mod ndjson;
mod output;
mod publish;
mod stop;
mod subscribe;

use std::{
    io::{self, IsTerminal as _},
    process::ExitCode,
};

use eventflow::event::code;
use tracing_subscriber::EnvFilter;

use crate::{
    arguments::{Cli, Command},
    failure::Failure,
    output::{Printer, Style},
    stop::Stop,
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::read();
    start_log(cli.verbose);
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.exit(),
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(
            |error| Failure::new(code::INTERNAL, format!("the program can't start its threads: {error}")),
        )?;
    let result = runtime.block_on(dispatch(cli));
    // A read of standard input that nobody waits for must not hold up the end.
    runtime.shutdown_background();
    result
}

async fn dispatch(cli: Cli) -> Result<(), Failure> {
    let stop = Stop::listen()?;
    let printer = Printer::new(Style::choose(cli.json));
    let config = connect::config(&cli.link)?;
    match cli.command {
        Command::Publish(arguments) => publish::run(arguments, config, printer, stop).await,
        Command::Subscribe(arguments) => subscribe::run(arguments, config, printer, stop).await,
        Command::Consume(arguments) => consume::run(arguments, config, printer, stop).await,
        Command::Log(arguments) => history::log(arguments, config, printer, stop).await,
        Command::Show(arguments) => history::show(arguments, config, printer, stop).await,
    }
}

/// What the client library has to say: warnings, and with `--verbose` how links come and go.
fn start_log(verbose: bool) {
    let own = if verbose { "info" } else { "warn" };
    let filter = EnvFilter::new(format!("warn,eventflow={own}"));
    let log = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .with_env_filter(filter);
    // Fails only if a log was started before, and that is then the log.
    let _ = log.try_init();
}
