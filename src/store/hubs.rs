//! The hubs: where they listen, their epochs, their last sequence numbers.

use sea_orm::{
    ActiveModelTrait, ActiveValue::Set, ColumnTrait, DbErr, EntityTrait, IntoActiveModel, QueryFilter,
    QueryOrder, QuerySelect,
};

use super::{
    Store, StoreError,
    entity::{hub, hub_epoch, hub_seq},
    marker,
    sql::{refused, signed, unsigned},
    time,
    writer::Db,
};
use crate::event::Uid;

/// Where a hub listens, for spokes and for other hubs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubRow {
    /// Its id.
    pub id: Uid,
    /// The address that spokes dial.
    pub external_ip: String,
    /// The port that spokes dial.
    pub external_port: u16,
    /// The address that it listens on.
    pub internal_ip: String,
    /// The port that it listens on.
    pub internal_port: u16,
}

impl Store {
    /// Writes the hub's row as open, raises its epoch and returns it; the first is 1. Events refer to the
    /// row, so this comes before the hub listens.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn register_hub(&self, row: &HubRow) -> Result<u64, StoreError> {
        let refused = refused("register the hub");
        let transaction = self.writer.begin_unfenced().await.map_err(&refused)?;
        let registered = register(&transaction.db(), row).await;
        let epoch = transaction.end(registered).await.map_err(refused)?;
        self.writer.fence(&row.id, epoch);
        Ok(unsigned(epoch))
    }

    /// Marks the hub as stopped.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn hub_quit(&self, id: &Uid) -> Result<(), StoreError> {
        let refused = refused("mark the hub as stopped");
        let transaction = self.writer.begin().await.map_err(&refused)?;
        let change = hub::ActiveModel { quit: Set(Some(time::datetime(time::now()))), ..Default::default() };
        let done = hub::Entity::update_many()
            .set(change)
            .filter(hub::Column::Id.eq(id.as_str()))
            .exec(&transaction.db())
            .await;
        transaction.end(done).await.map(drop).map_err(refused)
    }

    /// Takes back that the hub is marked as stopped: while it runs only others can have done that. True: it was.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn reopen_hub(&self, id: &Uid) -> Result<bool, StoreError> {
        if self.is_hub_open(id).await? {
            return Ok(false);
        }
        let refused = refused("mark the hub as running");
        let transaction = self.writer.begin().await.map_err(&refused)?;
        let done = hub::Entity::update_many()
            .set(hub::ActiveModel { quit: Set(None), ..Default::default() })
            .filter(hub::Column::Id.eq(id.as_str()))
            .filter(hub::Column::Quit.is_not_null())
            .exec(&transaction.db())
            .await;
        transaction.end(done).await.map(|done| done.rows_affected > 0).map_err(refused)
    }

    /// Whether this hub is registered and not marked as stopped.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn is_hub_open(&self, id: &Uid) -> Result<bool, StoreError> {
        let row = hub::Entity::find_by_id(id.to_string()).one(&self.readers).await;
        row.map(|row| row.is_some_and(|row| row.quit.is_none())).map_err(refused("read a hub's row"))
    }

    /// The hubs that aren't marked as stopped, the latest first: at most `limit`.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn open_hubs(&self, limit: u64) -> Result<Vec<HubRow>, StoreError> {
        let rows = hub::Entity::find()
            .filter(hub::Column::Quit.is_null())
            .order_by_desc(hub::Column::Timestamp)
            .order_by_asc(hub::Column::Id)
            .limit(limit)
            .all(&self.readers)
            .await;
        Ok(rows.map_err(refused("list the hubs"))?.into_iter().map(HubRow::from).collect())
    }

    /// The hubs that have served this database, the one that gave the latest number first.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn known_hubs(&self) -> Result<Vec<Uid>, StoreError> {
        let rows = hub_seq::Entity::find().order_by_desc(hub_seq::Column::Seq).all(&self.readers).await;
        rows.map(|rows| rows.into_iter().map(|row| Uid::from_stored(row.hub_id)).collect())
            .map_err(refused("list the hubs"))
    }

    /// The last sequence number that this hub gave; 0 if it gave none.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn last_seq(&self, hub: &Uid) -> Result<u64, StoreError> {
        let row = hub_seq::Entity::find_by_id(hub.to_string()).one(&self.readers).await;
        row.map(|row| row.map_or(0, |row| unsigned(row.seq)))
            .map_err(refused("read the last sequence number"))
    }
}

impl From<hub::Model> for HubRow {
    fn from(row: hub::Model) -> Self {
        Self {
            id: Uid::from_stored(row.id),
            external_ip: row.external_ip,
            external_port: row.external_port,
            internal_ip: row.internal_ip,
            internal_port: row.internal_port,
        }
    }
}

async fn register(db: &Db<'_>, row: &HubRow) -> Result<i64, DbErr> {
    marker::set(db).await?;
    let id = row.id.to_string();
    let known = hub::Entity::find_by_id(id.clone()).one(db).await?;
    let is_new = known.is_none();
    let mut place = known.map(IntoActiveModel::into_active_model).unwrap_or(hub::ActiveModel {
        id: Set(id.clone()),
        timestamp: Set(time::datetime(time::now())),
        ..Default::default()
    });
    place.external_ip = Set(row.external_ip.clone());
    place.external_port = Set(row.external_port);
    place.internal_ip = Set(row.internal_ip.clone());
    place.internal_port = Set(row.internal_port);
    place.quit = Set(None);
    if is_new {
        place.insert(db).await?;
    } else {
        place.update(db).await?;
    }

    if hub_seq::Entity::find_by_id(id.clone()).one(db).await?.is_none() {
        hub_seq::ActiveModel { hub_id: Set(id.clone()), seq: Set(signed(0)) }.insert(db).await?;
    }
    match hub_epoch::Entity::find_by_id(id.clone()).one(db).await? {
        Some(before) => {
            let epoch = before.epoch + 1;
            hub_epoch::ActiveModel { hub_id: Set(id), epoch: Set(epoch) }.update(db).await?;
            Ok(epoch)
        }
        None => Ok(hub_epoch::ActiveModel { hub_id: Set(id), epoch: Set(1) }.insert(db).await?.epoch),
    }
}
