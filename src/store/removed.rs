//! What retention has removed of a hub's events.

use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};

use super::{
    Store, StoreError,
    entity::removed::{Column, Entity, Model},
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
    /// The number of the last; between them are others that are still there.
    pub last_seq: u64,
    /// How many there were.
    pub events: u64,
}

impl From<Model> for Removed {
    fn from(row: Model) -> Self {
        Self {
            domain: Domain::from_stored(row.domain),
            first_seq: unsigned(row.first_seq),
            last_seq: unsigned(row.last_seq),
            events: unsigned(row.events),
        }
    }
}

impl Store {
    /// What was removed of a hub's events and ends above `after_seq`, by the numbers of its ends.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn removed(&self, hub: &Uid, after_seq: u64) -> Result<Vec<Removed>, StoreError> {
        let rows = Entity::find()
            .filter(Column::Hub.eq(hub.as_str()))
            .filter(Column::LastSeq.gt(signed(after_seq)))
            .order_by_asc(Column::LastSeq)
            .all(&self.readers)
            .await;
        Ok(rows.map_err(refused("read what was removed"))?.into_iter().map(Removed::from).collect())
    }
}
