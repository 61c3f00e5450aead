//! The broker: arguments -> configuration -> run -> exit code.

mod arguments;
mod banner;
mod exit;
mod logging;
mod run;
mod signals;

use std::{io::Write as _, process::ExitCode};

use eventflow::config::{self, ConfigProblems, FileText, Loaded, Warning};

use crate::arguments::{Action, Arguments};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    logging::hook_panics();
    let arguments = match Arguments::parse(std::env::args_os().skip(1)) {
        Ok(arguments) => arguments,
        Err(error) => return exit::usage(&error),
    };
    match arguments.action {
        Action::Help => print(&arguments::help()),
        Action::HelpMarkdown => print(&config::help::markdown()),
        Action::Version => print(concat!("eventflow-hub ", env!("CARGO_PKG_VERSION"), "\n")),
        Action::Check | Action::Run => {
            let loaded = match load(&arguments) {
                Ok(loaded) => loaded,
                Err(sentence) => return exit::configuration(&sentence),
            };
            if arguments.action == Action::Check {
                warn(&loaded.warnings);
                return print(&banner::effective(&loaded));
            }
            let log = logging::start(&loaded.config.log);
            for warning in &loaded.warnings {
                tracing::warn!("{warning}");
            }
            run::run(loaded.config, log)
        }
    }
}

fn load(arguments: &Arguments) -> Result<Loaded, String> {
    let path =
        arguments.config.clone().or_else(|| std::env::var("EVENTFLOW_CONFIG").ok().filter(|p| !p.is_empty()));
    let text = match &path {
        None => None,
        Some(path) => {
            Some(std::fs::read_to_string(path).map_err(|error| exit::unreadable_file(path, &error))?)
        }
    };
    let file = path.as_deref().zip(text.as_deref()).map(|(path, text)| FileText { path, text });
    // A name or value that isn't UTF-8 can't be one of ours; it is shown with replacement characters if it is
    // spelled like one.
    let variables = std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()));
    config::load(file, variables, arguments.flags.iter().cloned()).map_err(|refused: ConfigProblems| {
        // A misspelled variable may be the very reason.
        warn(&refused.warnings);
        refused.to_string()
    })
}

/// Says what may surprise while there is no log yet.
fn warn(warnings: &[Warning]) {
    for warning in warnings {
        eprintln!("warning: {warning}");
    }
}

/// Writes to standard output. Whoever closed it doesn't want it: that is no fault.
fn print(text: &str) -> ExitCode {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    ExitCode::SUCCESS
}
