//! `eventflow wait`: for an event of a process, for an answer, for an outcome.

use std::time::Duration;

use clap::{ArgGroup, Args};
use eventflow::{
    event::Group,
    spoke::{self, Spoke, SpokeConfig, Timestamp},
    wire::Ended,
};

use crate::{
    connect,
    failure::Failure,
    group::named,
    output::{Printer, Style, harmless, json, time},
    parse,
    stop::Stop,
};

/// What is left for a wait when what came before took all the time.
pub(crate) const LAST_LOOK: Duration = Duration::from_millis(1);

/// Wait for an event of a process, for the answer to an event, or for an outcome.
///
/// What is there already counts: of a process the first event in its log, after --after or --since if given.
/// It is printed as it comes. With --outcome the exit code is 1 if the outcome isn't success. If it doesn't come in
/// time the exit code is 4.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: eventflow wait orders order-1 --name paid --name cancelled --timeout 10s",
    group = ArgGroup::new("what").required(true).args(["domain", "answer_to", "outcome"])
)]
pub(crate) struct Wait {
    /// The domain
    #[arg(requires = "pid")]
    pub(crate) domain: Option<String>,
    /// The process
    #[arg(requires = "domain")]
    pub(crate) pid: Option<String>,
    /// Only an event of this name; may be repeated for one of several
    #[arg(long, value_name = "NAME", requires = "domain")]
    pub(crate) name: Vec<String>,
    /// Only what came after this event of the process
    #[arg(long, value_name = "ID", requires = "domain", conflicts_with = "since")]
    pub(crate) after: Option<String>,
    /// Only what came after this: 2030-01-31T12:00:00Z, 2030-01-31 (midnight UTC), milliseconds since 1970, or a span before now (1h)
    #[arg(long, value_name = "TIME", requires = "domain", value_parser = parse::moment)]
    pub(crate) since: Option<Timestamp>,
    /// Wait for an answer to this event, that is, for one with its id as rid
    #[arg(long, value_name = "ID")]
    pub(crate) answer_to: Option<String>,
    /// Wait until this event is done: success, dead or expired
    #[arg(long, value_name = "ID")]
    pub(crate) outcome: Option<String>,
    /// The outcome in this group [default: the default group]
    #[arg(long, value_name = "GROUP", conflicts_with_all = ["domain", "answer_to"], value_parser = parse::group)]
    pub(crate) group: Option<String>,
    /// Don't wait: only look
    #[arg(long, conflicts_with = "timeout")]
    pub(crate) now: bool,
    /// How long to wait, connecting included
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse::duration)]
    pub(crate) timeout: Duration,
}

/// Waits and prints.
pub(crate) async fn run(
    arguments: Wait,
    config: SpokeConfig,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    let began = std::time::Instant::now();
    let in_group = group(arguments.group.clone())?;
    let spoke = connect::connect(config, &stop).await?;
    let timeout = match arguments.now {
        true => Duration::ZERO,
        false => arguments.timeout.saturating_sub(began.elapsed()).max(LAST_LOOK),
    };
    let ended = match &arguments.outcome {
        Some(id) => Some(outcome(&spoke, &in_group, id, timeout, &mut printer, &stop).await?),
        None => {
            let waiting = connect::telling(&spoke, spoke.wait(arguments.wanted().timeout(timeout)));
            let event = stop.unless_requested(waiting).await?;
            printer.event(&event)?;
            None
        }
    };
    printer.flush()?;
    spoke.close().await;
    ended.map_or(Ok(()), |ended| verdict(&ended))
}

impl Wait {
    fn wanted(self) -> spoke::Wait {
        if let Some(id) = self.answer_to {
            return spoke::Wait::answer_to(id);
        }
        // Both are there, or the arguments would have been refused.
        let (domain, pid) = (self.domain.unwrap_or_default(), self.pid.unwrap_or_default());
        let wait = spoke::Wait::new(domain, pid).names(self.name);
        match (self.after, self.since) {
            (Some(id), _) => wait.after_event(id),
            (None, Some(moment)) => wait.after(moment),
            (None, None) => wait,
        }
    }
}

/// The group whose outcome is waited for, checked before a link is made; the default one has an empty name.
pub(crate) fn group(given: Option<String>) -> Result<String, Failure> {
    match given {
        Some(name) if !name.is_empty() => {
            let group = Group::parse(name).map_err(|error| Failure::misused(error.into()))?;
            Ok(group.to_string())
        }
        _ => Ok(String::new()),
    }
}

/// An outcome as programs read it.
#[derive(serde::Serialize)]
struct Outcome<'a> {
    id: &'a str,
    #[serde(flatten)]
    ended: &'a Ended,
}

async fn outcome(
    spoke: &Spoke,
    group: &str,
    id: &str,
    timeout: Duration,
    printer: &mut Printer,
    stop: &Stop,
) -> Result<Ended, Failure> {
    let group = named(spoke, group);
    let waiting = connect::telling(spoke, group.outcome(id, timeout));
    let ended = stop.unless_requested(waiting).await?;
    let line = match printer.style() {
        Style::Json => json(&Outcome { id, ended: &ended }),
        Style::People { .. } => told(&ended),
    };
    printer.line(&line)?;
    Ok(ended)
}

/// An outcome as people read it.
pub(crate) fn told(ended: &Ended) -> String {
    let Ended { state, consumer, ended, error } = ended;
    let by = consumer.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    let mut text = harmless(&format!("{state}{by} at {}", time(*ended, &chrono::Local)));
    // Several lines stand below, as `show` has them.
    let start = if error.lines().nth(1).is_some() { "\n           " } else { ": " };
    for line in error.lines() {
        text += start;
        text += &harmless(line);
    }
    text
}

/// Only success is one.
pub(crate) fn verdict(ended: &Ended) -> Result<(), Failure> {
    if ended.state == "success" { Ok(()) } else { Err(Failure::Silent { exit: 1 }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_several_lines_stands_below_the_outcome() {
        let told = |error: &str| {
            let ended = Ended { state: "dead".into(), consumer: None, ended: 0, error: error.into() };
            self::told(&ended)
        };
        assert!(told("exit code 1").ends_with(": exit code 1"));
        assert!(told("").lines().count() == 1 && !told("").ends_with(' '));
        let lines = told("exit code 1: no\u{1b}\ntry again\n");
        assert!(lines.ends_with("\n           exit code 1: no\u{FFFD}\n           try again"), "{lines}");
    }
}
