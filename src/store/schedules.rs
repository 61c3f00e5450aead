//! Reading schedules: what is due, what waits for its time, and when an event is or was.

mod list;

use std::time::Duration;

use sea_orm::{DbErr, QueryResult, Value};

use super::{
    Store, StoreError,
    engine::{Ask, Engine, size},
    sql::{refused, signed, unsigned},
    time,
};
use crate::event::EventId;

/// The last moment that an event can be scheduled for: the end of the year 9999, after which dates sort no more.
pub const MAX_DUE: i64 = 253_402_300_799_999;

/// When the row `s` of `event_scheduled` is due, to the millisecond if `v`, its row of `v1_schedule`, is there: what the
/// npm stack scheduled has only the first.
pub(super) const DUE: &str = "coalesce(v.due, @ms(s.scheduled))";

/// Now by the database's clock, in milliseconds since 1970. The same throughout a statement.
pub(super) const NOW: &str = "@now_ms";

/// A scheduled event that hasn't run; or, by its name, a recurring schedule that is to run next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due<Id = EventId> {
    /// When it is to run, in milliseconds since 1970.
    pub due: i64,
    /// Which event, or which schedule.
    pub id: Id,
    /// Its [weight](crate::event::Event::weight), without its texts, in bytes.
    pub bytes: usize,
}

/// What an event's schedule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scheduled {
    /// When it is or was due, in milliseconds since 1970.
    pub(super) due: i64,
    /// Whether it ran.
    pub(super) executed: bool,
}

/// A moment as the npm stack's column `scheduled` holds it: whole seconds, rounded up, so that nobody who looks at them
/// alone is early.
pub(super) fn rounded_up(due: i64) -> Value {
    const LAST_SECOND: i64 = MAX_DUE - 999;
    let second = due.div_euclid(1_000) + i64::from(due.rem_euclid(1_000) > 0);
    time::value((second * 1_000).min(LAST_SECOND))
}

impl Store {
    /// What is due until this moment, itself included, and hasn't run: at most `limit`, those that are due first. Besides:
    /// whether there is more. On MySQL what the npm stack scheduled is left out if it was due longer than `npm_overdue`
    /// before a hub of ours [first](Store::first_start) served the database: it is history.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn due_page(
        &self,
        until: i64,
        npm_overdue: Option<Duration>,
        limit: usize,
    ) -> Result<(Vec<Due>, bool), StoreError> {
        let npm_since = match npm_overdue {
            Some(overdue) if self.readers.engine() == Engine::MySql => {
                let overdue = i64::try_from(overdue.as_millis()).unwrap_or(MAX_DUE);
                self.first_start().await?.map(|first| first.saturating_sub(overdue).max(0))
            }
            _ => None,
        };
        let (sql, values) = due_query(until, npm_since, limit.saturating_add(1));
        let read = async {
            let rows = self.readers.rows(sql, values).await?;
            let due = |row: &QueryResult| {
                Ok(Due {
                    id: EventId::from_stored(row.try_get_by_index::<String>(0)?),
                    due: row.try_get_by_index(1)?,
                    bytes: size(row, 2)?,
                })
            };
            let page = rows.iter().take(limit).map(due).collect::<Result<_, DbErr>>()?;
            Ok((page, rows.len() > limit))
        };
        read.await.map_err(refused("read what is due"))
    }

    /// How many schedules haven't run. This reads a whole index.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn schedules_waiting(&self) -> Result<u64, StoreError> {
        let sql = "SELECT count(*) FROM event_scheduled WHERE executed IS NULL";
        let count = async {
            match self.readers.row(sql, Vec::new()).await? {
                Some(row) => row.try_get_by_index(0).map(unsigned),
                None => Ok(0),
            }
        };
        count.await.map_err(refused("count the schedules"))
    }

    /// Now by the database's clock, in milliseconds since 1970.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn clock(&self) -> Result<i64, StoreError> {
        let now = async {
            match self.readers.row(format!("SELECT {NOW}"), Vec::new()).await? {
                Some(row) => row.try_get_by_index(0),
                None => Err(DbErr::RecordNotFound("the time".into())),
            }
        };
        now.await.map_err(refused("say what time it is"))
    }

    /// The schedule of this event, if it has one.
    pub(super) async fn schedule(&self, id: &EventId) -> Result<Option<Scheduled>, StoreError> {
        let sql = format!(
            "SELECT {DUE}, s.executed IS NOT NULL FROM event_scheduled s \
             LEFT JOIN v1_schedule v ON v.event_id = s.event_id WHERE s.event_id = ?"
        );
        let read = async {
            match self.readers.row(sql, vec![id.as_str().into()]).await? {
                Some(row) => Ok(Some(Scheduled {
                    // A date of somebody else that is none.
                    due: row.try_get_by_index::<Option<i64>>(0)?.unwrap_or_default(),
                    executed: row.try_get_by_index(1)?,
                })),
                None => Ok(None),
            }
        };
        read.await.map_err(refused("read a schedule"))
    }
}

/// By the condition of the index `event_scheduled_open`. `scheduled` is `due` rounded up: in its order, only the rows of
/// one second are to be sorted by `due`.
pub(super) fn due_query(until: i64, npm_since: Option<i64>, limit: usize) -> (String, Vec<Value>) {
    let ours = if npm_since.is_some() { "AND (v.event_id IS NOT NULL OR s.scheduled >= ?)" } else { "" };
    let sql = format!(
        "SELECT s.event_id, {DUE}, @bytes(e.data) FROM event_scheduled s \
         JOIN event e ON e.id = s.event_id LEFT JOIN v1_schedule v ON v.event_id = s.event_id \
         WHERE s.executed IS NULL AND s.scheduled <= ? AND {DUE} <= ? {ours} \
         ORDER BY s.scheduled, 2, s.event_id LIMIT ?"
    );
    let until = until.min(MAX_DUE);
    // Others may write decimals too, which sort behind their second: `due` has the last word.
    let second = rounded_up(until.saturating_add(1_000));
    let mut values = vec![second, until.into()];
    values.extend(npm_since.map(time::value));
    values.push(signed(limit as u64).into());
    (sql, values)
}

#[cfg(test)]
mod tests;
