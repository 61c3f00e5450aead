//! Bindings and cursors: who wants what, and how far a group has come.

use sea_orm::{EntityTrait, QueryOrder};

use super::{
    Binding, Store, StoreError,
    entity::{binding, cursor},
    sql::{refused, unsigned},
    time,
};
use crate::event::{Pattern, Uid};

impl Store {
    /// All bindings, oldest first.
    ///
    /// # Errors
    /// Whatever the database says; [`StoreError::Damaged`] if a row holds no pattern.
    pub async fn bindings(&self) -> Result<Vec<Binding>, StoreError> {
        let rows = binding::Entity::find().order_by_asc(binding::Column::Id).all(&self.readers).await;
        rows.map_err(refused("list the bindings"))?.into_iter().map(Binding::try_from).collect()
    }

    /// How far the group has come on this hub, if that was ever saved; the empty group is the default one.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn cursor(&self, hub: &Uid, group: &str) -> Result<Option<u64>, StoreError> {
        let key = (hub.to_string(), group.to_owned());
        let row = cursor::Entity::find_by_id(key).one(&self.readers).await;
        row.map(|row| row.map(|row| unsigned(row.seq))).map_err(refused("read a cursor"))
    }
}

impl TryFrom<binding::Model> for Binding {
    type Error = StoreError;

    fn try_from(row: binding::Model) -> Result<Self, StoreError> {
        let pattern = |text: String| {
            Pattern::parse(text).map_err(|error| StoreError::Damaged {
                what: format!("the binding {}", row.id),
                reason: error.to_string(),
            })
        };
        Ok(Self {
            id: row.id,
            domain: pattern(row.domain)?,
            name: pattern(row.name)?,
            group: row.grp,
            start_seq: unsigned(row.start_seq),
            created: time::millis(row.created),
        })
    }
}
