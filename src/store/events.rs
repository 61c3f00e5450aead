//! Reading events: one, pages of them, and how many there are.

use sea_orm::{ConnectionTrait, DbErr, QueryResult, Value};

use super::{
    Store, StoreError,
    engine::{Ask, number, size},
    sql::{fill, marks, pieces, refused, rounded, unsigned},
    time,
};
use crate::event::{Data, Domain, Event, EventId, Name, Pattern, Pid, Uid};

/// How many events there are, and how they ended on one hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// All stored events, published or not.
    pub events: u64,
    /// Published on the hub.
    pub published: u64,
    /// Ended well.
    pub success: u64,
    /// Failed for good.
    pub failed: u64,
    /// Without outcome.
    pub open: u64,
}

/// In the order of [`event_of`].
pub(super) const EVENT: &str = "e.id, @utc(e.timestamp), e.domain, e.name, e.pid, e.rid, @text(e.data)";
/// What [`Event::weight`] counts, without reading the data.
const WEIGHT: &str = "@bytes(e.data) + octet_length(e.id) + octet_length(e.domain) \
    + octet_length(e.name) + octet_length(e.pid) + coalesce(octet_length(e.rid), 0)";

impl Store {
    /// The event of this id.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn event(&self, id: &EventId) -> Result<Option<Event>, StoreError> {
        let read = async {
            let sql = format!("SELECT {EVENT} FROM event e WHERE e.id = ?");
            let row = self.readers.row(sql, vec![id.as_str().into()]).await?;
            row.as_ref().map(event_of).transpose()
        };
        read.await.map_err(refused("read an event"))
    }

    /// Whether no spoke has claimed one of these events yet.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn any_unclaimed(&self, ids: &[EventId]) -> Result<bool, StoreError> {
        let refused = refused("read claims");
        for piece in pieces(ids) {
            let sql = format!(
                "SELECT 1 FROM event_published WHERE event_id IN ({}) AND consumed_spoke IS NULL LIMIT 1",
                marks(rounded(piece.len()))
            );
            let mut values = piece.iter().map(|id| id.as_str().into()).collect();
            fill(&mut values, piece.len(), 1);
            if self.readers.row(sql, values).await.map_err(&refused)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Counts events and outcomes. This reads whole indexes: for people and tests, not for each scrape.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn counts(&self, hub: &Uid) -> Result<Counts, StoreError> {
        let sql = "SELECT (SELECT count(*) FROM event), count(*), count(success), count(failed), \
                   count(CASE WHEN success IS NULL AND failed IS NULL AND orphan IS NULL THEN 1 END) \
                   FROM event_published WHERE v1_hub = ?";
        let counted = async {
            let row = self.readers.row(sql, vec![hub.as_str().into()]).await?;
            let Some(row) = row else { return Ok(Counts::default()) };
            let count = |index| number(&row, index).map(unsigned);
            Ok(Counts {
                events: count(0)?,
                published: count(1)?,
                success: count(2)?,
                failed: count(3)?,
                open: count(4)?,
            })
        };
        counted.await.map_err(refused("count the events"))
    }
}

/// Narrows down to what these patterns may match: to their beginnings, if wildcards stand in the middle.
pub(super) fn patterns(domain: &Pattern, name: &Pattern, tail: &mut String, values: &mut Vec<Value>) {
    for (column, pattern) in [("domain", domain), ("name", name)] {
        match pattern.literal_beginning() {
            ("", _) => {}
            (text, true) => {
                tail.push_str(&format!(" AND @loose(e.{column}) = ?"));
                values.push(text.into());
            }
            (beginning, false) => {
                tail.push_str(&format!(" AND substr(e.{column}, 1, {}) = ?", beginning.len()));
                values.push(beginning.into());
            }
        }
    }
}

/// Reads at most `limit` rows and `max_bytes`, at least one row; says whether more follow. The weights are
/// read first: a page of large events must not stand in memory only to be cut.
pub(super) async fn page(
    db: &impl ConnectionTrait,
    columns: &str,
    tail: &str,
    values: Vec<Value>,
    limit: usize,
    max_bytes: usize,
) -> Result<(Vec<QueryResult>, bool), DbErr> {
    page_with(db, (columns, Vec::new()), tail, values, limit, max_bytes).await
}

/// The same with values that the columns need.
pub(super) async fn page_with(
    db: &impl ConnectionTrait,
    (columns, own): (&str, Vec<Value>),
    tail: &str,
    values: Vec<Value>,
    limit: usize,
    max_bytes: usize,
) -> Result<(Vec<QueryResult>, bool), DbErr> {
    let read = async |columns: &str, own: Vec<Value>, limit: usize| {
        let mut values = [own, values.clone()].concat();
        values.push(i64::try_from(limit).unwrap_or(i64::MAX).into());
        db.rows(format!("SELECT {columns} {tail} LIMIT ?"), values).await
    };
    let limit = limit.max(1);
    let weights = read(WEIGHT, Vec::new(), limit.saturating_add(1)).await?;
    let mut sum = 0;
    let mut take = 0;
    for row in weights.iter().take(limit) {
        sum += size(row, 0)?;
        if take > 0 && sum > max_bytes {
            break;
        }
        take += 1;
    }
    if take == 0 {
        return Ok((Vec::new(), false));
    }
    Ok((read(columns, own, take).await?, weights.len() > take))
}

/// Reads the columns of [`EVENT`], which must come first.
pub(super) fn event_of(row: &QueryResult) -> Result<Event, DbErr> {
    let text = |index| row.try_get_by_index::<String>(index);
    Ok(Event {
        id: EventId::from_stored(text(0)?),
        timestamp: time::millis(row.try_get_by_index(1)?),
        domain: Domain::from_stored(text(2)?),
        name: Name::from_stored(text(3)?),
        pid: Pid::from_stored(text(4)?),
        rid: row.try_get_by_index::<Option<String>>(5)?.map(EventId::from_stored),
        data: Data::from_stored(text(6)?),
    })
}
