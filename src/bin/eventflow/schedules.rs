//! `eventflow schedules`: what waits for its time.

use std::time::Duration;

use chrono::Local;
use clap::Args;
use eventflow::{
    event::code,
    spoke::{SpokeConfig, Timestamp},
    wire::ScheduledEvent,
};

use crate::{
    connect,
    failure::Failure,
    output::{Printer, Style, harmless, json, time},
    parse,
    stop::Stop,
};

/// Print the events that wait for their time, first what is due first.
///
/// To move one, cancel it and schedule it again. Recurring schedules are listed by `eventflow recur list`. If nothing waits the exit code
/// is 3.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow schedules --domain orders --to 7d")]
pub(crate) struct Schedules {
    /// Only events of this domain or pattern
    #[arg(long, value_name = "DOMAIN")]
    domain: Option<String>,
    /// Only events of this name or pattern
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Only what is due then or later: a time, or so long from now (24h)
    #[arg(long, value_name = "TIME", value_parser = parse::ahead)]
    pub(crate) from: Option<Timestamp>,
    /// Only what is due before: a time, or so long from now (24h)
    #[arg(long, value_name = "TIME", value_parser = parse::ahead)]
    pub(crate) to: Option<Timestamp>,
    /// At most so many events
    #[arg(long, value_name = "N", value_parser = parse::count)]
    limit: Option<u64>,
    /// How long to wait for each answer
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse::duration)]
    pub(crate) timeout: Duration,
}

impl Schedules {
    /// Nothing can lie between the two.
    pub(crate) fn is_backwards(&self) -> bool {
        self.from.zip(self.to).is_some_and(|(from, to)| from.as_millis() > to.as_millis())
    }
}

/// Prints page by page.
pub(crate) async fn run(
    arguments: Schedules,
    mut config: SpokeConfig,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    let Schedules { domain, name, from, to, limit, timeout } = arguments;
    config.request_deadline = timeout;
    let spoke = connect::connect(config, &stop).await?;
    let mut reader = spoke.schedules();
    if let Some(domain) = &domain {
        reader = reader.domain(domain);
    }
    if let Some(name) = &name {
        reader = reader.name(name);
    }
    if let Some(from) = from {
        reader = reader.from(from);
    }
    if let Some(to) = to {
        reader = reader.to(to);
    }
    if let Some(limit) = limit.and_then(|limit| u32::try_from(limit).ok()) {
        reader = reader.page_size(limit);
    }
    let mut left = limit.unwrap_or(u64::MAX);
    let mut found = false;
    while left > 0 {
        let Some(page) = stop.unless_requested(reader.next_page()).await? else { break };
        for event in page.iter().take(usize::try_from(left).unwrap_or(usize::MAX)) {
            printer.line(&match printer.style() {
                Style::Json => json(event),
                Style::People { .. } => line(event, |millis| time(millis, &Local)),
            })?;
            found = true;
        }
        left = left.saturating_sub(page.len() as u64);
        printer.flush()?;
    }
    spoke.close().await;
    if found {
        return Ok(());
    }
    Err(Failure::new(code::SCHEDULE_NOT_FOUND, "no event waits for its time that is as you say"))
}

fn line(event: &ScheduledEvent, time: impl Fn(i64) -> String) -> String {
    let ScheduledEvent { id, due, domain, name, pid, .. } = event;
    harmless(&format!("{}  {id}  {domain} {name} {pid}", time(*due)))
}
