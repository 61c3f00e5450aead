//! Whether an event has its outcome yet.

use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder};

use super::{
    AttemptRow, Store, StoreError,
    entity::{attempt, event, event_published},
    sql::{fill, pieces, refused, rows_of, statement},
    time,
    trace::outcome,
};
use crate::{
    event::{EventId, Uid},
    wire::{Attempt, Ended},
};

/// How an event stands in the default group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It has no outcome.
    Open,
    /// It has its outcome.
    Ended(Ended),
}

impl Store {
    /// Whether an event has its outcome in the default group, and which.
    ///
    /// # Errors
    /// [`StoreError::EventNotFound`], or whatever the database says.
    pub async fn standing(&self, id: &EventId) -> Result<Standing, StoreError> {
        self.standing_in(id, "").await
    }

    /// The same in any group; empty is the default one.
    ///
    /// # Errors
    /// [`StoreError::EventNotFound`], or whatever the database says.
    pub async fn standing_in(&self, id: &EventId, group: &str) -> Result<Standing, StoreError> {
        let _ = group;
        let refused = refused("read the outcome of an event");
        let published = event_published::Entity::find_by_id(id.to_string()).one(&self.readers).await;
        let Some(row) = published.map_err(&refused)? else {
            let known =
                event::Entity::find_by_id(id.to_string()).count(&self.readers).await.map_err(refused)?;
            return match known {
                0 => Err(StoreError::EventNotFound { id: id.clone() }),
                _ => Ok(Standing::Open),
            };
        };
        let (Some(state), Some(ended)) = (outcome(&row), row.success.or(row.failed).or(row.orphan)) else {
            return Ok(Standing::Open);
        };
        let error = if state == "dead" {
            let last = attempt::Entity::find()
                .filter(attempt::Column::EventId.eq(id.as_str()))
                .filter(attempt::Column::Grp.eq(""))
                .order_by_desc(attempt::Column::Id)
                .one(&self.readers)
                .await
                .map_err(refused)?;
            last.map(|row| Attempt::from(AttemptRow::from(row)).error).unwrap_or_default()
        } else {
            String::new()
        };
        Ok(Standing::Ended(Ended {
            state: state.to_owned(),
            consumer: row.consumer.map(Uid::from_stored),
            ended: time::millis(ended),
            error,
        }))
    }

    /// Which of these events have their outcome in the default group, or are gone.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn over(&self, ids: &[EventId]) -> Result<Vec<EventId>, StoreError> {
        let refused = refused("look for outcomes");
        let mut over = Vec::new();
        for piece in pieces(ids) {
            let sql = format!(
                "SELECT v.column1 FROM {} v LEFT JOIN event_published p ON p.event_id = v.column1 \
                 WHERE v.column1 IS NOT NULL AND (p.success IS NOT NULL OR p.failed IS NOT NULL \
                 OR p.orphan IS NOT NULL OR (p.event_id IS NULL \
                 AND NOT EXISTS (SELECT 1 FROM event e WHERE e.id = v.column1)))",
                rows_of(piece.len(), 1)
            );
            let mut values = piece.iter().map(|id| id.as_str().into()).collect();
            fill(&mut values, piece.len(), 1);
            for row in self.readers.query_all_raw(statement(sql, values)).await.map_err(&refused)? {
                let id: String = row.try_get_by_index(0).map_err(&refused)?;
                over.push(EventId::from_stored(id));
            }
        }
        Ok(over)
    }
}
