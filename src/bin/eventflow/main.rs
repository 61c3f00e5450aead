//! The command line client.

mod admin;
mod adopt;
mod arguments;
mod association;
mod backlog;
mod backup;
mod bench;
mod cert;
mod commands;
mod confirm;
mod connect;
mod consume;
#[cfg(feature = "hub")]
mod database;
mod dead;
mod delete;
mod end;
mod exec;
mod failure;
mod fields;
mod group;
mod hub;
mod legible;
mod log;
mod manual;
#[cfg(feature = "hub")]
mod migrate;
#[cfg(feature = "hub")]
mod moving;
mod ndjson;
mod nudge;
mod output;
mod parse;
mod pids;
mod publish;
mod recur;
mod request;
mod schedule;
mod schedules;
mod show;
mod state;
mod stop;
mod subscribe;
mod table;
mod wait;

use std::{
    io::{self, IsTerminal as _},
    process::ExitCode,
};

use eventflow::event::code;
use tracing::{Event, Subscriber};
use tracing_subscriber::{
    EnvFilter,
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer},
    registry::LookupSpan,
};

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
    let printer = Printer::new(Style::choose(cli.json), cli.quiet);
    let deadline = cli.command.connect_deadline(cli.link.connect_timeout);
    let link = || {
        let mut config = connect::config(&cli.link)?;
        config.connect_deadline = deadline;
        Ok::<_, Failure>(config)
    };
    match cli.command {
        Command::Publish(arguments) => publish::run(arguments, link()?, printer, stop).await,
        Command::Request(arguments) => request::run(arguments, link()?, printer, stop).await,
        Command::Subscribe(arguments) => subscribe::run(arguments, link()?, printer, stop).await,
        Command::Consume(arguments) => consume::run(arguments, link()?, printer, stop).await,
        Command::Wait(arguments) => wait::run(arguments, link()?, printer, stop).await,
        Command::Schedule(arguments) => schedule::run(arguments, link()?, printer, stop).await,
        Command::Schedules(arguments) => schedules::run(arguments, link()?, printer, stop).await,
        Command::Cancel(arguments) => schedule::cancel(arguments, link()?, printer, stop).await,
        Command::Recur(arguments) => recur::run(arguments, link()?, printer, stop).await,
        Command::Show(arguments) => show::run(arguments, link()?, printer, stop).await,
        Command::Log(arguments) => log::run(arguments, link()?, printer, stop).await,
        Command::Pids(arguments) => pids::run(arguments, link()?, printer, stop).await,
        Command::State(arguments) if arguments.is_stream() => state::stream(printer, stop).await,
        Command::State(arguments) => state::run(arguments, link()?, printer, stop).await,
        Command::Associate(arguments) => association::associate(arguments, link()?, printer, stop).await,
        Command::Dissociate(arguments) => association::dissociate(arguments, link()?, printer, stop).await,
        Command::Nudge(arguments) => nudge::run(arguments, link()?, printer, stop).await,
        Command::Delete(arguments) => delete::run(arguments, link()?, printer, stop).await,
        Command::Group(arguments) => group::run(arguments, link()?, printer, stop).await,
        Command::Backlog(arguments) => backlog::run(arguments, link()?, printer, stop).await,
        Command::Dead(arguments) => dead::run(arguments, link()?, printer, stop).await,
        Command::Backup(arguments) => backup::run(arguments, &cli.link.data_folder, printer, stop).await,
        Command::Bench(arguments) => bench::run(arguments, link, printer, stop).await,
        #[cfg(feature = "hub")]
        Command::Export(arguments) => moving::export(arguments, &cli.link.data_folder, printer, stop).await,
        #[cfg(feature = "hub")]
        Command::Import(arguments) => moving::import(arguments, &cli.link.data_folder, printer, stop).await,
        #[cfg(feature = "hub")]
        Command::Migrate(arguments) => migrate::run(arguments, &cli.link.data_folder, printer).await,
        Command::Adopt(arguments) => adopt::run(arguments, &cli.link.data_folder, printer, stop).await,
        Command::Cert(arguments) => cert::run(arguments, &cli.link.data_folder, link, printer, stop).await,
        Command::Hub(arguments) => hub::run(arguments, &cli.link.data_folder, printer, stop).await,
        Command::Completions(arguments) => manual::completions(&arguments, printer),
        Command::Man(arguments) => manual::man(&arguments, printer),
        Command::Docs(arguments) => manual::docs(&arguments, printer),
    }
}

/// What the client library has to say. Without `--verbose` only what the commands don't tell themselves, and in
/// their way.
fn start_log(verbose: bool) {
    let filter = EnvFilter::new(if verbose {
        "warn,eventflow=info"
    } else {
        "warn,eventflow::spoke=off,eventflow::pki::tls=off,eventflow::store::migration=info"
    });
    let log = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(verbose && io::stderr().is_terminal())
        .with_target(false)
        .with_env_filter(filter);
    // Fails only if a log was started before, and that is then the log.
    let _ = if verbose { log.try_init() } else { log.event_format(Remarks).try_init() };
}

/// Log lines that look like the program's own remarks.
struct Remarks;

impl<S, N> FormatEvent<S, N> for Remarks
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> std::fmt::Result {
        write!(writer, "eventflow: ")?;
        context.field_format().format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}
