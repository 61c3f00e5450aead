//! What waits for its next attempt, by time.

use sea_orm::{DbErr, QueryResult, Value};

use super::{
    OpenEvent, Store, StoreError,
    engine::{Ask, small},
    events::{EVENT, event_of, page},
    sql::{ours, refused, signed, unsigned},
};
use crate::event::Uid;

/// An event that waits for a time before its next attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryEvent {
    /// The event, with the round and the attempts of its row.
    pub open: OpenEvent,
    /// When it is due, in milliseconds since 1970.
    pub due: i64,
    /// Its number on the hub that dispatched it: another one than that of its row if this hub has adopted it.
    pub original: u64,
}

/// A page of them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RetryPage {
    /// By due time, then number.
    pub events: Vec<RetryEvent>,
    /// When the next one is due that isn't among them; none: there is no other.
    pub next: Option<i64>,
}

impl Store {
    /// A page of what waits for its next attempt in a group on a hub and is due at `until` or before: by due time, then
    /// number, strictly after `after`; at most `limit` events and `max_bytes` of
    /// [weight](crate::event::Event::weight), but at least one if there is any. What an npm spoke has claimed or ended
    /// meanwhile isn't among them.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn retry_page(
        &self,
        hub: &Uid,
        group: &str,
        after: (i64, u64),
        until: i64,
        limit: usize,
        max_bytes: usize,
    ) -> Result<RetryPage, StoreError> {
        let read = async {
            let mut values = Vec::new();
            let mut tail = retries_after(hub, group, after, &mut values);
            tail.push_str(" AND r.due <= ? ORDER BY r.due, r.seq");
            values.push(until.into());
            let columns = format!(
                "{EVENT}, r.seq, p.publisher, r.round, r.attempts, p.consumed_spoke IS NOT NULL, r.due, p.seq"
            );
            let (rows, is_cut) = page(&self.readers, &columns, &tail, values, limit, max_bytes).await?;
            let retry = |row: &QueryResult| retry_of(row, group);
            let events: Vec<RetryEvent> = rows.iter().map(retry).collect::<Result<_, DbErr>>()?;

            let beyond = (until, u64::MAX);
            let last = events.last().filter(|_| is_cut).map_or(beyond, |last| (last.due, last.open.seq));
            let mut values = Vec::new();
            let tail = retries_after(hub, group, last.max(after), &mut values);
            let sql = format!("SELECT r.due {tail} ORDER BY r.due, r.seq LIMIT 1");
            let row = self.readers.row(sql, values).await?;
            let next = row.map(|row| row.try_get_by_index(0)).transpose()?;
            Ok(RetryPage { events, next })
        };
        read.await.map_err(refused("read what waits for another attempt"))
    }
}

/// Rows `r` behind this time and number, with their events: by the index `v1_retry_due`. `>=` lets it skip what came
/// before, the rest sorts out the same millisecond.
pub(super) fn retries_after(
    hub: &Uid,
    group: &str,
    (due, seq): (i64, u64),
    values: &mut Vec<Value>,
) -> String {
    values.extend([hub.as_str().into(), group.into(), due.into(), due.into(), signed(seq).into()]);
    let mut tail = "FROM v1_retry r @index(v1_retry_due) @join event e ON e.id = r.event_id \
                    @join event_published p ON p.event_id = r.event_id \
                    WHERE r.hub = ? AND r.grp = ? AND r.due >= ? AND (r.due > ? OR r.seq > ?)"
        .to_owned();
    if group.is_empty() {
        tail.push_str(" AND p.success IS NULL AND p.failed IS NULL AND p.orphan IS NULL AND ");
        tail.push_str(&ours("p"));
    }
    tail
}

fn retry_of(row: &QueryResult, group: &str) -> Result<RetryEvent, DbErr> {
    let open = OpenEvent {
        event: event_of(row)?,
        seq: unsigned(row.try_get_by_index(7)?),
        publisher: Uid::from_stored(row.try_get_by_index::<String>(8)?),
        round: small(row, 9)?,
        attempts: small(row, 10)?,
        claimed: group.is_empty() && row.try_get_by_index(11)?,
    };
    let original = row.try_get_by_index::<Option<i64>>(13)?.map_or(open.seq, unsigned);
    Ok(RetryEvent { open, due: row.try_get_by_index(12)?, original })
}
