//! `eventflow hub log-level`: how much the hub's log tells.

use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};
use ureq::http::Method;

use crate::{
    admin::Admin,
    failure::Failure,
    output::{Printer, Style, harmless, json as line, remark},
};

/// Print how much the hub's log tells, or change it until the hub's next start.
///
/// The next start goes by the hub's setting log.level again.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow hub log-level debug")]
pub(crate) struct LogLevel {
    /// error, warn, info, debug or trace; or parts with levels, such as eventflow::store=debug,info
    pub(crate) level: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Filter {
    filter: String,
}

/// Asks or changes, and prints what holds then.
pub(crate) async fn run(admin: &Admin, arguments: LogLevel, mut printer: Printer) -> Result<(), Failure> {
    for target in arguments.level.iter().flat_map(|level| strangers(level)) {
        remark(&harmless(&format!(
            "no part of Eventflow is called {target:?} (they begin with eventflow::): unless a library is, no line \
             matches"
        )));
    }
    let answer: Value = match arguments.level {
        None => admin.get("/log").await?,
        Some(level) => admin.send(Method::PUT, "/log", Some(&json!({ "level": level }))).await?,
    };
    match (printer.style(), serde_json::from_value(answer.clone())) {
        (Style::People { .. }, Ok(Filter { filter })) => printer.line(&harmless(&filter))?,
        _ => printer.line(&line(&answer))?,
    }
    Ok(printer.flush()?)
}

/// The targets in a filter that are none of ours. A target stands for all that begin with it.
fn strangers(filter: &str) -> Vec<&str> {
    let ours = |target: &str| {
        let first = target.split("::").next().unwrap_or_default();
        ["eventflow", "eventflow_hub"].iter().any(|name| *name == first || name.starts_with(target))
    };
    filter
        .split(',')
        .filter_map(|part| part.split_once('='))
        .filter_map(|(target, _)| target.split('[').next())
        .map(str::trim)
        .filter(|target| !ours(target))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_of_nobody_are_found() {
        assert_eq!(strangers("evenflow=debug,info"), ["evenflow"]);
        assert_eq!(strangers("eventflow::store=debug,eventflow_hub=trace,event=warn,info"), [""; 0]);
    }
}
