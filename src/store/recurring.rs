//! Reading recurring schedules: what is due, how they stand, what they will do.

use std::fmt::Write as _;

use sea_orm::{DbErr, QueryResult};
use sha2::{Digest, Sha256};

use super::{
    Due, Store, StoreError,
    engine::{Ask, size},
    sql::{refused, signed, unsigned},
};
use crate::{
    event::{Data, Domain, EventId, Name, Pid, RecurringName, Uid},
    recurrence::{Policy, Rule, RuleError, Times, Zone},
    wire::{Missed, Recurring, RecurringShown, RecurringState, Run},
};

/// Recurring schedules that a database holds at most.
pub const MOST_SCHEDULES: u64 = 10_000;
/// Bytes of names and rules that a page holds are few; those of the data aren't on it.
const COLUMNS: &str = "name, domain, event, pid, rule, zone, missed, window_ms, start_at, end_at, paused, due, \
     last, ran, left_out, publisher, made";
/// The same with the data at their end.
pub(super) const WITH_DATA: &str = "name, domain, event, pid, rule, zone, missed, window_ms, start_at, end_at, \
     paused, due, last, ran, left_out, publisher, made, data";

/// The id of the event that a recurring schedule publishes for one of its times: the same whoever publishes it.
#[must_use]
pub fn occurrence_id(name: &RecurringName, due: i64) -> EventId {
    let digest = Sha256::digest(format!("{name}\0{due}").as_bytes());
    let mut id = String::from("re-");
    for byte in digest.iter().take(16) {
        // Into memory: it can't fail.
        let _ = write!(id, "{byte:02x}");
    }
    EventId::from_stored(id)
}

/// A row of `v1_recurring`.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) state: RecurringState,
    /// Also while it is paused.
    pub(super) due: Option<i64>,
}

impl Row {
    pub(super) fn of(row: &QueryResult) -> Result<Self, DbErr> {
        let text = |at| row.try_get_by_index::<String>(at);
        let missed = match text(6)?.as_str() {
            "all" => Missed::All,
            "skip" => Missed::Skip,
            _ => Missed::Once,
        };
        let paused: bool = row.try_get_by_index(10)?;
        let due: Option<i64> = row.try_get_by_index(11)?;
        let what = Recurring {
            domain: Domain::from_stored(text(1)?),
            event: Name::from_stored(text(2)?),
            pid: row.try_get_by_index::<Option<String>>(3)?.map(Pid::from_stored),
            rule: text(4)?,
            zone: text(5)?,
            missed,
            window_ms: unsigned(row.try_get_by_index(7)?),
            start: row.try_get_by_index(8)?,
            end: row.try_get_by_index(9)?,
            paused,
        };
        let state = RecurringState {
            name: RecurringName::from_stored(text(0)?),
            what,
            next: due.filter(|_| !paused),
            last: row.try_get_by_index(12)?,
            ran: unsigned(row.try_get_by_index(13)?),
            left_out: unsigned(row.try_get_by_index(14)?),
            publisher: Uid::from_stored(text(15)?),
            made: row.try_get_by_index(16)?,
        };
        Ok(Self { state, due })
    }

    /// Its times.
    pub(super) fn times(&self) -> Result<Times, RuleError> {
        times(&self.state.what, self.state.made)
    }

    pub(super) fn policy(&self) -> Policy {
        let window_ms = i64::try_from(self.state.what.window_ms).unwrap_or(i64::MAX);
        Policy { missed: self.state.what.missed, window_ms }
    }
}

/// The times of a schedule that was made then.
pub(super) fn times(what: &Recurring, made: i64) -> Result<Times, RuleError> {
    Ok(Times::new(Rule::parse(&what.rule, &what.zone)?, made, what.start, what.end))
}

