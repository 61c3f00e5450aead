//! `eventflow log`: the events of a process, a child process, an entity or a domain.

use std::time::Duration;

use clap::{ArgGroup, Args};
use eventflow::{
    event::code,
    spoke::{LogReader, Spoke, SpokeConfig, Timestamp},
};

use crate::{connect, failure::Failure, output::Printer, parse, stop::Stop};

/// Print an event log: of a process, a child process or an entity, oldest first; of a domain, newest first.
///
/// All of it is printed as it comes, or as much as --limit says. If there is no such event the exit code is 3.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: eventflow log orders order-1",
    group = ArgGroup::new("of").required(true).multiple(true).args(["domain", "entity"])
)]
pub(crate) struct Log {
    /// The domain; alone: all its events, newest first
    pub(crate) domain: Option<String>,
    /// The process
    #[arg(requires = "domain")]
    pub(crate) pid: Option<String>,
    /// Events that are associated with this child process of the domain
    #[arg(long, value_name = "PID", requires = "domain", conflicts_with = "pid")]
    pub(crate) child: Option<String>,
    /// Events that are associated with this entity; with a domain only those of the domain
    #[arg(long, value_name = "EID", conflicts_with_all = ["pid", "child"])]
    pub(crate) entity: Option<String>,
    /// Only events of this name; may be repeated for several
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Vec<String>,
    /// Only from here on: 2030-01-31T12:00:00Z, 2030-01-31 (midnight UTC), milliseconds since 1970, or a span before now (1h)
    #[arg(long, value_name = "TIME", value_parser = parse::moment)]
    pub(crate) from: Option<Timestamp>,
    /// Only before this, itself excluded
    #[arg(long, value_name = "TIME", value_parser = parse::moment)]
    pub(crate) to: Option<Timestamp>,
    /// At most so many events
    #[arg(long, value_name = "N", value_parser = parse::count)]
    pub(crate) limit: Option<u64>,
    /// How long to wait for each answer
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse::duration)]
    pub(crate) timeout: Duration,
}

/// Prints page by page.
pub(crate) async fn run(
    arguments: Log,
    mut config: SpokeConfig,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    config.request_deadline = arguments.timeout;
    let spoke = connect::connect(config, &stop).await?;
    let mut reader = arguments.reader(&spoke);
    let mut left = arguments.limit.unwrap_or(u64::MAX);
    let mut found = false;
    while left > 0 {
        let Some(events) = stop.unless_requested(reader.next_page()).await? else { break };
        for event in events.iter().take(usize::try_from(left).unwrap_or(usize::MAX)) {
            printer.event(event)?;
            found = true;
        }
        left = left.saturating_sub(events.len() as u64);
        printer.flush()?;
    }
    spoke.close().await;
    if found { Ok(()) } else { Err(Failure::new(code::EVENT_NOT_FOUND, arguments.nothing())) }
}

impl Log {
    /// Whether it asks for what comes after its own end.
    pub(crate) fn is_backwards(&self) -> bool {
        matches!((self.from, self.to), (Some(from), Some(to)) if from.as_millis() > to.as_millis())
    }

    fn reader(&self, spoke: &Spoke) -> LogReader {
        let domain = self.domain.as_deref().unwrap_or_default();
        let mut reader = match (&self.pid, &self.child, &self.entity) {
            (Some(pid), ..) => spoke.log(domain, pid),
            (_, Some(cpid), _) => spoke.child_log(domain, cpid),
            (.., Some(eid)) if self.domain.is_some() => spoke.entity_log(eid).domain(domain),
            (.., Some(eid)) => spoke.entity_log(eid),
            (None, None, None) => spoke.domain_log(domain),
        };
        reader = reader.names(&self.name);
        if let Some(from) = self.from {
            reader = reader.from(from);
        }
        if let Some(to) = self.to {
            reader = reader.to(to);
        }
        match self.limit.and_then(|limit| u32::try_from(limit).ok()) {
            // No more is read than is printed.
            Some(limit) => reader.page_size(limit),
            None => reader,
        }
    }

    fn nothing(&self) -> String {
        let mut of = Vec::new();
        for (what, which) in [
            ("of the process", &self.pid),
            ("of the child process", &self.child),
            ("of the entity", &self.entity),
            ("in the domain", &self.domain),
        ] {
            of.extend(which.as_ref().map(|which| format!(" {what} {which:?}")));
        }
        let narrowed = !self.name.is_empty() || self.from.is_some() || self.to.is_some();
        format!("no event{} is stored{}", of.concat(), if narrowed { " that was asked for" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::arguments::{Cli, Command};

    #[test]
    fn what_was_looked_for_in_vain_is_named() {
        let nothing = |line: &str| match Cli::try_parse_from(line.split_whitespace()).unwrap().command {
            Command::Log(log) => log.nothing(),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            nothing("eventflow log orders o-1"),
            r#"no event of the process "o-1" in the domain "orders" is stored"#
        );
        assert_eq!(
            nothing("eventflow log --entity c-4 --name paid"),
            r#"no event of the entity "c-4" is stored that was asked for"#
        );
    }
}
