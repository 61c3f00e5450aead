//! Leases of hubs on a server: who says that it serves a hub's events, and until when by the database's clock. SQLite needs
//! none: there the lock of the data folder says it.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use sea_orm::{DbErr, Value};

use super::{
    HubRow, Store, StoreError,
    engine::{Ask, number},
    hubs::register,
    sql::{refused, signed, unsigned},
    writer::Db,
};
use crate::event::Uid;

/// How long a lease lasts from its last renewal on.
const LEASE_MS: i64 = 10_000;
/// A hub whose last renewal is older, by its own clock, hands out nothing: what is left of the lease is for what is under way.
const FRESH: Duration = Duration::from_secs(8);

/// Where a hub runs, as far as others can tell it from another place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seat {
    /// The machine's name.
    pub host: String,
    /// The data folder there.
    pub folder: String,
}

/// When the lease was renewed last.
#[derive(Debug, Default)]
pub(super) struct Renewed(Mutex<Option<Instant>>);

impl Renewed {
    fn at(&self, moment: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(moment);
    }

    /// Before the first one there is nothing to hand out.
    fn is_fresh(&self) -> bool {
        let last = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.is_none_or(|last| last.elapsed() < FRESH)
    }
}

impl Store {
    /// As [`Self::register_hub`]; on a server it also takes the hub's lease. Whoever holds the data folder takes its hub at
    /// once, whatever the lease says.
    ///
    /// # Errors
    /// [`StoreError::HubElsewhere`] while the lease of the same hub in another place lives, or whatever the database says.
    pub async fn take_hub(&self, row: &HubRow, seat: &Seat) -> Result<u64, StoreError> {
        if !self.is_on_server() {
            return self.register_hub(row).await;
        }
        let refused = refused("register the hub");
        let began = Instant::now();
        let transaction = self.writer.begin_unfenced().await.map_err(&refused)?;
        let db = transaction.db();
        let taken = async {
            if let Some(holder) = holder(&db, &row.id, seat).await? {
                return Ok(Err(holder));
            }
            let epoch = register(&db, row).await?;
            hold(&db, &row.id, epoch, seat).await?;
            Ok(Ok(epoch))
        };
        let taken: Result<Result<i64, (Seat, i64)>, DbErr> = taken.await;
        match transaction.end(taken).await.map_err(refused)? {
            Ok(epoch) => {
                self.renewed.at(began);
                self.writer.fence(&row.id, epoch);
                Ok(unsigned(epoch))
            }
            Err((seat, left)) => Err(StoreError::HubElsewhere {
                hub: row.id.to_string(),
                host: seat.host,
                folder: seat.folder,
                seconds: unsigned(left).div_ceil(1_000),
            }),
        }
    }

    /// Renews the lease of this hub in this epoch. On SQLite there is nothing to do.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] if another one has taken the hub's place, or whatever the database says.
    pub async fn renew_lease(&self, hub: &Uid, epoch: u64) -> Result<(), StoreError> {
        if !self.is_on_server() {
            return Ok(());
        }
        let refused = refused("renew the hub's lease");
        let began = Instant::now();
        let transaction = self.writer.begin_unfenced().await.map_err(&refused)?;
        let renewed = async {
            let db = transaction.db();
            // Nobody has it for long. If somebody has, the next beat tries again, and no connection waits meanwhile.
            let sql = "SELECT 1 FROM v1_hub_lease WHERE hub_id = ? @locked_now";
            db.row(sql, vec![hub.as_str().into()]).await?;
            let sql = "UPDATE v1_hub_lease SET until_ms = @now_ms + ? WHERE hub_id = ? AND epoch = ?";
            db.run(sql, vec![LEASE_MS.into(), hub.as_str().into(), signed(epoch).into()]).await
        };
        let renewed = renewed.await;
        match transaction.end(renewed).await.map_err(refused)? {
            0 => Err(StoreError::Fenced),
            _ => {
                self.renewed.at(began);
                Ok(())
            }
        }
    }

    /// Whether this hub may hand out events: on a server the lease must have been renewed in the last 8 s.
    #[must_use]
    pub fn is_lease_fresh(&self) -> bool {
        !self.is_on_server() || self.renewed.is_fresh()
    }
}

/// Who else has this hub, and for how many more milliseconds.
async fn holder(db: &Db<'_>, hub: &Uid, seat: &Seat) -> Result<Option<(Seat, i64)>, DbErr> {
    let sql = "SELECT host, folder, until_ms - @now_ms FROM v1_hub_lease WHERE hub_id = ? @locked";
    let Some(row) = db.row(sql, vec![hub.as_str().into()]).await? else { return Ok(None) };
    let other = Seat { host: row.try_get_by_index(0)?, folder: row.try_get_by_index(1)? };
    let left = number(&row, 2)?;
    Ok((left > 0 && other != *seat).then_some((other, left)))
}

async fn hold(db: &Db<'_>, hub: &Uid, epoch: i64, seat: &Seat) -> Result<(), DbErr> {
    // Whoever goes on with its work stops at that.
    let sql = "INSERT INTO v1_hub_lease (hub_id, epoch, host, folder, until_ms) VALUES (?, ?, ?, ?, @now_ms + ?) \
               @else_set(hub_id) epoch = @new(epoch), host = @new(host), folder = @new(folder), \
               until_ms = @new(until_ms), adopted_by = NULL";
    let values: Vec<Value> = vec![
        hub.as_str().into(),
        epoch.into(),
        seat.host.as_str().into(),
        seat.folder.as_str().into(),
        LEASE_MS.into(),
    ];
    db.run(sql, values).await.map(drop)
}
