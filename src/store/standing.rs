//! Whether an event has its outcome yet.

use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder};

use super::{
    AttemptRow, Store, StoreError,
    entity::{attempt, event, event_published},
    sql::refused,
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
    Open {
        /// The database says that a spoke has it. Only what the npm stack claims is written there before it ends,
        /// and its outcome too is written there by somebody else.
        claimed: bool,
    },
    /// It has its outcome.
    Ended(Ended),
}

impl Store {
    /// Whether an event has its outcome in the default group, and which.
    ///
    /// # Errors
    /// [`StoreError::EventNotFound`], or whatever the database says.
    pub async fn standing(&self, id: &EventId) -> Result<Standing, StoreError> {
        let refused = refused("read the outcome of an event");
        let published = event_published::Entity::find_by_id(id.to_string()).one(&self.readers).await;
        let Some(row) = published.map_err(&refused)? else {
            let known =
                event::Entity::find_by_id(id.to_string()).count(&self.readers).await.map_err(refused)?;
            return match known {
                0 => Err(StoreError::EventNotFound { id: id.clone() }),
                _ => Ok(Standing::Open { claimed: false }),
            };
        };
        let (Some(state), Some(ended)) = (outcome(&row), row.success.or(row.failed).or(row.orphan)) else {
            return Ok(Standing::Open { claimed: row.consumed_spoke.is_some() });
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
}
