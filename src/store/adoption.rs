//! Adoption on a server: a hub that lives goes on with the work of one whose lease is over.
//!
//! What the dead hub dispatched stays its own: `v1_hub` and `seq` never change, so that positions of readers stay exact. What
//! changes hands is the work. Everything at or below a cursor has an outcome, an exception row (`v1_retry`) or no matching
//! binding; so the adopter makes rows of its own of what is open above the dead hub's cursors and moves those on, page by page,
//! and takes its rows over. In each of these transactions the dead hub's lease must still name the adopter: it may come back at
//! any moment, and goes on with what wasn't taken.
//!
//! Rows are known on a hub by their numbers, and two hubs may have given the same one: what is taken over gets a number of
//! the adopter's sequence, in the order of those it had.
//!
//! Nothing of this is remembered elsewhere: what is left to be done follows from leases, cursors and rows. So an adopter that
//! restarts goes on, and whoever adopts an adopter goes on with what that had adopted.

use std::time::Instant;

use sea_orm::{ConnectionTrait, DbErr, Value};

use super::{
    Store, StoreError,
    engine::{Ask, number},
    sql::{Class, refused},
    time,
    writer::Db,
};
use crate::event::Uid;

/// Dead hubs that are taken over in one look: the next one is soon.
const MOST_HUBS: i64 = 16;
/// The most hubs of whose events one is in charge. Beyond, the first ones are.
const MOST_SERVED: i64 = 256;

/// A part of what a dead hub had to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdoptionWork {
    /// The dead hub.
    pub from: Uid,
    /// What is open in this group above its cursor, empty is the default one; none: its rows of events that wait for
    /// another attempt, in all groups.
    pub group: Option<String>,
}

/// What came of a [`Write::Adopt`](super::Write::Adopt).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Adopted {
    /// How many events are this hub's to serve now, once for each group.
    pub events: u64,
    /// The groups of them; empty is the default one.
    pub groups: Vec<String>,
    /// The same part has more.
    pub more: bool,
}

/// What a look for dead hubs found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TakenOver {
    /// Hubs that were adopted just now.
    pub hubs: Vec<Uid>,
    /// What is to be done next, if there is anything.
    pub work: Option<AdoptionWork>,
    /// How many hubs this one has adopted that didn't come back.
    pub adopted: u64,
}

impl Store {
    /// Adopts the hubs whose leases are over and that nobody has adopted, and finds what is to be done next of the work of all
    /// that this hub has adopted. Of several that try it, one adopts a hub. A dead hub that holds locks yet, since it is stopped
    /// in a transaction, is left for the next look. On SQLite there is nothing to do.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] if another one has taken this hub's place, or whatever the database says.
    pub async fn take_over(&self, hub: &Uid) -> Result<TakenOver, StoreError> {
        let mut taken = TakenOver::default();
        if !self.is_on_server() {
            return Ok(taken);
        }
        let refused = refused("look for hubs whose leases are over");
        for dead in self.dead_hubs(hub).await.map_err(&refused)? {
            match self.adopt(&dead, hub).await {
                Ok(true) => taken.hubs.push(dead),
                Ok(false) => {}
                Err(error) if Class::of(&error) == Class::Busy => {
                    tracing::info!(%dead, "its lease is over, but it holds locks yet: it is adopted once they are gone");
                }
                Err(error) => return Err(refused(error)),
            }
        }
        let sql = "SELECT count(*) FROM v1_hub_lease WHERE adopted_by = ?";
        let row = self.readers.row(sql, vec![hub.as_str().into()]).await.map_err(&refused)?;
        let adopted = row.map_or(Ok(0), |row| number(&row, 0)).map_err(&refused)?;
        taken.adopted = adopted.unsigned_abs();
        if taken.adopted > 0 {
            taken.work = next_work(&self.readers, hub).await.map_err(refused)?;
        }
        Ok(taken)
    }

    /// The hubs of whose events this one is in charge: itself first, then those that it has adopted and that didn't come back.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn served_hubs(&self, hub: &Uid) -> Result<Vec<Uid>, StoreError> {
        served(&self.readers, hub).await.map_err(refused("look which hubs are adopted"))
    }

    async fn dead_hubs(&self, hub: &Uid) -> Result<Vec<Uid>, DbErr> {
        let sql = "SELECT hub_id FROM v1_hub_lease WHERE until_ms <= @now_ms AND adopted_by IS NULL AND hub_id <> ? \
                   ORDER BY until_ms, hub_id LIMIT ?";
        let rows = self.readers.rows(sql, vec![hub.as_str().into(), MOST_HUBS.into()]).await?;
        rows.iter().map(|row| row.try_get_by_index::<String>(0).map(Uid::from_stored)).collect()
    }

    /// Raises the dead hub's epoch, so that nothing of it is committed any more, and takes its place. False: it is back, or
    /// somebody was quicker.
    async fn adopt(&self, dead: &Uid, hub: &Uid) -> Result<bool, DbErr> {
        let began = Instant::now();
        let transaction = self.writer.begin().await?;
        let adopted = take(&transaction.db(), dead, hub).await;
        let adopted = transaction.end(adopted).await?;
        tracing::debug!(%dead, adopted, took = ?began.elapsed(), "tried to adopt a hub");
        Ok(adopted)
    }
}

