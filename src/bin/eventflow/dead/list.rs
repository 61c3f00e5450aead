//! `eventflow dead list`.

use chrono::Local;
use clap::Args;
use eventflow::{spoke::SpokeConfig, wire};

use super::{In, Narrowed, none};
use crate::{
    connect,
    failure::Failure,
    output::{Printer, Style, harmless, json, time},
    parse,
    stop::Stop,
};

/// Print the dead events of a group, in the order of the events: when and why each was given up, after how many attempts.
///
/// If there is none the exit code is 3.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow dead list --domain orders")]
pub(super) struct List {
    #[command(flatten)]
    pub(super) of: In,
    #[command(flatten)]
    narrowed: Narrowed,
    /// At most so many events
    #[arg(long, value_name = "N", value_parser = parse::count)]
    limit: Option<u64>,
}

/// Prints page by page.
pub(super) async fn run(
    arguments: List,
    config: SpokeConfig,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    let List { of, narrowed, limit } = arguments;
    let spoke = connect::connect(config, &stop).await?;
    let mut reader = narrowed.narrow(of.of(&spoke).dead());
    if let Some(limit) = limit.and_then(|limit| u32::try_from(limit).ok()) {
        reader = reader.page_size(limit);
    }
    let mut left = limit.unwrap_or(u64::MAX);
    let mut found = false;
    while left > 0 {
        let Some(page) = stop.unless_requested(reader.next_page()).await? else { break };
        for dead in page.iter().take(usize::try_from(left).unwrap_or(usize::MAX)) {
            printer.line(&match printer.style() {
                Style::Json => json(dead),
                Style::People { .. } => line(dead, |millis| time(millis, &Local)),
            })?;
            found = true;
        }
        left = left.saturating_sub(page.len() as u64);
        printer.flush()?;
    }
    let ended = if found { Ok(()) } else { Err(none(&spoke, &of, &narrowed).await) };
    spoke.close().await;
    ended
}

fn line(dead: &wire::Dead, time: impl Fn(i64) -> String) -> String {
    let wire::Dead { id, domain, name, pid, ended, round, attempts, reason, error, .. } = dead;
    let round = if *round > 1 { format!(" in round {round}") } else { String::new() };
    let times = if *attempts == 1 { "attempt" } else { "attempts" };
    let why = last_line(error).map(|line| format!(": {line}")).unwrap_or_default();
    harmless(&format!(
        "{}  {id}  {domain} {name} {pid}  {attempts} {times}{round}, {reason}{why}",
        time(*ended)
    ))
}

/// What is mostly the reason: programs say last why they end.
fn last_line(error: &str) -> Option<&str> {
    error.lines().map(str::trim_end).rfind(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use eventflow::event::{Domain, EventId, Name, Pid};

    use super::*;

    #[test]
    fn a_line_says_when_and_why() {
        let mut dead = wire::Dead {
            id: EventId::parse("e1").unwrap(),
            domain: Domain::parse("orders").unwrap(),
            name: Name::parse("created").unwrap(),
            pid: Pid::parse("order-1").unwrap(),
            ended: 9,
            consumer: None,
            round: 1,
            attempts: 5,
            reason: "nack".to_owned(),
            error: "looking\nno such order\n\n".to_owned(),
        };
        let told = |dead: &wire::Dead| line(dead, |millis| format!("t{millis}"));
        assert_eq!(told(&dead), "t9  e1  orders created order-1  5 attempts, nack: no such order");
        dead = wire::Dead { round: 2, attempts: 1, error: String::new(), reason: "given up".into(), ..dead };
        assert_eq!(told(&dead), "t9  e1  orders created order-1  1 attempt in round 2, given up");
    }
}
