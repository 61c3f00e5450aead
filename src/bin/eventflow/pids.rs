//! `eventflow pids`: which processes a domain knows.

use std::time::Duration;

use clap::Args;
use eventflow::{
    event::{Pid, code},
    spoke::SpokeConfig,
};

use crate::{
    connect,
    failure::Failure,
    output::{Printer, Style, harmless, json},
    parse,
    stop::Stop,
};

/// Print the processes of a domain, each once, in rising order.
///
/// If the domain has no event the exit code is 3.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow pids orders")]
pub(crate) struct Pids {
    /// The domain
    pub(crate) domain: String,
    /// At most so many processes
    #[arg(long, value_name = "N", value_parser = parse::count)]
    pub(crate) limit: Option<u64>,
    /// How long to wait for each answer
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse::duration)]
    pub(crate) timeout: Duration,
}

/// A process as programs read it.
#[derive(serde::Serialize)]
struct Line<'a> {
    pid: &'a Pid,
}

/// Prints page by page.
pub(crate) async fn run(
    arguments: Pids,
    mut config: SpokeConfig,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    config.request_deadline = arguments.timeout;
    let spoke = connect::connect(config, &stop).await?;
    let mut reader = spoke.pids(&arguments.domain);
    if let Some(limit) = arguments.limit.and_then(|limit| u32::try_from(limit).ok()) {
        reader = reader.page_size(limit);
    }
    let mut left = arguments.limit.unwrap_or(u64::MAX);
    let mut found = false;
    while left > 0 {
        let Some(pids) = stop.unless_requested(reader.next_page()).await? else { break };
        for pid in pids.iter().take(usize::try_from(left).unwrap_or(usize::MAX)) {
            printer.line(&match printer.style() {
                Style::Json => json(&Line { pid }),
                Style::People { .. } => harmless(pid),
            })?;
            found = true;
        }
        left = left.saturating_sub(pids.len() as u64);
        printer.flush()?;
    }
    spoke.close().await;
    if found {
        return Ok(());
    }
    let sentence = format!("no event is in the domain {:?}", arguments.domain);
    Err(Failure::new(code::EVENT_NOT_FOUND, sentence))
}
