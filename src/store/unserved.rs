//! Published events that no hub of ours has: put there by an application in a transaction of its own, or left by an npm
//! hub.

use std::time::Duration;

use sea_orm::{DbErr, QueryResult, Value};

use super::{
    Store, StoreError,
    engine::{Ask, Engine, size},
    sql::{fill, marks, pieces, refused, rounded, signed},
    time,
};
use crate::event::EventId;

/// An event that may be collected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unserved {
    /// Which.
    pub id: EventId,
    /// Its data, in bytes.
    pub bytes: usize,
}

/// Where to go on after a page.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct UnservedKey {
    /// As the database has it.
    pub(super) published: String,
    pub(super) id: String,
}

/// A part of what nobody has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnservedPage {
    /// The events, in the order in which they were published.
    pub events: Vec<Unserved>,
    /// Where the next page begins; none: that was the last.
    pub next: Option<UnservedKey>,
}

impl Store {
    /// A page of the published events that no hub of ours has, that were never scheduled, and that no npm spoke has
    /// claimed: published at or after `since`, in milliseconds since 1970, and at least so long ago by the database's
    /// clock. Looks at no more than `limit` rows.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn unserved_page(
        &self,
        since: i64,
        age: Duration,
        after: Option<&UnservedKey>,
        limit: usize,
    ) -> Result<UnservedPage, StoreError> {
        // What the npm stack's column holds on MySQL has no milliseconds.
        let whole = self.readers.engine() == Engine::MySql;
        let since = if whole { since - since.rem_euclid(1_000) } else { since };
        let (sql, values) = page_query(since, age, after, limit);
        let read = async {
            let rows = self.readers.rows(sql, values).await?;
            let mut events = Vec::new();
            for row in &rows {
                if row.try_get_by_index(3)? {
                    events.push(unserved(row)?);
                }
            }
            let next = rows.last().filter(|_| rows.len() >= limit).map(|row| {
                Ok::<_, DbErr>(UnservedKey {
                    published: row.try_get_by_index(2)?,
                    id: row.try_get_by_index(0)?,
                })
            });
            Ok(UnservedPage { events, next: next.transpose()? })
        };
        read.await.map_err(refused("look for events that nobody has"))
    }

    /// Those of these events that are stored.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn stored(&self, ids: &[EventId]) -> Result<Vec<Unserved>, StoreError> {
        let refused = refused("look for events");
        let mut stored = Vec::with_capacity(ids.len());
        for piece in pieces(ids) {
            let sql = format!(
                "SELECT e.id, @bytes(e.data) FROM event e WHERE e.id IN ({})",
                marks(rounded(piece.len()))
            );
            let mut values = piece.iter().map(|id| id.as_str().into()).collect();
            fill(&mut values, piece.len(), 1);
            let rows = self.readers.rows(sql, values).await.map_err(&refused)?;
            for row in &rows {
                stored.push(unserved(row).map_err(&refused)?);
            }
        }
        Ok(stored)
    }
}

fn unserved(row: &QueryResult) -> Result<Unserved, DbErr> {
    Ok(Unserved { id: EventId::from_stored(row.try_get_by_index::<String>(0)?), bytes: size(row, 1)? })
}

/// The rows come by the index `event_published_unserved` and are cut before they are looked at: of those that wait for
/// their time, or that npm spokes have done, there may be many.
pub(super) fn page_query(
    since: i64,
    age: Duration,
    after: Option<&UnservedKey>,
    limit: usize,
) -> (String, Vec<Value>) {
    let (published, id) = match after {
        Some(key) => (key.published.clone(), key.id.clone()),
        None => (time::text(since.max(0)), String::new()),
    };
    let sql = "SELECT p.event_id, @bytes(e.data), @moment_text(@utc(p.published)), \
               s.event_id IS NULL AND p.consumed_spoke IS NULL AND p.success IS NULL AND p.failed IS NULL \
               AND p.orphan IS NULL \
               FROM (SELECT * FROM event_published @index(event_published_unserved) \
               WHERE v1_hub IS NULL AND published >= @local(@moment(?)) AND (published, event_id) > (@local(@moment(?)), ?) \
               AND @ms(@utc(published)) <= @now_ms - ? \
               ORDER BY published, event_id LIMIT ?) p \
               JOIN event e ON e.id = p.event_id LEFT JOIN event_scheduled s ON s.event_id = p.event_id \
               ORDER BY p.published, p.event_id";
    let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
    // The first condition says no more than the second, but MySQL finds no range in a comparison of rows.
    let bound = published.clone();
    (sql.to_owned(), vec![bound.into(), published.into(), id.into(), age.into(), signed(limit as u64).into()])
}
