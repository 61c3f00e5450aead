//! What waits, without the events themselves: to count it.

use sea_orm::{DbErr, QueryResult};

use super::{
    GroupKey, Store, StoreError,
    engine::Ask,
    open,
    sql::{refused, signed, unsigned},
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
    /// What has no outcome in a group on this hub, above `after` and up to `until`, by number: at most `limit` of it.
    /// What waits for another attempt isn't in it, nor is, of the default group, what npm spokes have claimed. A page
    /// looks at 20,000 rows at most, so that it may be short and yet have more after it.
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
        let refused = refused("count what waits");
        let end = open::until(&self.readers, hub, group, after).await.map_err(&refused)?;
        let end = end.filter(|end| *end < until);
        let mut values = Vec::new();
        let rows = open::open_rows(hub, group, after, Some(end.unwrap_or(until)), &mut values);
        values.push(signed(limit as u64).into());
        // Without a look at the data.
        let sql = format!("SELECT p.seq, e.domain, e.name {rows} ORDER BY p.seq LIMIT ?");
        let mark = |row: &QueryResult| {
            Ok(OpenMark {
                seq: unsigned(row.try_get_by_index(0)?),
                domain: Domain::from_stored(row.try_get_by_index::<String>(1)?),
                name: Name::from_stored(row.try_get_by_index::<String>(2)?),
            })
        };
        let read = async {
            let rows = self.readers.rows(sql, values).await?;
            rows.iter().map(mark).collect::<Result<_, DbErr>>()
        };
        let marks: Vec<OpenMark> = read.await.map_err(refused)?;
        let last = marks.last().filter(|_| marks.len() >= limit).map(|last| last.seq);
        let scanned = last.or(end);
        Ok(OpenMarks { scanned: scanned.unwrap_or(until), more: scanned.is_some(), marks })
    }
}