/// The lease first, as whoever takes a hub's place does; then the epoch, on which the hub's transactions wait. It waits for none
/// of these locks: a hub that is stopped may hold them for long, and with this transaction the journal of this one would wait.
async fn take(db: &Db<'_>, dead: &Uid, hub: &Uid) -> Result<bool, DbErr> {
    let key = || -> Value { dead.as_str().into() };
    let sql =
        "SELECT until_ms <= @now_ms AND adopted_by IS NULL FROM v1_hub_lease WHERE hub_id = ? @locked_now";
    let Some(row) = db.row(sql, vec![key()]).await? else { return Ok(false) };
    if !row.try_get_by_index::<bool>(0)? {
        return Ok(false);
    }
    let sql = "SELECT epoch FROM v1_hub_epoch WHERE hub_id = ? @locked_now";
    let Some(row) = db.row(sql, vec![key()]).await? else { return Ok(false) };
    let epoch = row.try_get_by_index::<i64>(0)? + 1;
    db.run("UPDATE v1_hub_epoch SET epoch = ? WHERE hub_id = ?", vec![epoch.into(), key()]).await?;
    let sql = "UPDATE v1_hub_lease SET epoch = ?, adopted_by = ? WHERE hub_id = ?";
    db.run(sql, vec![epoch.into(), hub.as_str().into(), key()]).await?;
    // With what it had adopted itself.
    let sql = "UPDATE v1_hub_lease SET adopted_by = ? WHERE adopted_by = ? AND hub_id <> ?";
    db.run(sql, vec![hub.as_str().into(), key(), hub.as_str().into()]).await?;
    let sql = "UPDATE hub SET quit = ? WHERE id = ? AND quit IS NULL";
    db.run(sql, vec![time::value(time::now()), key()]).await?;
    let message = format!("adopted: the work of the hub {dead}, whose lease is over");
    let details = serde_json::json!({ "hub": dead, "epoch": epoch }).to_string();
    let sql = "INSERT INTO log (timestamp, agent, message, error) VALUES (?, ?, ?, @json(?))";
    let values = vec![time::value(time::now()), hub.as_str().into(), message.into(), details.into()];
    db.run(sql, values).await?;
    Ok(true)
}

/// What is to be done next: rows that wait for another attempt first, since with the order of keys they come before what is new.
async fn next_work(db: &impl ConnectionTrait, hub: &Uid) -> Result<Option<AdoptionWork>, DbErr> {
    let rows = "SELECT l.hub_id FROM v1_hub_lease l WHERE l.adopted_by = ? \
                AND EXISTS (SELECT 1 FROM v1_retry r WHERE r.hub = l.hub_id) LIMIT 1";
    if let Some(row) = db.row(rows, vec![hub.as_str().into()]).await? {
        let from = Uid::from_stored(row.try_get_by_index::<String>(0)?);
        return Ok(Some(AdoptionWork { from, group: None }));
    }
    let open = "SELECT l.hub_id, b.grp FROM v1_hub_lease l JOIN v1_hub_seq s ON s.hub_id = l.hub_id AND s.seq > 0 \
                CROSS JOIN (SELECT DISTINCT grp FROM v1_binding) b \
                LEFT JOIN v1_cursor c ON c.hub_id = l.hub_id AND c.grp = b.grp \
                WHERE l.adopted_by = ? AND (c.seq IS NULL OR c.seq < s.seq) ORDER BY l.hub_id, b.grp LIMIT 1";
    let row = db.row(open, vec![hub.as_str().into()]).await?;
    row.map(|row| {
        let from = Uid::from_stored(row.try_get_by_index::<String>(0)?);
        Ok(AdoptionWork { from, group: Some(row.try_get_by_index(1)?) })
    })
    .transpose()
}

/// As [`Store::served_hubs`].
pub(super) async fn served(db: &impl ConnectionTrait, hub: &Uid) -> Result<Vec<Uid>, DbErr> {
    served_with(db, hub, "").await
}

/// The same within a transaction to whose end none of them can come back.
pub(super) async fn served_locked(db: &impl ConnectionTrait, hub: &Uid) -> Result<Vec<Uid>, DbErr> {
    served_with(db, hub, "@locked").await
}

async fn served_with(db: &impl ConnectionTrait, hub: &Uid, lock: &str) -> Result<Vec<Uid>, DbErr> {
    let mut all = vec![hub.clone()];
    if db.engine().is_sqlite() {
        return Ok(all);
    }
    let sql = format!("SELECT hub_id FROM v1_hub_lease WHERE adopted_by = ? ORDER BY hub_id LIMIT ? {lock}");
    for row in db.rows(sql, vec![hub.as_str().into(), MOST_SERVED.into()]).await? {
        all.push(Uid::from_stored(row.try_get_by_index::<String>(0)?));
    }
    Ok(all)
}
