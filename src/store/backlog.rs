//! What waits, without the events themselves: to count it.

use sea_orm::{ConnectionTrait, DbErr, QueryResult};

use super::{
    GroupKey, Store, StoreError,
    sql::{ours, refused, signed, statement, unsigned},
};
use crate::event::{Domain, Name, Uid};

/// An event without outcome, as far as patterns look at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenMark {
    /// Its number on the hub.
    pub seq: u64,
    /// Its domain.
    pub domain: Domain,
    /// Its name.
    pub name: Name,
}

/// A page of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OpenMarks {
    /// By number.
    pub marks: Vec<OpenMark>,
    /// Up to this number, itself included, that is all.
    pub scanned: u64,
    /// There may be more above that.
    pub more: bool,
}

impl Store {
    /// What has no outcome on this hub, above `after` and up to `until`, by number: at most `limit` of it. What npm spokes
    /// have claimed isn't in it. Fewer than `limit`: that was all.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn open_marks(
        &self,
        hub: &Uid,
        group: GroupKey<'_>,
        after: u64,
        until: u64,
        limit: usize,
    ) -> Result<OpenMarks, StoreError> {
        let _ = group;
        // By the condition of the index `event_published_open`, without a look at the data.
        let sql = format!(
            "SELECT p.seq, e.domain, e.name FROM event_published p JOIN event e ON e.id = p.event_id \
             WHERE p.v1_hub = ? AND p.seq > ? AND p.seq <= ? \
             AND p.success IS NULL AND p.failed IS NULL AND p.orphan IS NULL AND {} ORDER BY p.seq LIMIT ?",
            ours("p")
        );
        let values = vec![
            hub.as_str().into(),
            signed(after).into(),
            signed(until).into(),
            signed(limit as u64).into(),
        ];
        let mark = |row: &QueryResult| {
            Ok(OpenMark {
                seq: unsigned(row.try_get_by_index(0)?),
                domain: Domain::from_stored(row.try_get_by_index::<String>(1)?),
                name: Name::from_stored(row.try_get_by_index::<String>(2)?),
            })
        };
        let read = async {
            let rows = self.readers.query_all_raw(statement(sql, values)).await?;
            rows.iter().map(mark).collect::<Result<_, DbErr>>()
        };
        let marks: Vec<OpenMark> = read.await.map_err(refused("count what waits"))?;
        let more = marks.len() >= limit;
        let scanned = marks.last().filter(|_| more).map_or(until, |last| last.seq);
        Ok(OpenMarks { marks, scanned, more })
    }
}
