//! The log on standard error, and what a panic looks like in it.

mod control;

use std::{
    backtrace::Backtrace,
    io::{self, IsTerminal as _},
    panic,
};

use eventflow::config::{LogFormat, LogLevel, LogSettings};

pub(crate) use self::control::Control;

/// Starts the log, at the level that was configured. Returns who may change that; none: a log was started before, and
/// that is then the log.
pub(crate) fn start(settings: &LogSettings) -> Option<Control> {
    let level = word(settings.level);
    // A level is always a filter.
    let filter = control::parse(level, settings.format).ok()?;
    let log = tracing_subscriber::fmt().with_writer(io::stderr).with_ansi(io::stderr().is_terminal());
    match settings.format {
        LogFormat::Human => {
            let log = log.with_target(false).with_env_filter(filter).with_filter_reloading();
            let handle = log.reload_handle();
            log.try_init().ok()?;
            Some(Control::new(settings.format, level, move |filter| handle.reload(filter)))
        }
        LogFormat::Json => {
            let log = log.json().flatten_event(true).with_env_filter(filter).with_filter_reloading();
            let handle = log.reload_handle();
            log.try_init().ok()?;
            Some(Control::new(settings.format, level, move |filter| handle.reload(filter)))
        }
    }
}

fn word(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Error => "error",
        LogLevel::Warn => "warn",
        LogLevel::Info => "info",
        LogLevel::Debug => "debug",
        LogLevel::Trace => "trace",
    }
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
