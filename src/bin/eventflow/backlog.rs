//! `eventflow backlog`: what waits, is in hand, failed.

use std::time::Duration;

use clap::Args;
use eventflow::{
    event,
    spoke::{SpokeConfig, Timestamp},
    wire::Backlog,
};

use crate::{
    connect,
    failure::Failure,
    group::{called, named},
    output::{Printer, Style, json},
    parse,
    stop::Stop,
    table::{span, table},
};

/// Print how many events of each group wait, are in hand, wait for a retry and are dead, and how old the oldest is.
///
/// Of one group its connected consumers too, with how many events each may hold and holds. If there is no such group
/// the exit code is 3.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow backlog")]
pub(crate) struct Arguments {
    /// Only this group; '' is the default one
    #[arg(value_parser = parse::group)]
    pub(crate) group: Option<String>,
    /// How long to wait for the answer
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse::duration)]
    pub(crate) timeout: Duration,
}

/// Asks and prints.
pub(crate) async fn run(
    arguments: Arguments,
    mut config: SpokeConfig,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    config.request_deadline = arguments.timeout;
    let spoke = connect::connect(config, &stop).await?;
    let groups = match &arguments.group {
        Some(name) => vec![stop.unless_requested(named(&spoke, name).backlog()).await?],
        None => stop.unless_requested(spoke.backlog()).await?,
    };
    spoke.close().await;
    let lines = match printer.style() {
        Style::Json => groups.iter().map(json).collect(),
        Style::People { .. } => page(&groups, arguments.group.is_some(), Timestamp::now().as_millis()),
    };
    for line in lines {
        printer.line(&line)?;
    }
    Ok(printer.flush()?)
}

fn page(groups: &[Backlog], with_consumers: bool, now: i64) -> Vec<String> {
    let head = ["group", "pending", "in flight", "retrying", "dead", "oldest", "consumers"];
    let mut lines = table(head, groups.iter().map(|stands| row(stands, now)).collect());
    if with_consumers {
        lines.extend(groups.iter().flat_map(consumers));
    }
    lines
}

fn row(stands: &Backlog, now: i64) -> [String; 7] {
    let name = stands.group.as_ref().map(event::Group::as_str).unwrap_or_default();
    let age = |oldest| span(u64::try_from(now.saturating_sub(oldest)).unwrap_or_default());
    [
        called(name).to_owned(),
        // Not counted yet, after a start say.
        stands.pending.map_or("-".to_owned(), |count| count.to_string()),
        stands.in_flight.to_string(),
        stands.retrying.to_string(),
        stands.dead.to_string(),
        stands.oldest.map_or("-".to_owned(), age),
        stands.consumers.to_string(),
    ]
}

/// The connected consumers of a group, below a line that is left free; nothing if there is none.
pub(crate) fn consumers(stands: &Backlog) -> Vec<String> {
    if stands.connected.is_empty() {
        return Vec::new();
    }
    let rows = stands.connected.iter().map(|consumer| {
        let (domain, name) = (consumer.domain.to_string(), consumer.name.to_string());
        [consumer.uid.to_string(), domain, name, consumer.holds.to_string(), consumer.credit.to_string()]
    });
    let mut lines = vec![String::new()];
    lines.extend(table(["consumer", "domain", "name", "holds", "credit"], rows.collect()));
    lines
}

#[cfg(test)]
mod tests {
    use eventflow::{
        event::{Pattern, Uid},
        wire::{ConsumerInfo, GroupSettings},
    };

    use super::*;

    #[test]
    fn a_row_for_each_group_and_the_consumers_of_one() {
        let default = Backlog {
            group: None,
            settings: GroupSettings::default(),
            pending: None,
            in_flight: 0,
            retrying: 0,
            dead: 3,
            oldest: None,
            consumers: 0,
            bindings: Vec::new(),
            connected: Vec::new(),
        };
        let consumer = ConsumerInfo {
            uid: Uid::parse("W.SPOKE").unwrap(),
            domain: Pattern::parse("orders").unwrap(),
            name: Pattern::parse("*").unwrap(),
            credit: 64,
            holds: 2,
        };
        let billing = Backlog {
            group: Some(event::Group::parse("billing").unwrap()),
            pending: Some(12),
            in_flight: 2,
            oldest: Some(1_000),
            consumers: 1,
            connected: vec![consumer],
            ..default.clone()
        };
        let lines = page(&[default, billing.clone()], false, 66_000);
        let expected = [
            "group      pending  in flight  retrying  dead  oldest  consumers",
            "(default)        -          0         0     3  -               0",
            "billing         12          2         0     3  1m 5s           1",
        ];
        assert_eq!(lines, expected);
        let lines = page(&[billing], true, 66_000);
        assert_eq!(
            lines[2..],
            ["", "consumer  domain  name  holds  credit", "W.SPOKE   orders  *         2      64"]
        );
    }
}
