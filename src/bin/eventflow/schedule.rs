//! `eventflow schedule` and `eventflow cancel`: events that are published at their time.

use std::time::Duration;

use clap::Args;
use eventflow::{
    event::{EventId, code},
    spoke::{self, Scheduled, SpokeConfig, Timestamp},
};

use crate::{
    connect,
    failure::Failure,
    fields::Fields,
    output::{Printer, Style, json, time},
    parse,
    stop::Stop,
};

/// What is said of a schedule without one.
pub(crate) const WITHOUT_DATE: &str = "schedule needs a date: give --in DURATION or --at TIME";

/// Publish an event at its time.
///
/// Say when by --in or by --at. The hub keeps it; if no hub is up then, it is published at the next start. The id that is printed is what
/// `eventflow cancel` and --replaces take. To schedule the same id, content and date again is harmless.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow schedule orders reminded --pid order-1 --id reminder-1 --in 1h")]
pub(crate) struct Schedule {
    /// The domain
    pub(crate) domain: String,
    /// What is to happen
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) fields: Fields,
    /// So long from now: 30s, 5m, 24h, 7d
    #[arg(long = "in", value_name = "DURATION", conflicts_with = "at", value_parser = parse::delay, allow_hyphen_values = true)]
    pub(crate) after: Option<Duration>,
    /// At this time: 2030-01-31T12:00:00Z, 2030-01-31 (midnight UTC), or milliseconds since 1970
    #[arg(long, value_name = "TIME", value_parser = parse::date, allow_hyphen_values = true)]
    pub(crate) at: Option<Timestamp>,
    /// In the place of this scheduled event, which may have the same id: both, or nothing
    #[arg(long, value_name = "ID")]
    replaces: Option<String>,
    /// How long to try until the hub has it, connecting included
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse::duration)]
    pub(crate) timeout: Duration,
}

impl Schedule {
    /// When, if it is said.
    pub(crate) fn when(&self) -> Option<spoke::Schedule> {
        self.after.map(spoke::Schedule::after).or_else(|| self.at.map(spoke::Schedule::at))
    }
}

/// Take a schedule back that hasn't run.
///
/// The exit code is 3 if no event of this id is scheduled, and 1 if it was published already.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow cancel reminder-1")]
pub(crate) struct Cancel {
    /// The event's id
    pub(crate) id: String,
    /// How long to wait for the answer
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse::duration)]
    pub(crate) timeout: Duration,
}

/// Schedules what the arguments say.
pub(crate) async fn run(
    arguments: Schedule,
    mut config: SpokeConfig,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    let Some(when) = arguments.when() else {
        return Err(Failure::new(code::SCHEDULE_INVALID_DATE, WITHOUT_DATE));
    };
    let Schedule { domain, name, fields, replaces, timeout, .. } = arguments;
    let (_, event) = fields.event(&domain, &name)?;
    config.publish_deadline = timeout;
    let spoke = connect::connect(config, &stop).await?;
    let scheduled = match replaces {
        Some(old) => stop.unless_forced(spoke.reschedule(&old, event, when)).await?,
        None => stop.unless_forced(spoke.schedule(event, when)).await?,
    };
    spoke.close().await;
    printer.line(&told(&scheduled, printer.style()))?;
    Ok(printer.flush()?)
}

/// Cancels.
pub(crate) async fn cancel(
    arguments: Cancel,
    mut config: SpokeConfig,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    config.request_deadline = arguments.timeout;
    let spoke = connect::connect(config, &stop).await?;
    stop.unless_forced(spoke.cancel(&arguments.id)).await?;
    spoke.close().await;
    printer.done("cancelled", &arguments.id)?;
    Ok(printer.flush()?)
}

/// A schedule as programs read it.
#[derive(serde::Serialize)]
struct Answer<'a> {
    id: &'a EventId,
    due: i64,
    duplicate: bool,
}

fn told(scheduled: &Scheduled, style: Style) -> String {
    let Scheduled { id, due, fresh, .. } = scheduled;
    match style {
        Style::Json => json(&Answer { id, due: *due, duplicate: !fresh }),
        Style::People { .. } => {
            let word = if *fresh { "scheduled" } else { "was scheduled already:" };
            format!("{word} {id} for {}", time(*due, &chrono::Local))
        }
    }
}
