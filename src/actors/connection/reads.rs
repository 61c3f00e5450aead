//! Reads of one link, one after the other, each waiting until the link has room for its answer.

use std::str::FromStr;

use crate::{
    actors::{
        backlog,
        deliveries::Deliveries,
        mail::Handle,
        outlet::{Frame, Outlet},
        trace,
    },
    event::{Domain, EventId, Fault, RecurringName, Uid},
    store::{Store, StoreError},
    wire::{
        Answer, BacklogQuery, DeadQuery, LogQuery, MOST_EVENTS, MOST_RECURRING, MOST_RUNS, Req,
        SchedulesQuery,
    },
};

/// Reads of one link that may wait.
pub const MOST_WAITING: usize = 64;
/// Bytes of a page.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

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
    /// How groups stand.
    Backlog(BacklogQuery),
    /// A page of dead events.
    Dead {
        /// Which of them.
        query: DeadQuery,
        /// Where to go on; empty: from the start.
        page: String,
        /// At most so many; those of a page too.
        limit: u32,
    },
    /// A page of what waits for its time.
    Schedules {
        /// Which of it.
        query: SchedulesQuery,
        /// Where to go on; empty: from the start.
        page: String,
        /// At most so many; those of a page too.
        limit: u32,
    },
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
pub async fn run(read: Read, store: Store, deliveries: Handle<Deliveries>, hub: Uid, outlet: Outlet) {
    let Read { req, what } = read;
    outlet.room().await;
    let result = match what {
        What::Event(id) => event(req, id, &store, &outlet).await,
        What::Log { query, page, limit } => log(req, &query, &page, limit, &store, &outlet).await,
        What::Pids { domain, page, limit } => pids(&domain, &page, limit, &store).await,
        What::Schedules { query, page, limit } => {
            let page = store.schedules_page(&query, &page, within_page(limit)).await;
            page.map(|(events, next)| Answer::Schedules { events, next }).map_err(Fault::from)
        }
        What::RecurringPage { page, limit } => recurring_page(&page, limit, &store).await,
        What::Recurring { name, runs } => recurring(&name, runs, &store).await,
        What::Show(id) => show(req, id, &store, &deliveries, &outlet).await,
        What::Backlog(query) => backlog::look(&store, &deliveries, &hub, query).await.map(Answer::Backlog),
        What::Dead { query, page, limit } => {
            let page = store.dead_page(&hub, &query, &page, within_page(limit)).await;
            page.map(|(dead, next)| Answer::Dead { dead, next }).map_err(Fault::from)
        }
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
    let (event, trace) = trace::look(store, deliveries, &id).await?;
    outlet.send(Frame::Item(req, Box::new(event)));
    Ok(Answer::Trace(Box::new(trace)))
}
