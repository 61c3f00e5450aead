//! Events that npm spokes have put into the database: which hub tells npm spokes of them, which one serves our links.

use std::collections::HashMap;

use sea_orm::{DbErr, Value};

use super::{
    super::{
        NotTaken, Taken, Write, Written,
        engine::Ask,
        events::{EVENT, event_of},
        sql::{Script, fill, marks, pieces, rounded, signed},
        time,
        writer::Db,
    },
    Answer, publishes,
};
use crate::event::{Event, EventId, Uid};

/// How an event stands before its claims.
pub(super) struct Found {
    pub(super) event: Event,
    pub(super) published: bool,
    /// Scheduled, and not executed.
    pub(super) waits: bool,
    /// A spoke has claimed it.
    pub(super) claimed: bool,
    /// A hub of ours has it.
    pub(super) served: bool,
    /// It has an outcome.
    pub(super) over: bool,
}

/// Makes the claims of the batch's takes in their order, and answers them.
pub(super) async fn write(db: &Db<'_>, writes: &[Write], answers: &mut [Answer]) -> Result<(), DbErr> {
    let ids: Vec<&EventId> = writes
        .iter()
        .filter_map(|write| if let Write::Take { event_id, .. } = write { Some(event_id) } else { None })
        .collect();
    if ids.is_empty() {
        return Ok(());
    }
    let found = find(db, &ids).await?;
    let mut given = Vec::new();
    for (write, answer) in writes.iter().zip(answers) {
        let Write::Take { event_id, hub, seq, at } = write else { continue };
        let refused = match found.get(event_id) {
            None => NotTaken::Unknown,
            Some(found) if !found.published => NotTaken::Unpublished,
            Some(found) if found.waits => NotTaken::Scheduled,
            Some(Found { event, claimed, .. }) => {
                let broadcasts = tell_npm(db, event_id, hub, *at).await?;
                let serves = serve(db, event_id, hub, *seq).await?;
                if serves {
                    given.push((hub, *seq));
                }
                let taken = Taken { event: event.clone(), broadcasts, serves, claimed: *claimed };
                *answer = Ok(Written::Taken(Box::new(taken)));
                continue;
            }
        };
        *answer = Ok(Written::NotTaken(refused));
    }
    let mut script = Script::new(db.engine());
    publishes::save_seq(given, &mut script);
    script.run(db).await
}

/// The claim that npm hubs make too: who wins it tells npm spokes.
async fn tell_npm(db: &Db<'_>, id: &EventId, hub: &Uid, at: i64) -> Result<bool, DbErr> {
    let sql =
        "UPDATE event_published SET consumed_hub = ?, hub = ? WHERE event_id = ? AND consumed_hub IS NULL";
    let values = vec![time::value(at), hub.as_str().into(), id.as_str().into()];
    Ok(db.run(sql, values).await? > 0)
}

/// The claim among our own hubs.
async fn serve(db: &Db<'_>, id: &EventId, hub: &Uid, seq: u64) -> Result<bool, DbErr> {
    let sql = "UPDATE event_published SET v1_hub = ?, seq = ? WHERE event_id = ? AND v1_hub IS NULL";
    let values = vec![hub.as_str().into(), signed(seq).into(), id.as_str().into()];
    Ok(db.run(sql, values).await? > 0)
}

/// Those of these events that are stored.
pub(super) async fn find(db: &Db<'_>, ids: &[&EventId]) -> Result<HashMap<EventId, Found>, DbErr> {
    let mut all = HashMap::with_capacity(ids.len());
    for piece in pieces(ids) {
        let sql = format!(
            "SELECT {EVENT}, p.event_id IS NOT NULL, s.event_id IS NOT NULL AND s.executed IS NULL, \
             p.consumed_spoke IS NOT NULL, p.v1_hub IS NOT NULL, \
             p.success IS NOT NULL OR p.failed IS NOT NULL OR p.orphan IS NOT NULL \
             FROM event e LEFT JOIN event_published p ON p.event_id = e.id \
             LEFT JOIN event_scheduled s ON s.event_id = e.id WHERE e.id IN ({})",
            marks(rounded(piece.len()))
        );
        let mut values: Vec<Value> = piece.iter().map(|id| id.as_str().into()).collect();
        fill(&mut values, piece.len(), 1);
        for row in db.rows(sql, values).await? {
            let event = event_of(&row)?;
            let found = Found {
                published: row.try_get_by_index(7)?,
                waits: row.try_get_by_index(8)?,
                claimed: row.try_get_by_index(9)?,
                served: row.try_get_by_index(10)?,
                over: row.try_get_by_index(11)?,
                event,
            };
            all.insert(found.event.id.clone(), found);
        }
    }
    Ok(all)
}
