//! `eventflow subscribe`: print events as they come.

use std::{future::Future, pin::pin, task::Poll};

use eventflow::{
    event::code,
    spoke::{Delivery, SpokeConfig, Subscription},
};

use crate::{
    arguments::{End, Subscribe},
    connect,
    failure::{CUT_SHORT, Failure},
    output::{Printer, greet, remark},
    stop::Stop,
};

/// Prints events until a signal, the count or the time is reached.
pub(crate) async fn run(
    arguments: Subscribe,
    config: SpokeConfig,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    let Subscribe { domain, name, end } = arguments;
    let spoke = connect::connect(config, &stop).await?;
    let mut events = spoke.subscribe(&domain, &name).await?;
    let hub = spoke.status().hub.map(|hub| format!(" at hub {hub}")).unwrap_or_default();
    greet(printer.style(), &format!("subscribed to {domain} {name}{hub}; Ctrl-C ends it"));
    let mut seen = 0;
    let ended = tokio::select! {
        ended = print(&mut events, &mut printer, end.count, &mut seen) => ended,
        () = stop.requested() => Ok(()),
        never = connect::tell_absences(&spoke) => match never {},
        () = elapsed(&end) => in_time(&end, seen),
    };
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
    count: Option<u64>,
    seen: &mut u64,
) -> Result<(), Failure> {
    while count.is_none_or(|count| *seen < count) {
        // What comes at once is written at once.
        let delivery = match ready(events.next()).await {
            Some(delivery) => delivery,
            None => {
                printer.flush()?;
                events.next().await
            }
        };
        match delivery {
            Some(Delivery::Event { event, .. }) => {
                printer.event(&event)?;
                *seen += 1;
            }
            Some(Delivery::Gap { from, to }) if from < to => {
                remark(&format!("events numbered {} to {to} may be missing", from + 1));
            }
            Some(Delivery::Lagged) => remark("too slow to print: events were left out"),
            Some(_) => {}
            None => return Err(lost(events)),
        }
    }
    Ok(())
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

/// Waits for the time after which to end, for ever if there is none.
pub(crate) async fn elapsed(end: &End) {
    match end.timeout {
        Some(timeout) => tokio::time::sleep(timeout).await,
        None => std::future::pending().await,
    }
}

/// The verdict when the time is over: with a count, fewer are too few.
pub(crate) fn in_time(end: &End, seen: u64) -> Result<(), Failure> {
    match (end.count, end.timeout) {
        (Some(count), Some(timeout)) if seen < count => Err(Failure::new(
            code::TIMEOUT,
            format!("{seen} of {count} events came within {:.1} s", timeout.as_secs_f64()),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn too_few_in_time_is_a_failure_only_with_a_count() {
        let end = |count| End { count, timeout: Some(Duration::from_secs(1)) };
        assert!(in_time(&end(None), 0).is_ok());
        assert!(in_time(&end(Some(2)), 2).is_ok());
        assert!(
            matches!(in_time(&end(Some(2)), 1), Err(Failure::Told { code, .. }) if code == code::TIMEOUT)
        );
    }

    #[tokio::test]
    async fn ready_takes_only_what_is_there() {
        assert_eq!(ready(async { 1 }).await, Some(1));
        assert_eq!(ready(std::future::pending::<()>()).await, None);
    }
}
