//! The log on standard error, and what a panic looks like in it.

use std::{
    backtrace::Backtrace,
    io::{self, IsTerminal as _},
    panic,
};

use eventflow::config::{LogFormat, LogLevel, LogSettings};
use tracing_subscriber::EnvFilter;

/// Starts the log. Our own entries from the given level on; those of the parts it is built of only from `warn`
/// on, or `error` if that is the level.
pub(crate) fn start(settings: &LogSettings) {
    let log = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_env_filter(filter(settings.level));
    // Fails only if a log was started before, and that is then the log.
    let _ = match settings.format {
        LogFormat::Human => log.with_target(false).try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
}

fn filter(level: LogLevel) -> EnvFilter {
    let (own, others) = match level {
        LogLevel::Error => ("error", "error"),
        LogLevel::Warn => ("warn", "warn"),
        LogLevel::Info => ("info", "warn"),
        LogLevel::Debug => ("debug", "warn"),
        LogLevel::Trace => ("trace", "warn"),
    };
    // The HTTP server takes each request that it can't read, such as the start of TLS, for an error of the hub.
    EnvFilter::new(format!("{others},actix_http::h1::dispatcher=off,eventflow={own},eventflow_hub={own}"))
}

/// Makes a panic one line of the log; the backtrace is for those who set `RUST_BACKTRACE`.
pub(crate) fn hook_panics() {
    panic::set_hook(Box::new(|info| {
        let payload = info.payload();
        let text = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("no text");
        let text = text.replace('\n', " ");
        let place = info.location().map_or_else(|| "somewhere".to_owned(), ToString::to_string);
        if tracing::dispatcher::has_been_set() {
            tracing::error!(place, "internal fault: {text} (E_EVENTFLOW_INTERNAL)");
        } else {
            eprintln!("eventflow-hub: internal fault at {place}: {text} (E_EVENTFLOW_INTERNAL)");
        }
        if std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0") {
            eprintln!("{}", Backtrace::force_capture());
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_level_leaves_others_at_warn() {
        assert_eq!(
            filter(LogLevel::Trace).to_string(),
            "actix_http::h1::dispatcher=off,eventflow_hub=trace,eventflow=trace,warn"
        );
        assert_eq!(
            filter(LogLevel::Error).to_string(),
            "actix_http::h1::dispatcher=off,eventflow_hub=error,eventflow=error,error"
        );
    }
}