impl Store {
    /// The recurring schedules that run next up to this moment, itself included: at most `limit`, those that are due first.
    /// Besides: whether there are more.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn recurring_due(
        &self,
        until: i64,
        limit: usize,
    ) -> Result<(Vec<Due<RecurringName>>, bool), StoreError> {
        let sql = "SELECT name, due, octet_length(data) FROM v1_recurring \
                   WHERE due <= ? AND NOT paused ORDER BY due, name LIMIT ?";
        let values = vec![until.into(), signed(limit.saturating_add(1) as u64).into()];
        let read = async {
            let rows = self.readers.rows(sql, values).await?;
            let due = |row: &QueryResult| {
                Ok(Due {
                    id: RecurringName::from_stored(row.try_get_by_index::<String>(0)?),
                    due: row.try_get_by_index(1)?,
                    bytes: size(row, 2)?,
                })
            };
            let page = rows.iter().take(limit).map(due).collect::<Result<_, DbErr>>()?;
            Ok((page, rows.len() > limit))
        };
        read.await.map_err(refused("read which recurring schedules are due"))
    }

    /// A page of the recurring schedules whose names are after this one, by name; and whether there are more.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn recurring_page(
        &self,
        after: &str,
        limit: usize,
    ) -> Result<(Vec<RecurringState>, bool), StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM v1_recurring WHERE name > ? ORDER BY name LIMIT ?");
        let values = vec![after.into(), signed(limit.saturating_add(1) as u64).into()];
        let read = async {
            let rows = self.readers.rows(sql, values).await?;
            let page = rows.iter().take(limit).map(|row| Row::of(row).map(|row| row.state));
            Ok((page.collect::<Result<_, DbErr>>()?, rows.len() > limit))
        };
        read.await.map_err(refused("list the recurring schedules"))
    }

    /// A recurring schedule, the data of its events, and so many of its runs to come after `now`, as if it weren't paused.
    ///
    /// # Errors
    /// [`StoreError::RecurringNotFound`], [`StoreError::Rule`] if somebody else has put a rule there that is none, or
    /// whatever the database says.
    pub async fn recurring(
        &self,
        name: &RecurringName,
        runs: usize,
        now: i64,
    ) -> Result<(RecurringShown, Data), StoreError> {
        let sql = format!("SELECT {WITH_DATA} FROM v1_recurring WHERE name = ?");
        let read = async {
            let row = self.readers.row(sql, vec![name.as_str().into()]).await?;
            let data = |row: &QueryResult| row.try_get_by_index::<String>(17);
            row.map(|row| Ok::<_, DbErr>((Row::of(&row)?, Data::from_stored(data(&row)?)))).transpose()
        };
        let found = read.await.map_err(refused("read a recurring schedule"))?;
        let (row, data) = found.ok_or_else(|| StoreError::RecurringNotFound { name: name.clone() })?;
        let (times, zone) = (row.times()?, Zone::parse(&row.state.what.zone)?);
        let utc = Zone::parse("UTC")?;
        // What is due and hasn't run yet is to come too.
        let first = row.state.next.map_or_else(|| times.next(now), Some);
        let dues = std::iter::successors(first, |due| times.next(*due));
        let run =
            |due| Run { due, utc: utc.shown(due), local: zone.shown(due), id: occurrence_id(name, due) };
        let runs = dues.take(runs).map(run).collect();
        Ok((RecurringShown { state: row.state, runs }, data))
    }

    /// Of which recurring schedule an event is an occurrence, and for which of its times; none: it was run by itself.
    pub(super) async fn occurrence(
        &self,
        id: &EventId,
    ) -> Result<Option<(RecurringName, Option<i64>)>, StoreError> {
        let sql = "SELECT name, due FROM v1_occurrence WHERE event_id = ?";
        let read = async {
            let row = self.readers.row(sql, vec![id.as_str().into()]).await?;
            let name = |row: &QueryResult| row.try_get_by_index::<String>(0).map(RecurringName::from_stored);
            row.map(|row| Ok::<_, DbErr>((name(&row)?, row.try_get_by_index(1)?))).transpose()
        };
        read.await.map_err(refused("read what published an event"))
    }
}

#[cfg(test)]
mod tests;
