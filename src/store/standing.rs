//! Whether an event has its outcome yet.

use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};

use super::{
    AttemptRow, Store, StoreError,
    engine::{Ask, small},
    entity::{attempt, event_published},
    sql::{fill, pieces, refused, rows_of},
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
        if !group.is_empty() {
            return self.standing_in_named(id, group).await;
        }
        let refused = refused("read the outcome of an event");
        let published = event_published::Entity::find_by_id(id.to_string()).one(&self.readers).await;
        let Some(row) = published.map_err(&refused)? else {
            let sql = "SELECT 1 FROM event WHERE id = ?";
            let known = self.readers.row(sql, vec![id.as_str().into()]).await.map_err(refused)?;
            return match known {
                None => Err(StoreError::EventNotFound { id: id.clone() }),
                Some(_) => Ok(Standing::Open),
            };
        };
        let (Some(state), Some(ended)) = (outcome(&row), row.success.or(row.failed).or(row.orphan)) else {
            return Ok(Standing::Open);
        };
        let error = match state {
            "dead" => self.last_error(id, group, None).await?,
            _ => String::new(),
        };
        Ok(Standing::Ended(Ended {
            state: state.to_owned(),
            consumer: row.consumer.map(Uid::from_stored),
            ended: time::millis(ended),
            error,
        }))
    }

    /// By the last round that ended in the group, unless that was before its base round, or the next one has begun.
    async fn standing_in_named(&self, id: &EventId, group: &str) -> Result<Standing, StoreError> {
        let refused = refused("read the outcome of an event");
        let sql = "SELECT o.outcome, o.consumer, o.ended, o.round FROM event e LEFT JOIN v1_outcome o \
                   ON o.event_id = e.id AND o.grp = ? \
                   AND o.round >= coalesce((SELECT round FROM v1_group WHERE name = ?), 1) \
                   AND NOT EXISTS (SELECT 1 FROM v1_retry r WHERE r.event_id = e.id AND r.grp = ?) \
                   WHERE e.id = ? ORDER BY o.round DESC LIMIT 1";
        let values = vec![group.into(), group.into(), group.into(), id.as_str().into()];
        let row = self.readers.row(sql, values).await.map_err(&refused)?;
        let Some(row) = row else { return Err(StoreError::EventNotFound { id: id.clone() }) };
        let read = || {
            let Some(state) = row.try_get_by_index::<Option<String>>(0)? else { return Ok(None) };
            let (consumer, ended): (String, _) = (row.try_get_by_index(1)?, row.try_get_by_index(2)?);
            let ended = Ended {
                state,
                consumer: Some(Uid::from_stored(consumer)),
                ended: time::millis(ended),
                error: String::new(),
            };
            Ok(Some((ended, small(&row, 3)?)))
        };
        let Some((mut ended, round)) = read().map_err(refused)? else { return Ok(Standing::Open) };
        if ended.state == "dead" {
            ended.error = self.last_error(id, group, Some(round)).await?;
        }
        Ok(Standing::Ended(ended))
    }

    /// What the last attempt said, of this round if one is given.
    async fn last_error(&self, id: &EventId, group: &str, round: Option<u32>) -> Result<String, StoreError> {
        let mut find = attempt::Entity::find()
            .filter(attempt::Column::EventId.eq(id.as_str()))
            .filter(attempt::Column::Grp.eq(group));
        if let Some(round) = round {
            find = find.filter(attempt::Column::Round.eq(round));
        }
        let last = find.order_by_desc(attempt::Column::Id).one(&self.readers).await;
        let last = last.map_err(refused("read the outcome of an event"))?;
        Ok(last.map(|row| Attempt::from(AttemptRow::from(row)).error).unwrap_or_default())
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
                "SELECT v.column1 FROM {} v LEFT JOIN event_published p ON p.event_id = @id(v.column1) \
                 WHERE v.column1 IS NOT NULL AND (p.success IS NOT NULL OR p.failed IS NOT NULL \
                 OR p.orphan IS NOT NULL OR (p.event_id IS NULL \
                 AND NOT EXISTS (SELECT 1 FROM event e WHERE e.id = @id(v.column1))))",
                rows_of(piece.len(), 1)
            );
            let mut values = piece.iter().map(|id| id.as_str().into()).collect();
            fill(&mut values, piece.len(), 1);
            for row in self.readers.rows(sql, values).await.map_err(&refused)? {
                let id: String = row.try_get_by_index(0).map_err(&refused)?;
                over.push(EventId::from_stored(id));
            }
        }
        Ok(over)
    }
}
