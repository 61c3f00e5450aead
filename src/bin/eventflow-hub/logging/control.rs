//! The log's filter, as words and as what tracing understands, and who may change it while the hub runs.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
};

use eventflow::{config::LogFormat, hub::LogControl};
use tracing_subscriber::{EnvFilter, reload};

/// Levels, from little to much.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
/// The HTTP server takes each request that it can't read, such as the start of TLS, for an error of the hub.
const NOISE: &str = "actix_http::h1::dispatcher=off";
/// The span that names the hub: people see one hub, and know which.
const HUB_SPAN: &str = "eventflow::hub::span=off";

/// Changes the filter of the log that was started.
pub(crate) struct Control {
    format: LogFormat,
    shown: Mutex<String>,
    reload: Box<dyn Fn(EnvFilter) -> Result<(), reload::Error> + Send + Sync>,
}

impl Control {
    /// Of a log with this filter, which `reload` replaces.
    pub(crate) fn new(
        format: LogFormat,
        filter: &str,
        reload: impl Fn(EnvFilter) -> Result<(), reload::Error> + Send + Sync + 'static,
    ) -> Self {
        Self { format, shown: Mutex::new(filter.to_owned()), reload: Box::new(reload) }
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").field("shown", &self.shown).finish_non_exhaustive()
    }
}

impl LogControl for Control {
    fn filter(&self) -> String {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_filter(&self, filter: &str) -> Result<(), String> {
        let parsed = parse(filter, self.format)?;
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        (self.reload)(parsed).map_err(|error| format!("the log can't be changed any more: {error}"))?;
        filter.clone_into(&mut shown);
        Ok(())
    }
}

/// A level: our own entries from it on, those of the parts the hub is built of only from `warn` on, or `error` if that
/// is the level. Or directives as tracing knows them: `eventflow=debug,info`.
pub(crate) fn parse(filter: &str, format: LogFormat) -> Result<EnvFilter, String> {
    let wrong = |why: &str| {
        format!(
            "`{filter}` is no log level: {why}; say one of {}, or parts and levels such as eventflow=debug,warn",
            LEVELS.join(", ")
        )
    };
    let directives: Vec<_> = filter.split(',').map(str::trim).collect();
    // Tracing would take a misspelled level for the name of a part.
    if let Some(word) = directives.iter().find(|part| !part.contains('=') && !is_level(part)) {
        return Err(wrong(&format!("`{word}` is neither a level nor part=level")));
    }
    let whole = match directives.as_slice() {
        [level] if is_level(level) => {
            let others =
                if LEVELS[..2].contains(&level.to_ascii_lowercase().as_str()) { *level } else { "warn" };
            format!("{others},eventflow={level},eventflow_hub={level}")
        }
        parts => parts.join(","),
    };
    let hub_span = if format == LogFormat::Human { HUB_SPAN } else { "" };
    // What comes last wins: whoever asks for them by name gets them.
    EnvFilter::builder().parse([NOISE, hub_span, &whole].join(",")).map_err(|error| wrong(&error.to_string()))
}

fn is_level(word: &str) -> bool {
    LEVELS.iter().any(|level| level.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_for_our_own_parts() {
        let parsed = |filter: &str| parse(filter, LogFormat::Json).unwrap().to_string();
        assert_eq!(
            parsed("trace"),
            "actix_http::h1::dispatcher=off,eventflow_hub=trace,eventflow=trace,warn"
        );
        assert_eq!(
            parsed("error"),
            "actix_http::h1::dispatcher=off,eventflow_hub=error,eventflow=error,error"
        );
    }

    #[test]
    fn directives_stand_as_they_are() {
        let parsed = parse("eventflow::spoke=debug, info", LogFormat::Json).unwrap().to_string();
        assert_eq!(parsed, "actix_http::h1::dispatcher=off,eventflow::spoke=debug,info");
        let parsed = parse("info", LogFormat::Human).unwrap().to_string();
        assert!(parsed.contains(HUB_SPAN), "{parsed}");
    }

    #[test]
    fn what_is_no_level_is_told_with_what_is() {
        for wrong in ["", "verbose", "debug,verbose", "eventflow=loud", "=debug,,"] {
            let sentence = parse(wrong, LogFormat::Json).unwrap_err();
            assert!(sentence.contains("say one of off, error, warn"), "{wrong}: {sentence}");
        }
    }
}
