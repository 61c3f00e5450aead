//! `eventflow consume`: work on events, by a command or by printing them.

mod counts;
mod desk;
mod found;
mod work;

use std::{pin::pin, time::Duration};

use clap::Args;
use eventflow::spoke::{self, SpokeConfig, StartAt};

use self::{
    desk::{Desk, Work},
    found::Found,
};
use crate::{
    commands::{self, Commands, Run},
    connect,
    end::End,
    failure::{CUT_SHORT, Failure},
    output::{Printer, remark},
    parse,
    stop::Stop,
};

/// Events that are asked for ahead of the work.
const CREDIT: u32 = 64;

/// Work on events; each goes to one consumer, and how it ended is recorded.
///
/// With --exec or --on a command gets the event as JSON on its standard input, and its fields as EVENTFLOW_EVENT_ID,
/// _TIMESTAMP, _DOMAIN, _NAME, _PID, _RID, _SEQ and _ATTEMPT (1 at first). Exit code 0: done. 100: failed for good, the
/// event is dead. Any other: failed, with the end of its standard error as the reason; it is tried again after the
/// group's back-off, until the group's --max-attempts. If the shell can't run it at all (126, 127), the event is handed
/// back and the consumer ends. An event whose name has no command has failed. Without commands each event is
/// printed and done.
///
/// A command may take as long as it likes: the event is held for as long as this program lives. If it doesn't, or
/// nothing is heard of it for the time of --lease, somebody else gets the event.
///
/// With --group the consumers of that name share the work, with outcomes of their own for each event; events that come
/// while none is connected wait for them.
///
/// To forgive an error, say so in the command: --exec './work || ./forgive'.
///
/// With --count the exit code is 1 if a command failed.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow consume orders created --exec 'cat' --concurrency 4 --count 1")]
pub(crate) struct Consume {
    /// Domain or pattern
    pub(crate) domain: String,
    /// Name or pattern
    #[arg(default_value = "*")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) run: Run,
    /// Share the work with this group [default: the default one, which npm peers know]
    #[arg(long, value_name = "GROUP", value_parser = parse::group)]
    pub(crate) group: Option<String>,
    /// Where a group starts that didn't ask for these events before: all, a time or a span before now (24h), or after the event of this id [default: now]
    #[arg(long, value_name = "all|TIME|ID", requires = "group", value_parser = parse::start)]
    pub(crate) from: Option<StartAt>,
    /// Give an event to somebody else when nothing was heard of this program for so long, from 1s to 1h [default: as the hub says]
    #[arg(long, value_name = "DURATION", value_parser = parse::lease)]
    pub(crate) lease: Option<Duration>,
    /// Kill a command that takes longer: its event has failed
    #[arg(long, value_name = "DURATION", value_parser = parse::duration)]
    pub(crate) exec_timeout: Option<Duration>,
    /// Commands that run at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) concurrency: u32,
    #[command(flatten)]
    pub(crate) end: End,
}

/// Consumes until a signal, the count or the time is reached; then ends what is in hand.
pub(crate) async fn run(
    arguments: Consume,
    config: SpokeConfig,
    printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    let Consume { domain, name, run, group, from, lease, exec_timeout, concurrency, end } = arguments;
    commands::doubt(&domain, &name, &run);
    // No more than will be worked on, so that others can have the rest.
    let wanted = end.count.map_or(u32::MAX, |count| u32::try_from(count).unwrap_or(u32::MAX));
    let concurrency = concurrency.min(wanted);
    let credit = CREDIT.min(wanted).max(concurrency);
    let spoke = connect::connect(config, &stop).await?;
    let group = group.filter(|group| !group.is_empty());
    let shared = match &group {
        Some(group) => {
            let found = found::look(&spoke, group, [&domain, &name], &stop).await?;
            if found == Found::Bound && from.is_some() && !printer.is_quiet() {
                remark(&format!(
                    "the group {group} exists and gets these events: --from has no effect; see `eventflow group seek`"
                ));
            }
            format!(" in group {group}{}", found.told(from.is_some()))
        }
        None => String::new(),
    };
    let watched = format!("{domain} {name}{shared}");
    let mut consume = spoke::Consume::new(domain, name).concurrency(concurrency).credit(credit);
    if let Some(group) = group {
        consume = consume.group(group);
    }
    if let Some(start) = from {
        consume = consume.from(start);
    }
    if let Some(lease) = lease {
        consume = consume.lease(lease);
    }
    let mut claims = spoke.claims(consume).await?;
    // To print is done in order; only the acks are then under way, up to the credit.
    let hub = spoke.status().hub.map(|hub| format!(" at hub {hub}")).unwrap_or_default();
    printer.greet(&format!("consuming {watched}{hub}; Ctrl-C ends it"));
    let (at_once, work) = match Commands::of(run) {
        Some(commands) => (concurrency, Work::Run(commands, exec_timeout)),
        None => (credit, Work::Print(printer)),
    };
    let mut desk = Desk::new(work, at_once as usize, stop.clone());

    let mut absences = pin!(connect::tell_absences(&spoke));
    let ended = tokio::select! {
        ended = desk.take_work(&mut claims, &end) => ended,
        never = &mut absences => match never {},
    };
    if stop.is_requested() {
        desk.tell_what_runs();
    }
    let drained = tokio::select! {
        biased;
        () = stop.forced() => None,
        drained = desk.drain(&claims) => Some(drained),
        never = &mut absences => match never {},
    };
    let ended = match drained {
        // The second signal may have ended the last command first.
        Some(drained) if desk.killed == 0 => ended.and(drained),
        _ => {
            desk.cut_short().await;
            return Err(CUT_SHORT);
        }
    };
    drop(claims);
    tokio::select! {
        _ = spoke.close() => {}
        () = stop.forced() => return Err(CUT_SHORT),
    }
    remark(&desk.counts.line());
    ended?;
    end.in_time(desk.counts.finished())?;
    if end.count.is_some() && desk.counts.failed > 0 { Err(Failure::Silent { exit: 1 }) } else { Ok(()) }
}
