//! What events belong to besides their process.

use std::collections::HashSet;

use sea_orm::{DbErr, Value};

use super::{
    super::{
        StoreError, Write,
        engine::Ask,
        sql::{Script, fill, marks, pieces, rounded},
        writer::Db,
    },
    Answer,
};
use crate::{event::EventId, wire::Association};

/// Writes and answers the associations in their order, in one message; before it one that asks which events are there.
pub(super) async fn write(db: &Db<'_>, writes: &[Write], answers: &mut [Answer]) -> Result<(), DbErr> {
    let ids: Vec<&EventId> = writes
        .iter()
        .filter_map(|write| match write {
            Write::Associate { event_id, .. } | Write::Dissociate { event_id, .. } => Some(event_id),
            _ => None,
        })
        .collect();
    let stored = stored(db, &ids).await?;
    let mut script = Script::new(db.engine());
    for (write, answer) in writes.iter().zip(answers) {
        let (event_id, with, add) = match write {
            Write::Associate { event_id, with } => (event_id, with, true),
            Write::Dissociate { event_id, with } => (event_id, with, false),
            _ => continue,
        };
        if stored.contains(event_id.as_str()) {
            plan(event_id, with, add, &mut script);
        } else {
            *answer = Err(StoreError::EventNotFound { id: event_id.clone() });
        }
    }
    script.run(db).await
}

fn plan(event_id: &EventId, with: &Association, add: bool, script: &mut Script) {
    let id: Value = event_id.as_str().into();
    match (with, add) {
        (Association::ChildProcess { domain, cpid }, true) => script.add(
            "INSERT INTO event_cpid (event_id, domain, cpid) VALUES (?, ?, ?) @else_leave(event_id)",
            [id, domain.as_str().into(), cpid.as_str().into()],
        ),
        (Association::ChildProcess { domain, cpid }, false) => script.add(
            "DELETE FROM event_cpid WHERE event_id = ? AND domain = ? AND cpid = ?",
            [id, domain.as_str().into(), cpid.as_str().into()],
        ),
        (Association::Entity { eid }, true) => script.add(
            "INSERT INTO event_eid (event_id, eid) VALUES (?, ?) @else_leave(event_id)",
            [id, eid.as_str().into()],
        ),
        (Association::Entity { eid }, false) => {
            script.add("DELETE FROM event_eid WHERE event_id = ? AND eid = ?", [id, eid.as_str().into()]);
        }
    }
}

/// Which of these ids are those of events.
async fn stored(db: &Db<'_>, ids: &[&EventId]) -> Result<HashSet<String>, DbErr> {
    let mut stored = HashSet::with_capacity(ids.len());
    for piece in pieces(ids) {
        let mut values = piece.iter().map(|id| id.as_str().into()).collect();
        fill(&mut values, piece.len(), 1);
        let sql = format!("SELECT id FROM event WHERE id IN ({})", marks(rounded(piece.len())));
        for row in db.rows(sql, values).await? {
            stored.insert(row.try_get_by_index(0)?);
        }
    }
    Ok(stored)
}
