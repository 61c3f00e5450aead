//! `eventflow subscribe`: print events as they come, or run commands for them.

mod handle;

use std::{future::Future, pin::pin, task::Poll};

use clap::Args;
use eventflow::{
    event::{Event, code},
    spoke::{Delivery, Since, SpokeConfig, Subscription},
};

use crate::{
    commands::{self, Commands, Run},
    connect,
    end::End,
    failure::{CUT_SHORT, Failure},
    output::{Printer, remark},
    parse::since,
    stop::Stop,
};

/// Print events as they come; every subscriber gets each of them.
///
/// Patterns: `*` alone matches all; between dots `*` is one segment, and `>` at the end one or more.
///
/// With --exec or --on a command gets each event, as those of `eventflow consume` do: one at a time, in the order of
/// the events. Nothing is recorded of how it ended. Events whose name has no command are passed over. With --count the
/// exit code is 1 if a command failed.
///
/// With --from stored events come first, then live ones, each once, even if the link is lost in between. JSON lines have
/// the position behind each event, to go on from another time.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow subscribe orders '*' --count 1")]
pub(crate) struct Subscribe {
    /// Domain or pattern
    pub(crate) domain: String,
    /// Name or pattern
    #[arg(default_value = "*")]
    pub(crate) name: String,
    /// From where on: `all` that is stored; a time, or a span before now such as 1h; after the event of an id (id:ID if it
    /// looks like another of these); after a position [default: what comes from now on]
    #[arg(long, value_name = "all|TIME|ID|POSITION", value_parser = since)]
    pub(crate) from: Option<Since>,
    #[command(flatten)]
    pub(crate) run: Run,
    #[command(flatten)]
    pub(crate) end: End,
}

/// Prints or handles events until a signal, the count or the time is reached.
pub(crate) async fn run(
    arguments: Subscribe,
    config: SpokeConfig,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    let Subscribe { domain, name, from, run, end } = arguments;
    commands::doubt(&domain, &name, &run);
    let spoke = connect::connect(config, &stop).await?;
    let mut events = match from {
        Some(since) => spoke.subscribe_from(&domain, &name, since).await?,
        None => spoke.subscribe(&domain, &name).await?,
    };
    let hub = spoke.status().hub.map(|hub| format!(" at hub {hub}")).unwrap_or_default();
    printer.greet(&format!("subscribed to {domain} {name}{hub}; Ctrl-C ends it"));
    let work = async {
        match Commands::of(run) {
            Some(commands) => handle::run(&mut events, &commands, &end, &stop).await,
            None => print(&mut events, &mut printer, &end, &stop).await,
        }
    };
    let ended = connect::telling(&spoke, work).await;
    printer.flush()?;
    drop(events);
    tokio::select! {
        _ = spoke.close() => ended,
        () = stop.forced() => Err(CUT_SHORT),
    }
}

async fn print(
    events: &mut Subscription,
    printer: &mut Printer,
    end: &End,
    stop: &Stop,
) -> Result<(), Failure> {
    let mut seen = 0;
    let printing = async {
        while end.count.is_none_or(|count| seen < count) {
            // What comes at once is written at once.
            let delivery = match ready(events.next()).await {
                Some(delivery) => delivery,
                None => {
                    printer.flush()?;
                    events.next().await
                }
            };
            if let Some(Delivery::Removed { from, to, events }) = delivery {
                printer.removed(from, to, events)?;
            }
            if let Some((event, _)) = taken(delivery, events)? {
                printer.event_at(&event, events.position())?;
                seen += 1;
            }
        }
        Ok(())
    };
    tokio::select! {
        ended = printing => ended,
        () = stop.requested() => Ok(()),
        () = end.elapsed() => end.in_time(seen),
    }
}

/// The event of a delivery, with its number; what else it may be is remarked.
fn taken(delivery: Option<Delivery>, events: &Subscription) -> Result<Option<(Event, u64)>, Failure> {
    match delivery {
        Some(Delivery::Event { event, seq }) => return Ok(Some((event, seq))),
        Some(Delivery::Gap { from, to }) if from < to => {
            remark(&format!("events numbered {} to {to} may be missing", from + 1));
        }
        Some(Delivery::Removed { from, to, events }) => {
            let (what, are) = if events == 1 { ("event", "is") } else { ("events", "are") };
            remark(&format!(
                "{events} {what} numbered {from} to {to} {are} gone: the hub's retention removed them"
            ));
        }
        Some(Delivery::Lagged) => remark("too slow: events were left out"),
        Some(_) => {}
        None => return Err(lost(events)),
    }
    Ok(None)
}

fn lost(events: &Subscription) -> Failure {
    match events.fault() {
        Some(fault) => Failure::new(&fault.code, format!("the subscription ended: {}", fault.message)),
        None => Failure::new(code::CLOSED, "the subscription ended"),
    }
}

/// The future's value if it has one now. The future is dropped otherwise, so it must be safe to cancel.
async fn ready<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn ready_takes_only_what_is_there() {
        assert_eq!(ready(async { 1 }).await, Some(1));
        assert_eq!(ready(std::future::pending::<()>()).await, None);
    }
}
