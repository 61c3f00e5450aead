//! What retention has removed of a hub's events.

use sea_orm::{DbErr, QueryResult, Value};

use super::{
    Store, StoreError,
    engine::Ask,
    sql::{refused, signed, unsigned},
};
use crate::event::{Domain, Uid};

/// Events of a domain that are gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// Their domain.
    pub domain: Domain,
    /// The number of the first.
    pub first_seq: u64,
    /// The number of the last; between them may be others that are still there.
    pub last_seq: u64,
    /// How many there were.
    pub events: u64,
}

/// How far the record of removals was read: what is removed later is above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RemovedMark(i64);

impl Store {
    /// What was removed of a hub's events above a number, one for each domain, all its batches that end above that
    /// number taken together.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn removed(&self, hub: &Uid, after_seq: u64) -> Result<Vec<Removed>, StoreError> {
        Ok(self.removed_since(hub, after_seq, RemovedMark::default()).await?.0)
    }

    /// The same of what was removed since a mark, with the mark to go on from.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn removed_since(
        &self,
        hub: &Uid,
        after_seq: u64,
        mark: RemovedMark,
    ) -> Result<(Vec<Removed>, RemovedMark), StoreError> {
        self.read_removed(hub, after_seq, mark).await.map_err(refused("read what was removed"))
    }

    async fn read_removed(
        &self,
        hub: &Uid,
        after_seq: u64,
        mark: RemovedMark,
    ) -> Result<(Vec<Removed>, RemovedMark), DbErr> {
        let last = self.readers.row("SELECT max(id) FROM v1_removed", Vec::new()).await?;
        let last = last.map(|row| row.try_get_by_index::<Option<i64>>(0)).transpose()?.flatten();
        // At the end of the table at once, which is all that most looks need.
        let Some(last) = last.filter(|last| *last > mark.0) else { return Ok((Vec::new(), mark)) };
        let sql = "SELECT domain, min(first_seq), max(last_seq), @whole(sum(events)) FROM v1_removed \
                   WHERE hub = ? AND last_seq > ? AND id > ? AND id <= ? GROUP BY domain ORDER BY domain";
        let values: [Value; 4] = [hub.as_str().into(), signed(after_seq).into(), mark.0.into(), last.into()];
        let rows = self.readers.rows(sql, values.into()).await?;
        let removed = |row: &QueryResult| {
            let number = |index| row.try_get_by_index::<i64>(index).map(unsigned);
            Ok(Removed {
                domain: Domain::from_stored(row.try_get_by_index::<String>(0)?),
                first_seq: number(1)?,
                last_seq: number(2)?,
                events: number(3)?,
            })
        };
        Ok((rows.iter().map(removed).collect::<Result<_, DbErr>>()?, RemovedMark(last)))
    }
}
