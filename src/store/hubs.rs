//! The hubs: where they listen, their epochs, their last sequence numbers.

use sea_orm::{ActiveModelTrait, ActiveValue::Set, DbErr, EntityTrait, QueryOrder, QueryResult, Value};

use super::{
    Store, StoreError,
    engine::{Ask, number},
    entity::{hub_epoch, hub_seq},
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
        let sql = "UPDATE hub SET quit = ? WHERE id = ?";
        let done = transaction.db().run(sql, vec![time::value(time::now()), id.as_str().into()]).await;
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
        let sql = "UPDATE hub SET quit = NULL WHERE id = ? AND quit IS NOT NULL";
        let done = transaction.db().run(sql, vec![id.as_str().into()]).await;
        transaction.end(done).await.map(|done| done > 0).map_err(refused)
    }

    /// Whether this hub is registered and not marked as stopped.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn is_hub_open(&self, id: &Uid) -> Result<bool, StoreError> {
        let sql = "SELECT 1 FROM hub WHERE id = ? AND quit IS NULL";
        let row = self.readers.row(sql, vec![id.as_str().into()]).await;
        row.map(|row| row.is_some()).map_err(refused("read a hub's row"))
    }

    /// The hubs that aren't marked as stopped, the latest first: at most `limit`.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn open_hubs(&self, limit: u64) -> Result<Vec<HubRow>, StoreError> {
        let sql = "SELECT id, external_ip, external_port, internal_ip, internal_port FROM hub \
                   WHERE quit IS NULL ORDER BY timestamp DESC, id LIMIT ?";
        let read = async {
            let rows = self.readers.rows(sql, vec![signed(limit).into()]).await?;
            rows.iter().map(hub_of).collect::<Result<_, DbErr>>()
        };
        read.await.map_err(refused("list the hubs"))
    }

    /// The hubs whose leases live and that aren't marked as stopped, in the order of their ids: at most `limit`. None on
    /// SQLite, where one hub is alone and has no lease.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn live_hubs(&self, limit: u64) -> Result<Vec<HubRow>, StoreError> {
        if !self.is_on_server() {
            return Ok(Vec::new());
        }
        let sql = "SELECT h.id, h.external_ip, h.external_port, h.internal_ip, h.internal_port FROM hub h \
                   JOIN v1_hub_lease l ON l.hub_id = h.id WHERE h.quit IS NULL AND l.until_ms > @now_ms \
                   ORDER BY h.id LIMIT ?";
        let read = async {
            let rows = self.readers.rows(sql, vec![signed(limit).into()]).await?;
            rows.iter().map(hub_of).collect::<Result<_, DbErr>>()
        };
        read.await.map_err(refused("list the live hubs"))
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

fn hub_of(row: &QueryResult) -> Result<HubRow, DbErr> {
    let port = |index| number(row, index).map(|port| u16::try_from(port).unwrap_or(0));
    Ok(HubRow {
        id: Uid::from_stored(row.try_get_by_index::<String>(0)?),
        external_ip: row.try_get_by_index(1)?,
        external_port: port(2)?,
        internal_ip: row.try_get_by_index(3)?,
        internal_port: port(4)?,
    })
}

pub(super) async fn register(db: &Db<'_>, row: &HubRow) -> Result<i64, DbErr> {
    marker::set(db).await?;
    let id = row.id.to_string();
    let place = || -> [Value; 4] {
        [
            row.external_ip.as_str().into(),
            i32::from(row.external_port).into(),
            row.internal_ip.as_str().into(),
            i32::from(row.internal_port).into(),
        ]
    };
    let known = db.row("SELECT 1 FROM hub WHERE id = ?", vec![id.as_str().into()]).await?;
    if known.is_some() {
        let sql = "UPDATE hub SET external_ip = ?, external_port = ?, internal_ip = ?, internal_port = ?, \
                   quit = NULL WHERE id = ?";
        db.run(sql, [&place()[..], &[id.as_str().into()]].concat()).await?;
    } else {
        let sql = "INSERT INTO hub (external_ip, external_port, internal_ip, internal_port, id, timestamp) \
                   VALUES (?, ?, ?, ?, ?, @local(?))";
        db.run(sql, [&place()[..], &[id.as_str().into(), time::value(time::now())]].concat()).await?;
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
