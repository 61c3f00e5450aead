//! What the npm stack has left unfinished before a hub of ours first served the database: nobody gets it unless somebody
//! asks for it.

use std::fmt;

use sea_orm::{DbErr, QueryResult, Value};
use serde::{Deserialize, Serialize};

use super::{
    Due, Store, StoreError, Unserved, UnservedKey,
    engine::{Ask, Engine, size},
    sql::{refused, signed},
    time,
};
use crate::event::{Domain, EventId};

/// How an event was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Left {
    /// Published, and no spoke has claimed it.
    Published,
    /// An npm spoke has claimed it, and there is no outcome: it may have been done. It is redriven or left.
    Claimed,
    /// Scheduled for a time that was over for longer than `schedules.npm_overdue`.
    Overdue,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Published => "published",
            Self::Claimed => "claimed",
            Self::Overdue => "overdue",
        })
    }
}

/// An event that was left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// Which.
    pub id: EventId,
    /// Its data, in bytes.
    pub bytes: usize,
    /// Its domain.
    pub domain: Domain,
    /// How it was left.
    pub left: Left,
    /// When it was to run, in milliseconds since 1970, if it was scheduled; else 0.
    pub due: i64,
}

impl History {
    /// As what may be collected.
    #[must_use]
    pub fn unserved(&self) -> Unserved {
        Unserved { id: self.id.clone(), bytes: self.bytes }
    }

    /// As what is due.
    #[must_use]
    pub fn scheduled(&self) -> Due {
        Due { due: self.due, id: self.id.clone(), bytes: self.bytes }
    }
}

/// Where a page of history begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HistoryPlace {
    /// Among what was published, behind this row; none: at its begin.
    Published(Option<UnservedKey>),
    /// Among what was scheduled, behind this row; none: at its begin.
    Scheduled(Option<UnservedKey>),
}

/// A part of what was left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryPage {
    /// The events.
    pub events: Vec<History>,
    /// Where the next page begins; none: that was the last.
    pub next: Option<HistoryPlace>,
}

/// Which part of the past is meant, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Past {
    /// From here on.
    pub since: i64,
    /// What was published before this: the first start of a hub of ours.
    pub first_start: i64,
    /// What was scheduled for before this, and isn't run by itself.
    pub overdue: i64,
}

impl Store {
    /// A page of what was left: looks at no more than `limit` rows. First what was published, then what was scheduled.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn history_page(
        &self,
        past: Past,
        place: &HistoryPlace,
        limit: usize,
    ) -> Result<HistoryPage, StoreError> {
        let read = async {
            match place {
                HistoryPlace::Published(after) => self.published(past, after.as_ref(), limit).await,
                HistoryPlace::Scheduled(after) => self.overdue(past, after.as_ref(), limit).await,
            }
        };
        read.await.map_err(refused("look for what npm left"))
    }

    async fn published(
        &self,
        past: Past,
        after: Option<&UnservedKey>,
        limit: usize,
    ) -> Result<HistoryPage, DbErr> {
        // What the npm stack's column holds on MySQL has no milliseconds.
        let whole = self.readers.engine() == Engine::MySql;
        let since = past.since.max(0);
        let since = if whole { since - since.rem_euclid(1_000) } else { since };
        let (published, id) = match after {
            Some(key) => (key.published.clone(), key.id.clone()),
            None => (time::text(since), String::new()),
        };
        let rows = self.readers.rows(PUBLISHED, published_values(past, published, id, limit)).await?;
        let mut events = Vec::new();
        let mut last = None;
        for row in &rows {
            last = Some(UnservedKey { published: row.try_get_by_index(3)?, id: row.try_get_by_index(0)? });
            let left = match row.try_get_by_index::<Option<String>>(4)?.as_deref() {
                Some("published") => Left::Published,
                Some("claimed") => Left::Claimed,
                _ => continue,
            };
            events.push(history(row, left, 0)?);
        }
        let next = match last.filter(|_| rows.len() >= limit) {
            Some(key) => HistoryPlace::Published(Some(key)),
            None => HistoryPlace::Scheduled(None),
        };
        Ok(HistoryPage { events, next: Some(next) })
    }

    async fn overdue(
        &self,
        past: Past,
        after: Option<&UnservedKey>,
        limit: usize,
    ) -> Result<HistoryPage, DbErr> {
        let (scheduled, id) = match after {
            Some(key) => (key.published.clone(), key.id.clone()),
            None => (time::text(past.since.max(0)), String::new()),
        };
        let values: Vec<Value> = vec![
            time::value(past.overdue),
            scheduled.clone().into(),
            scheduled.into(),
            id.into(),
            signed(limit as u64).into(),
        ];
        let rows = self.readers.rows(OVERDUE, values).await?;
        let mut events = Vec::new();
        let mut last = None;
        for row in &rows {
            last = Some(UnservedKey { published: row.try_get_by_index(3)?, id: row.try_get_by_index(0)? });
            let due = row.try_get_by_index::<Option<i64>>(4)?.unwrap_or_default();
            events.push(history(row, Left::Overdue, due)?);
        }
        let next = last.filter(|_| rows.len() >= limit).map(|key| HistoryPlace::Scheduled(Some(key)));
        Ok(HistoryPage { events, next })
    }
}

/// By the index `event_published_unserved`: rows are cut before they are looked at, of those that npm has done there may be
/// many. What waits for its time is among the schedules.
const PUBLISHED: &str = "SELECT p.event_id, @bytes(e.data), e.domain, @moment_text(p.published), \
     CASE WHEN p.success IS NOT NULL OR p.failed IS NOT NULL OR p.orphan IS NOT NULL THEN NULL \
     WHEN s.event_id IS NOT NULL AND s.executed IS NULL THEN NULL \
     WHEN p.consumed_spoke IS NOT NULL THEN 'claimed' ELSE 'published' END \
     FROM (SELECT * FROM event_published @index(event_published_unserved) \
     WHERE v1_hub IS NULL AND published >= @moment(?) AND (published, event_id) > (@moment(?), ?) \
     AND published < ? ORDER BY published, event_id LIMIT ?) p \
     JOIN event e ON e.id = p.event_id LEFT JOIN event_scheduled s ON s.event_id = p.event_id \
     ORDER BY p.published, p.event_id";

fn published_values(past: Past, published: String, id: String, limit: usize) -> Vec<Value> {
    // The first condition says no more than the second, but MySQL finds no range in a comparison of rows.
    vec![
        published.clone().into(),
        published.into(),
        id.into(),
        time::value(past.first_start),
        signed(limit as u64).into(),
    ]
}

/// By the index `event_scheduled_open`. What hubs of ours scheduled has a time of its own, and is never left.
const OVERDUE: &str = "SELECT s.event_id, @bytes(e.data), e.domain, @moment_text(s.scheduled), @ms(s.scheduled) \
     FROM event_scheduled s JOIN event e ON e.id = s.event_id \
     WHERE s.executed IS NULL AND s.scheduled < ? AND s.scheduled >= @moment(?) \
     AND (s.scheduled, s.event_id) > (@moment(?), ?) ORDER BY s.scheduled, s.event_id LIMIT ?";

fn history(row: &QueryResult, left: Left, due: i64) -> Result<History, DbErr> {
    Ok(History {
        id: EventId::from_stored(row.try_get_by_index::<String>(0)?),
        bytes: size(row, 1)?,
        domain: Domain::from_stored(row.try_get_by_index::<String>(2)?),
        left,
        due,
    })
}
