//! Claims of the default group on events that npm spokes may claim too: made by the same conditional update as theirs.

use std::collections::HashSet;

use sea_orm::{DbErr, Value};

use super::{
    super::{
        Write, Written,
        engine::{Ask, Engine},
        sql::{Script, fill, marks, pieces, rounded, rows_of, update_from},
        time,
        writer::Db,
    },
    Answer,
};
use crate::event::{EventId, Uid};

/// Claims with an outcome that are forgotten with each batch, so that they don't pile up.
const FORGOTTEN: u32 = 256;
const OPEN: &str = "success IS NULL AND failed IS NULL AND orphan IS NULL";

/// Makes the claims of the batch, and answers them. What is ours already stays so, for the later consumer.
pub(super) async fn write(db: &Db<'_>, writes: &[Write], answers: &mut [Answer]) -> Result<(), DbErr> {
    let mut claims: Vec<(&EventId, &Uid, i64)> = writes
        .iter()
        .filter_map(|write| match write {
            Write::Claim { event_id, consumer, at } => Some((event_id, consumer, *at)),
            _ => None,
        })
        .collect();
    if claims.is_empty() {
        return Ok(());
    }
    // Always in the same order, so that two hubs on one server can't wait for each other.
    claims.sort_by_key(|(id, ..)| *id);
    forget(db, claims[0].0).await?;
    let mut ours = HashSet::with_capacity(claims.len());
    for piece in pieces(&claims) {
        lock(db, piece).await?;
        make(piece, db.engine()).run(db).await?;
        ours.extend(made(db, piece).await?);
    }
    for (write, answer) in writes.iter().zip(answers) {
        if let Write::Claim { event_id, .. } = write {
            *answer = Ok(Written::Claimed(ours.contains(event_id)));
        }
    }
    Ok(())
}

/// Deletes claims that have their outcome, of the hub that has this event, which is the one that claims it. They are looked
/// up by a statement that locks nothing: a condition of the `DELETE` would lock rows of `event_published` for reading,
/// those of other hubs too. npm spokes want to write such rows, and in a deadlock they lose, having no second try.
async fn forget(db: &Db<'_>, one: &EventId) -> Result<(), DbErr> {
    let sql = format!(
        "SELECT c.event_id FROM v1_claim c JOIN event_published p ON p.event_id = c.event_id \
         WHERE NOT ({OPEN}) AND p.v1_hub = (SELECT own.v1_hub FROM event_published own WHERE own.event_id = ?) \
         ORDER BY c.event_id LIMIT {FORGOTTEN}"
    );
    let rows = db.rows(sql, vec![one.as_str().into()]).await?;
    if rows.is_empty() {
        return Ok(());
    }
    let mut values = rows
        .iter()
        .map(|row| row.try_get_by_index::<String>(0).map(Value::from))
        .collect::<Result<_, _>>()?;
    fill(&mut values, rows.len(), 1);
    let sql = format!("DELETE FROM v1_claim WHERE event_id IN ({})", marks(rounded(rows.len())));
    db.run(sql, values).await.map(drop)
}

/// MySQL alone: locks the rows that are free as the claim of an npm spoke does, whose statement MySQL runs by the index on
/// `consumed_spoke`: the entry of the index first, then the row. By the row first the two would meet in a deadlock, which
/// the spoke loses.
async fn lock(db: &Db<'_>, claims: &[(&EventId, &Uid, i64)]) -> Result<(), DbErr> {
    if db.engine() != Engine::MySql {
        return Ok(());
    }
    let sql = format!(
        "SELECT event_id FROM event_published FORCE INDEX (idx_consumed_spoke) \
         WHERE consumed_spoke IS NULL AND event_id IN ({}) ORDER BY event_id FOR UPDATE",
        marks(rounded(claims.len()))
    );
    db.rows(sql, ids(claims)).await.map(drop)
}

fn make(claims: &[(&EventId, &Uid, i64)], engine: Engine) -> Script {
    let mut script = Script::new(engine);
    script.add(
        format!(
            "INSERT INTO v1_claim (event_id) SELECT p.event_id FROM event_published p \
             WHERE p.event_id IN ({}) AND p.consumed_spoke IS NULL AND {OPEN} \
             AND NOT EXISTS (SELECT 1 FROM v1_claim c WHERE c.event_id = p.event_id)",
            marks(rounded(claims.len()))
        ),
        ids(claims),
    );
    let mut values: Vec<Value> = Vec::with_capacity(rounded(claims.len()) * 3);
    for (id, consumer, at) in claims {
        values.extend([id.as_str().into(), consumer.as_str().into(), time::value(*at)]);
    }
    fill(&mut values, claims.len(), 3);
    let (sql, values) = update_from(
        engine,
        "event_published",
        (
            "consumed_spoke = coalesce(consumed_spoke, made.column3), consumer = made.column2".to_owned(),
            Vec::new(),
        ),
        (format!("{} made", rows_of(claims.len(), 3)), values),
        &format!(
            "event_id = @id(made.column1) AND {OPEN} \
             AND EXISTS (SELECT 1 FROM v1_claim c WHERE c.event_id = @id(made.column1))"
        ),
    );
    script.add(sql, values);
    script
}

/// Which of them are ours and can still take an outcome.
async fn made(db: &Db<'_>, claims: &[(&EventId, &Uid, i64)]) -> Result<Vec<EventId>, DbErr> {
    let sql = format!(
        "SELECT p.event_id FROM event_published p JOIN v1_claim c ON c.event_id = p.event_id \
         WHERE p.event_id IN ({}) AND {OPEN}",
        marks(rounded(claims.len()))
    );
    let rows = db.rows(sql, ids(claims)).await?;
    rows.iter().map(|row| row.try_get_by_index::<String>(0).map(EventId::from_stored)).collect()
}

fn ids(claims: &[(&EventId, &Uid, i64)]) -> Vec<Value> {
    let mut values = claims.iter().map(|(id, ..)| id.as_str().into()).collect();
    fill(&mut values, claims.len(), 1);
    values
}
