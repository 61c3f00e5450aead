//! What the [`Journal`](super::Journal) receives.

use tokio::sync::oneshot;

use crate::{
    actors::{
        deliveries::{Deliveries, Ended, Finish, Reserve, Retry},
        mail::{Handle, mail},
        outlet::{AmendPermit, Outlet, WindowPermit},
        registry::Registry,
        scheduler::Scheduler,
    },
    event::{Append, EventId, Fault, NewEvent, RecurringName, Uid},
    store::{Binding, Write, Written},
    wire::{Association, Deletion, Recur, RecurChange, Redrive, Req},
};

/// Whom the journal tells. Comes once, before all else.
#[derive(Debug)]
pub struct Connect {
    /// Gets committed events.
    pub registry: Handle<Registry>,
    /// Gets recorded outcomes.
    pub deliveries: Handle<Deliveries>,
    /// Gets what is scheduled.
    pub scheduler: Handle<Scheduler>,
}
mail!(Connect => ());

/// What one request of a link stores.
#[derive(Debug)]
pub enum Storing {
    /// An event, published.
    Publish(Append),
    /// An event, not published.
    Persist(Append),
    /// An event, to be published at its time.
    Schedule {
        /// In milliseconds since 1970.
        due: i64,
        /// The event.
        event: NewEvent,
        /// The scheduled event in whose place it comes.
        replaces: Option<EventId>,
    },
    /// Several events, published together or not at all.
    Batch(Vec<Append>),
}

/// One publish of a link.
#[derive(Debug)]
pub struct Publishing {
    /// Its request.
    pub req: Req,
    /// The event or events.
    pub what: Storing,
    /// Its place in the link's window.
    pub permit: WindowPermit,
}

/// What a link published with one read, in order. Each is answered through the outlet.
#[derive(Debug)]
pub struct Publish {
    /// The link.
    pub outlet: Outlet,
    /// Who it is, by its certificate.
    pub publisher: Uid,
    /// The events.
    pub events: Vec<Publishing>,
}
mail!(Publish => ());

/// Events that an npm link says it has put into the database, in order. npm has no answer to it.
#[derive(Debug)]
pub struct Take {
    /// The link.
    pub outlet: Outlet,
    /// Who it is, by its certificate.
    pub uid: Uid,
    /// Which events, each with its place in the link's window.
    pub events: Vec<(EventId, WindowPermit)>,
}
mail!(Take => ());

/// A change to events that are stored.
#[derive(Debug)]
pub enum Amendment {
    /// An event belongs to something besides its process.
    Associate(EventId, Association),
    /// It doesn't any more.
    Dissociate(EventId, Association),
    /// A schedule that hasn't run goes, and its event with it.
    Cancel(EventId),
    /// A recurring schedule is made or replaced.
    Recur(Box<Recur>),
    /// A recurring schedule is paused, resumed or removed.
    RecurChange(RecurringName, RecurChange),
    /// The event of a recurring schedule is published now, under this id.
    RunExtra(RecurringName, EventId),
    /// An event or a log goes.
    Delete(Deletion),
    /// Dead events are tried again.
    Redrive(Redrive),
}

/// One change that a link asks for.
#[derive(Debug)]
pub struct Amending {
    /// Its request.
    pub req: Req,
    /// What it is.
    pub what: Amendment,
    /// Its place among those of the link.
    pub permit: AmendPermit,
}

/// Changes that a link asks for, in order. Each is answered through the outlet.
#[derive(Debug)]
pub struct Amend {
    /// The link.
    pub outlet: Outlet,
    /// Who it is, by its certificate.
    pub by: Uid,
    /// The changes.
    pub changes: Vec<Amending>,
}
mail!(Amend => ());

/// Outcomes, attempts and claims, to be recorded. How each went is reported to deliveries.
#[derive(Debug)]
pub struct Record {
    /// Claims that end.
    pub finishes: Vec<Finish>,
    /// Attempts that failed, after which the events wait for the next.
    pub retries: Vec<Retry>,
    /// Other attempts that ended without an outcome.
    pub ended: Vec<Ended>,
    /// Claims that npm spokes may make too.
    pub claims: Vec<Reserve>,
}
mail!(Record => ());

/// A binding to be made durable.
#[derive(Debug)]
pub struct Bind {
    /// The binding; its id is given by the store.
    pub binding: Binding,
    /// Gets the stored binding.
    pub made: oneshot::Sender<Result<Binding, Fault>>,
}
mail!(Bind => ());

/// A change of a group, and who hears how it went.
#[derive(Debug)]
pub struct Alter {
    /// The change.
    pub write: Write,
    /// Gets what the store answers.
    pub done: oneshot::Sender<Result<Written, Fault>>,
}
mail!(Alter => ());

/// Rows that nobody waits for: cursors, log rows.
#[derive(Debug)]
pub struct Note(pub Vec<Write>);
mail!(Note => ());

/// No more publishes: they are refused. What is queued is committed.
#[derive(Debug)]
pub struct Close;
mail!(Close => ());

/// Asks for the number of writes that wait or are under way.
#[derive(Debug)]
pub struct Backlog;
mail!(Backlog => usize);

/// Ends the actor by a panic, to show that nothing is lost by one.
#[derive(Debug)]
pub struct Panic;
mail!(Panic => ());
