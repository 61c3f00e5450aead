//! `eventflow recur create`.

use std::time::Duration;

use chrono::Local;
use clap::{Args, ValueEnum};
use eventflow::{
    event::code,
    spoke::{ChangeError, Recurrence, SpokeConfig, Timestamp},
    wire,
};

use crate::{
    connect,
    failure::{Failure, sentence},
    fields,
    output::{Printer, Style, harmless, json, time},
    parse,
    stop::Stop,
};

/// Make a recurring schedule, or replace one.
///
/// The rule is five fields of cron (minute, hour, day of month, month, day of week), six with the second before them, @hourly,
/// @daily, @weekly, @monthly, @yearly, or `@every 90s`. A time on the wall that clocks jump over is due right after the jump, one
/// that they show twice is due once. To make the same again is harmless; other content needs --replace.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: eventflow recur create nightly '30 2 * * *' reports due --zone Europe/Berlin"
)]
pub(super) struct Create {
    /// The schedule's name
    name: String,
    /// When: '30 2 * * MON-FRI', @daily, '@every 90s'
    rule: String,
    /// The domain of its events
    domain: String,
    /// Their name
    event: String,
    /// The process of all its events [default: each is a process of its own]
    #[arg(long)]
    pid: Option<String>,
    /// The payload; `-`: standard input, @FILE: a file [default: null]
    #[arg(long, value_name = "JSON|-|@FILE")]
    data: Option<String>,
    /// The time zone of the rule
    #[arg(long, value_name = "NAME", default_value = "UTC")]
    zone: String,
    /// What becomes of runs that were missed since no hub was up
    #[arg(long, value_name = "POLICY", default_value = "once")]
    missed: Missed,
    /// How old missed runs may be to run, with --missed all
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = parse::delay)]
    window: Duration,
    /// Not before this time; an interval begins with it
    #[arg(long, value_name = "TIME", value_parser = parse::date)]
    start: Option<Timestamp>,
    /// Not after this time
    #[arg(long, value_name = "TIME", value_parser = parse::date)]
    end: Option<Timestamp>,
    /// Don't run it until it is resumed
    #[arg(long)]
    paused: bool,
    /// Replace a schedule of this name that has other content; its times count anew
    #[arg(long)]
    replace: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Missed {
    /// They run once, for the newest of them
    Once,
    /// Each runs that isn't older than --window, the newest 1,000 of them
    All,
    /// None of them runs
    Skip,
}

impl From<Missed> for wire::Missed {
    fn from(missed: Missed) -> Self {
        match missed {
            Missed::Once => wire::Missed::Once,
            Missed::All => wire::Missed::All,
            Missed::Skip => wire::Missed::Skip,
        }
    }
}

impl Create {
    fn recurrence(self) -> Result<Recurrence, Failure> {
        let mut recurrence = Recurrence::new(self.name, self.rule, self.domain, self.event)
            .zone(self.zone)
            .missed(self.missed.into())
            .window(self.window);
        if let Some(pid) = self.pid {
            recurrence = recurrence.pid(pid);
        }
        if let Some(given) = &self.data {
            let data = fields::data(given)?;
            recurrence = recurrence.data(&data).map_err(|error| Failure::misused(error.into()))?;
        }
        if let Some(start) = self.start {
            recurrence = recurrence.start(start);
        }
        if let Some(end) = self.end {
            recurrence = recurrence.end(end);
        }
        if self.paused {
            recurrence = recurrence.paused();
        }
        Ok(if self.replace { recurrence.replace() } else { recurrence })
    }
}

/// The hub doesn't know how its clients say that a schedule is to be replaced.
fn refused(error: ChangeError) -> Failure {
    match error.code() {
        code::RECURRING_CONFLICT => {
            Failure::new(code::RECURRING_CONFLICT, format!("{}; --replace replaces it", sentence(&error)))
        }
        _ => error.into(),
    }
}

pub(super) async fn run(
    arguments: Create,
    config: SpokeConfig,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    let name = arguments.name.clone();
    let recurrence = arguments.recurrence()?;
    let spoke = connect::connect(config, &stop).await?;
    let recurred = stop.unless_forced(async { spoke.recur(recurrence).await.map_err(refused) }).await?;
    spoke.close().await;
    let made = recurred.made.as_str();
    let line = match printer.style() {
        Style::Json => json(&serde_json::json!({ "name": name, "next": recurred.next, "made": made })),
        Style::People { .. } => {
            let next = recurred.next.map_or_else(|| "paused".to_owned(), |due| time(due, &Local));
            format!("{} ({made}), next: {next}", harmless(&name))
        }
    };
    printer.line(&line)?;
    Ok(printer.flush()?)
}
