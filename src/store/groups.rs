//! Named groups: which there are, and how they stand. Tables `v1_group`, `v1_retry`, `v1_outcome`.

use sea_orm::{DbErr, QueryResult, Value};

use super::{
    Store, StoreError,
    adoption::served,
    dead::DeadRows,
    engine::{Ask, small},
    sql::{refused, signed, unsigned},
    time,
};
use crate::{
    event::{Event, Pattern, Pid, Uid},
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
    /// Those of events that wait for an attempt, after this pid and number.
    Retrying(Pid, u64),
    /// Those of dead events, after this number.
    Dead(u64),
}

impl Store {
    /// All rows of `v1_group`, by name.
    ///
    /// # Errors
    /// Whatever the database says; [`StoreError::Damaged`] if settings can't be read.
    pub async fn groups(&self) -> Result<Vec<GroupRow>, StoreError> {
        let refused = refused("list the groups");
        let sql = "SELECT name, settings, round, created FROM v1_group ORDER BY name";
        let rows = self.readers.rows(sql, Vec::new()).await.map_err(&refused)?;
        let read = |row: &QueryResult| {
            let text = |index| row.try_get_by_index::<String>(index);
            Ok((text(0)?, text(1)?, small(row, 2)?, time::millis(row.try_get_by_index(3)?)))
        };
        let group = |row: &QueryResult| {
            let (name, settings, round, created) = read(row).map_err(&refused)?;
            let settings = serde_json::from_str(&settings).map_err(|error| StoreError::Damaged {
                what: format!("the settings of the group {name:?} in `v1_group`"),
                reason: error.to_string(),
            })?;
            Ok(GroupRow { name, settings, round, created })
        };
        rows.iter().map(group).collect()
    }

    /// Names under which outcomes stand though there is no such group: a hub that removed it was killed before it was
    /// done. At most so many.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn removed_groups(&self, limit: usize) -> Result<Vec<String>, StoreError> {
        let refused = refused("look for what removed groups have left");
        let mut left = Vec::new();
        let mut after = String::new();
        // From name to name by the index `v1_outcome_round`, however many outcomes each has.
        while left.len() < limit {
            let sql = "SELECT o.grp, (SELECT 1 FROM v1_group g WHERE g.name = o.grp) FROM v1_outcome o \
                       WHERE o.grp > ? ORDER BY o.grp LIMIT 1";
            let row = self.readers.row(sql, vec![after.as_str().into()]).await.map_err(&refused)?;
            let Some(row) = row else { break };
            after = row.try_get_by_index(0).map_err(&refused)?;
            let is_there = row.try_get_by_index::<Option<i32>>(1).map_err(&refused)?.is_some();
            if !is_there {
                left.push(after.clone());
            }
        }
        Ok(left)
    }

    /// Counts what a group's rows tell, on one hub, by their indexes alone.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn group_counts(&self, hub: &Uid, group: GroupKey<'_>) -> Result<GroupCounts, StoreError> {
        let count = async {
            let values = vec![hub.as_str().into(), group.name.into()];
            let row = self.readers.row(RETRYING, values).await?;
            let (retrying, oldest) = match row {
                Some(row) => (row.try_get_by_index(0)?, row.try_get_by_index::<Option<i64>>(1)?),
                None => (0, None),
            };
            let hubs = served(&self.readers, hub).await?;
            let (sql, values) = DeadRows { hubs: &hubs, group: group.name }.count();
            let row = self.readers.row(sql, values).await?;
            let dead = row.map_or(Ok(0), |row| row.try_get_by_index(0))?;
            // Numbers are microseconds.
            let oldest_retry = oldest.map(|seq| seq / 1_000);
            Ok(GroupCounts { retrying: unsigned(retrying), dead: unsigned(dead), oldest_retry })
        };
        count.await.map_err(refused("count what waits for another attempt and what is dead"))
    }

    /// A page of the pids whose later events a group with key order must not hand out, each with the number that holds
    /// them back: those of events that wait for an attempt, then, `with_dead`, those of dead events. A pid comes once
    /// for each of them. At most `limit`, but at least one if there is any. The key leads to the next page; none: that
    /// was the last.
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
        let limit = limit.max(1);
        let read = async {
            let mut held = Vec::new();
            if !matches!(after, Some(HeldKey::Dead(_))) {
                let after = match after {
                    Some(HeldKey::Retrying(pid, seq)) => (pid.as_str(), *seq),
                    _ => ("", 0),
                };
                let (sql, values) = retrying(hub, group, after, limit);
                let rows = self.readers.rows(sql, values).await?;
                held = rows.iter().map(held_of).collect::<Result<_, DbErr>>()?;
                if held.len() >= limit || !with_dead {
                    let last = held.last().filter(|_| held.len() >= limit);
                    let next = last.map(|(pid, seq)| HeldKey::Retrying(pid.clone(), *seq));
                    return Ok((held, next));
                }
            }
            let after = match after {
                Some(HeldKey::Dead(seq)) => *seq,
                _ => 0,
            };
            let rest = limit - held.len();
            let hubs = served(&self.readers, hub).await?;
            let (sql, values) = dead(&hubs, group, after, rest);
            let rows = self.readers.rows(sql, values).await?;
            let dead: Vec<(Pid, u64)> = rows.iter().map(held_of).collect::<Result<_, DbErr>>()?;
            let next = dead.last().filter(|_| dead.len() >= rest).map(|(_, seq)| HeldKey::Dead(*seq));
            held.extend(dead);
            Ok((held, next))
        };
        read.await.map_err(refused("read which processes are held back"))
    }
}

/// From the index `v1_retry_due` alone.
pub(super) const RETRYING: &str =
    "SELECT count(*), min(seq) FROM v1_retry @index(v1_retry_due) WHERE hub = ? AND grp = ?";

/// Pids of what waits for an attempt, from the index `v1_retry_pid` alone. `>=` lets it skip what came before, the rest
/// sorts out the same pid.
pub(super) fn retrying(
    hub: &Uid,
    group: GroupKey<'_>,
    (pid, seq): (&str, u64),
    limit: usize,
) -> (String, Vec<Value>) {
    let sql = "SELECT pid, seq FROM v1_retry @index(v1_retry_pid) WHERE hub = ? AND grp = ? AND pid >= ? \
               AND (pid > ? OR seq > ?) ORDER BY pid, seq LIMIT ?";
    let (hub, group) = (hub.as_str().into(), group.name.into());
    let (seq, limit) = (signed(seq).into(), signed(limit as u64).into());
    (sql.to_owned(), vec![hub, group, pid.into(), pid.into(), seq, limit])
}

/// Pids of dead events, by number.
pub(super) fn dead(hubs: &[Uid], group: GroupKey<'_>, after: u64, limit: usize) -> (String, Vec<Value>) {
    let (any, mut values) = (Pattern::any(), Vec::new());
    let tail = DeadRows { hubs, group: group.name }.tail((&any, &any), after, None, &mut values);
    values.push(signed(limit as u64).into());
    (format!("SELECT e.pid, d.seq {tail} LIMIT ?"), values)
}

fn held_of(row: &QueryResult) -> Result<(Pid, u64), DbErr> {
    Ok((Pid::from_stored(row.try_get_by_index::<String>(0)?), unsigned(row.try_get_by_index(1)?)))
}
