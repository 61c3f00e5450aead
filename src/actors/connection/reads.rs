//! Reads of one link, one after the other, each waiting until the link has room for its answer.

use std::{str::FromStr, time::Duration};

use crate::{
    actors::{
        deliveries::{Deliveries, Holder},
        mail::Handle,
        outlet::{Frame, Outlet},
    },
    event::{Domain, EventId, Fault, RecurringName, code},
    store::{Store, StoreError},
    wire::{Answer, LogQuery, MOST_EVENTS, MOST_RECURRING, MOST_RUNS, Req, Trace},
};

/// Reads of one link that may wait.
pub const MOST_WAITING: usize = 64;
/// Bytes of a page.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// How long the holder of a claim is asked for.
const HOLDER_DEADLINE: Duration = Duration::from_secs(2);

/// A read that a link asked for.
#[derive(Debug)]
pub struct Read {
    /// Its request.
    pub req: Req,
    /// What to read.
    pub what: What,
}

/// What to read.
#[derive(Debug)]
pub enum What {
    /// One event.
    Event(EventId),
    /// A page of a log.
    Log {
        /// Whose events, and which.
        query: LogQuery,
        /// Where to go on; empty: from the start.
        page: String,
        /// At most so many events; those of a page too.
        limit: u32,
    },
    /// A page of the processes of a domain.
    Pids {
        /// The domain.
        domain: Domain,
        /// Where to go on; empty: from the start.
        page: String,
        /// At most so many; those of a page too.
        limit: u32,
    },
    /// An event and what became of it.
    Show(EventId),
    /// A page of recurring schedules.
    RecurringPage {
        /// The last name of the page before; empty: from the start.
        page: String,
        /// At most so many; those of a page too.
        limit: u32,
    },
    /// A recurring schedule and its runs to come.
    Recurring {
        /// Which one.
        name: RecurringName,
        /// So many runs.
        runs: u32,
    },
}

/// Reads and answers.
pub async fn run(read: Read, store: Store, deliveries: Handle<Deliveries>, outlet: Outlet) {
    let Read { req, what } = read;
    outlet.room().await;
    let result = match what {
        What::Event(id) => event(req, id, &store, &outlet).await,
        What::Log { query, page, limit } => log(req, &query, &page, limit, &store, &outlet).await,
        What::Pids { domain, page, limit } => pids(&domain, &page, limit, &store).await,
        What::RecurringPage { page, limit } => recurring_page(&page, limit, &store).await,
        What::Recurring { name, runs } => recurring(&name, runs, &store).await,
        What::Show(id) => show(req, id, &store, &deliveries, &outlet).await,
    };
    outlet.answer(req, result);
}

async fn event(req: Req, id: EventId, store: &Store, outlet: &Outlet) -> Result<Answer, Fault> {
    let event = store.event(&id).await?.ok_or(StoreError::EventNotFound { id })?;
    outlet.send(Frame::Item(req, Box::new(event)));
    Ok(Answer::Done)
}

async fn log(
    req: Req,
    query: &LogQuery,
    page: &str,
    limit: u32,
    store: &Store,
    outlet: &Outlet,
) -> Result<Answer, Fault> {
    let after = key(page)?;
    let (events, next) = store.log_page(query, after.as_ref(), within_page(limit), PAGE_BYTES).await?;
    for event in events {
        outlet.room().await;
        outlet.send(Frame::Item(req, Box::new(event)));
    }
    Ok(Answer::Page(next.map(|next| next.to_string()).unwrap_or_default()))
}

async fn pids(domain: &Domain, page: &str, limit: u32, store: &Store) -> Result<Answer, Fault> {
    let after = key(page)?;
    let (pids, next) = store.pids_page(domain, after.as_ref(), within_page(limit)).await?;
    Ok(Answer::Pids { pids, next: next.map(|next| next.to_string()).unwrap_or_default() })
}

/// The token of a page is its last name.
async fn recurring_page(page: &str, limit: u32, store: &Store) -> Result<Answer, Fault> {
    let (states, more) = store.recurring_page(page, within_page(limit.min(MOST_RECURRING))).await?;
    let last = states.last().map(|state| state.name.to_string());
    Ok(Answer::Recurrings { next: last.filter(|_| more).unwrap_or_default(), states })
}

async fn recurring(name: &RecurringName, runs: u32, store: &Store) -> Result<Answer, Fault> {
    let now = store.clock().await?;
    let (shown, data) = store.recurring(name, within_page(runs.min(MOST_RUNS)), now).await?;
    Ok(Answer::RecurringShown { shown: Box::new(shown), data })
}

/// Where to go on, by the token of the page before.
fn key<K: FromStr<Err = StoreError>>(page: &str) -> Result<Option<K>, StoreError> {
    if page.is_empty() { Ok(None) } else { page.parse().map(Some) }
}

fn within_page(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(MOST_EVENTS).min(MOST_EVENTS)
}

async fn show(
    req: Req,
    id: EventId,
    store: &Store,
    deliveries: &Handle<Deliveries>,
    outlet: &Outlet,
) -> Result<Answer, Fault> {
    let gone = || StoreError::EventNotFound { id: id.clone() };
    let (event, mut trace) = store.trace(&id).await?.ok_or_else(gone)?;
    if let Some(seq) = open_seq(&trace) {
        let holder = deliveries.ask(Holder(seq), HOLDER_DEADLINE).await.map_err(|error| {
            Fault::retryable(
                code::HUB_BUSY,
                format!("who holds the event isn't known now: {error}"),
                HOLDER_DEADLINE,
            )
        })?;
        if holder.is_none() {
            // Its claim may have ended between the two looks.
            (_, trace) = store.trace(&id).await?.ok_or_else(gone)?;
        }
        if let Some(holder) = holder {
            "claimed".clone_into(&mut trace.state);
            trace.consumer = Some(holder);
        }
    }
    outlet.send(Frame::Item(req, Box::new(event)));
    Ok(Answer::Trace(Box::new(trace)))
}

/// Where an event without outcome stands in its hub's sequence.
fn open_seq(trace: &Trace) -> Option<u64> {
    trace.seq.filter(|_| trace.ended.is_none())
}
