//! The first event after a place in the order of dispatch: what waits look for.

use sea_orm::{DbErr, Value};

use super::{
    Store, StoreError,
    engine::Ask,
    events::{EVENT, event_of},
    log::{HAS_BEGUN, named},
    sql::{refused, signed, unsigned},
};
use crate::event::{Domain, Event, EventId, Name, Pid};

/// Where a dispatched event stands in the order of dispatch: at its number, which is a time in microseconds. What no
/// hub of ours has dispatched has only that time, in milliseconds: when it was published, or when its schedule ran.
const POSITION: &str = "coalesce(p.seq, 1000 * coalesce( \
     (SELECT @ms(s.executed) FROM event_scheduled s WHERE s.event_id = p.event_id), @ms(@utc(p.published))))";
/// What was dispatched: published, and not waiting for its time.
const DISPATCHED: &str = "event e @join event_published p ON p.event_id = e.id";

impl Store {
    /// Where an event stands in the order of dispatch, in microseconds since 1970; none: it is stored, but not
    /// dispatched.
    ///
    /// # Errors
    /// [`StoreError::EventNotFound`], or whatever the database says.
    pub async fn position(&self, id: &EventId) -> Result<Option<u64>, StoreError> {
        let sql = format!(
            "SELECT (SELECT {POSITION} FROM event_published p WHERE p.event_id = e.id AND {HAS_BEGUN}) \
             FROM event e WHERE e.id = ?"
        );
        let read = async {
            let row = self.readers.row(sql, vec![id.as_str().into()]).await?;
            row.map(|row| row.try_get_by_index::<Option<i64>>(0)).transpose()
        };
        let position = read.await.map_err(refused("read when an event was dispatched"))?;
        position.map(|at| at.map(unsigned)).ok_or_else(|| StoreError::EventNotFound { id: id.clone() })
    }

    /// The first event of a process that was dispatched above a position, of one of these names; of any, if none is
    /// given. This looks through the whole log of that process.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn first_of_process(
        &self,
        domain: &Domain,
        pid: &Pid,
        names: &[Name],
        above: u64,
    ) -> Result<Option<Event>, StoreError> {
        let (sql, values) = of_process(domain, pid, names, above);
        self.first(sql, values).await
    }

    /// The first event that was dispatched and answers this one.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn first_answer(&self, rid: &EventId) -> Result<Option<Event>, StoreError> {
        let (sql, values) = of_answers(rid);
        self.first(sql, values).await
    }

    async fn first(&self, sql: String, values: Vec<Value>) -> Result<Option<Event>, StoreError> {
        let read = async {
            let row = self.readers.row(sql, values).await?;
            row.as_ref().map(event_of).transpose()
        };
        read.await.map_err(|error: DbErr| refused("look for an event")(error))
    }
}

pub(super) fn of_process(domain: &Domain, pid: &Pid, names: &[Name], above: u64) -> (String, Vec<Value>) {
    let mut values: Vec<Value> = vec![domain.as_str().into(), pid.as_str().into(), signed(above).into()];
    let mut sql = format!(
        "SELECT {EVENT} FROM {DISPATCHED} WHERE e.domain = ? AND e.pid = ? AND {HAS_BEGUN} AND {POSITION} > ?"
    );
    named(names, &mut sql, &mut values);
    sql.push_str(&format!(" ORDER BY {POSITION}, e.id LIMIT 1"));
    (sql, values)
}

pub(super) fn of_answers(rid: &EventId) -> (String, Vec<Value>) {
    let sql = format!(
        "SELECT {EVENT} FROM {DISPATCHED} WHERE e.rid = ? AND {HAS_BEGUN} ORDER BY {POSITION}, e.id LIMIT 1"
    );
    (sql, vec![rid.as_str().into()])
}
