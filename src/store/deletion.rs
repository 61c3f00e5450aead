//! Deleting events: what is asked for, and what is gone.

use crate::{
    event::{Domain, EventId, Name, Uid},
    wire::Deletion,
};

/// Events to delete, with all that hangs on them: outcome, attempts, schedule, associations. Events that answered one of
/// them lose their `rid`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delete {
    /// Which.
    pub what: Deletion,
    /// Of a log, only events whose timestamp is below this, in milliseconds since 1970: what is stored while a long
    /// log is deleted in parts stays. None: all that there is.
    pub before: Option<i64>,
    /// At most so many in one transaction, the oldest; the others wait meanwhile.
    pub most: usize,
    /// Who wants it, for the `log` table.
    pub by: Uid,
    /// The hub that writes that line.
    pub hub: Uid,
    /// When, in milliseconds since 1970.
    pub at: i64,
}

/// What a [`Delete`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deleted {
    /// What is gone.
    pub gone: Vec<Gone>,
    /// There is more of the log: this is to be written next.
    pub rest: Option<Delete>,
}

/// A deleted event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gone {
    /// Its id.
    pub id: EventId,
    /// Its domain.
    pub domain: Domain,
    /// Its name.
    pub name: Name,
    /// Its number, if the hub that was asked has dispatched it.
    pub seq: Option<u64>,
    /// Whether it waited for its time.
    pub scheduled: bool,
    /// It was published, had no outcome, and no npm spoke had claimed it.
    pub open: bool,
}
