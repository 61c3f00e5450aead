//! When a command that could go on for ever ends by itself.

use std::time::Duration;

use clap::Args;
use eventflow::event::code;

use crate::{failure::Failure, parse};

/// When to end by itself.
#[derive(Debug, Clone, Args)]
pub(crate) struct End {
    /// End after so many events
    #[arg(long, value_name = "N", value_parser = parse::count)]
    pub(crate) count: Option<u64>,
    /// End after so long; with --count, exit code 4 if there were fewer
    #[arg(long, value_name = "DURATION", value_parser = parse::duration)]
    pub(crate) timeout: Option<Duration>,
}

impl End {
    /// Waits for the time after which to end, for ever if there is none.
    pub(crate) async fn elapsed(&self) {
        match self.timeout {
            Some(timeout) => tokio::time::sleep(timeout).await,
            None => std::future::pending().await,
        }
    }

    /// The verdict when the time is over: with a count, fewer are too few.
    pub(crate) fn in_time(&self, seen: u64) -> Result<(), Failure> {
        match (self.count, self.timeout) {
            (Some(count), Some(timeout)) if seen < count => Err(Failure::new(
                code::TIMEOUT,
                format!("{seen} of {count} events came within {:.1} s", timeout.as_secs_f64()),
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_in_time_is_a_failure_only_with_a_count() {
        let end = |count| End { count, timeout: Some(Duration::from_secs(1)) };
        assert!(end(None).in_time(0).is_ok());
        assert!(end(Some(2)).in_time(2).is_ok());
        assert!(matches!(end(Some(2)).in_time(1), Err(Failure::Told { code, .. }) if code == code::TIMEOUT));
    }
}
