//! `eventflow delete`: an event, or the log of a process.

use std::time::Duration;

use clap::{ArgGroup, Args};
use eventflow::{event::code, spoke::SpokeConfig};

use crate::{
    confirm::Sure,
    connect,
    failure::Failure,
    output::{Printer, Style, json},
    parse,
    stop::Stop,
};

/// Delete an event, or the log of a process, with outcomes, attempts, schedules and associations.
///
/// What a consumer is working on isn't recalled: its ack comes too late then. What is scheduled and hasn't run is in
/// no log and stays: `eventflow cancel` removes it, and so does deleting it by its id. On a terminal it asks before a whole log
/// goes. If there is nothing to delete the exit code is 3.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: eventflow delete 01J8Z3N0Q4X5V6W7Y8Z9A0B1C2",
    group = ArgGroup::new("what").required(true).args(["id", "log"])
)]
pub(crate) struct Delete {
    /// The event's id
    pub(crate) id: Option<String>,
    /// Instead of an event the whole log of a process: its domain and its pid
    #[arg(long, num_args = 2, value_names = ["DOMAIN", "PID"])]
    pub(crate) log: Option<Vec<String>>,
    #[command(flatten)]
    pub(crate) sure: Sure,
    /// How long to wait for the answer
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse::duration)]
    pub(crate) timeout: Duration,
}

/// Deletes.
pub(crate) async fn run(
    arguments: Delete,
    mut config: SpokeConfig,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    config.request_deadline = arguments.timeout;
    if let Some([domain, pid]) = arguments.log.as_deref() {
        let question = format!("delete all events of the process {pid:?} in the domain {domain:?}?");
        arguments.sure.confirm(&question, &stop).await?;
        return log(domain, pid, config, printer, stop).await;
    }
    let id = arguments.id.unwrap_or_default();
    let spoke = connect::connect(config, &stop).await?;
    stop.unless_forced(spoke.delete(&id)).await?;
    spoke.close().await;
    printer.done("deleted", &id)?;
    Ok(printer.flush()?)
}

async fn log(
    domain: &str,
    pid: &str,
    config: SpokeConfig,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    let spoke = connect::connect(config, &stop).await?;
    let deleted = stop.unless_forced(spoke.delete_log(domain, pid)).await?;
    spoke.close().await;
    if deleted == 0 {
        let sentence = format!("no event of the process {pid:?} is in the domain {domain:?}");
        return Err(Failure::new(code::EVENT_NOT_FOUND, sentence));
    }
    printer.line(&match printer.style() {
        Style::Json => json(&serde_json::json!({ "domain": domain, "pid": pid, "deleted": deleted })),
        Style::People { .. } => {
            let events = if deleted == 1 { "event" } else { "events" };
            format!("deleted {deleted} {events} of {pid} in {domain}")
        }
    })?;
    Ok(printer.flush()?)
}
