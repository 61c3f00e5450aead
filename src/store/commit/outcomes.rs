//! Outcomes of the default group, and deliveries that ended without one.

use std::collections::BTreeMap;

use sea_orm::{ConnectionTrait, DatabaseConnection, DbErr, Value};

use super::{
    super::{
        AttemptRow, Write, Written,
        sql::{cut, marks, pieces, row_marks, statement},
        time,
    },
    Answer, Failure,
    known::Known,
};
use crate::event::{EventId, Outcome, Uid};

/// The bytes of an error text that are kept.
const ERROR_BYTES: usize = 8 * 1024;
/// The bytes of a reason that are kept.
const REASON_BYTES: usize = 64;

/// The finishes of one consumer with one outcome.
#[derive(Default)]
struct Finishes<'a> {
    ids: Vec<&'a EventId>,
    at: i64,
}

/// Records outcomes and attempts, and answers them.
pub(super) async fn write(
    db: &DatabaseConnection,
    writes: &[Write],
    mut known: Option<&mut Known>,
    answers: &mut [Answer],
) -> Result<(), Failure> {
    let mut groups: BTreeMap<(&str, &Uid), Finishes<'_>> = BTreeMap::new();
    let mut attempts = Vec::new();
    for (write, answer) in writes.iter().zip(answers) {
        match write {
            Write::Finish { event_id, outcome, consumer, at, attempt } => {
                if let Some(Err(error)) = known.as_mut().map(|known| known.finish(event_id)) {
                    *answer = Err(error);
                    continue;
                }
                let group = groups.entry((column(*outcome), consumer)).or_default();
                group.ids.push(event_id);
                group.at = group.at.max(*at);
                attempts.extend(attempt);
                *answer = Ok(Written::Finished);
            }
            Write::Attempt(row) => match known.as_ref().map(|known| known.attempt(&row.event_id)) {
                Some(Err(error)) => *answer = Err(error),
                _ => attempts.push(row),
            },
            _ => {}
        }
    }
    for ((column, consumer), mut group) in groups {
        // Always in the same order, so that two hubs on one server can't wait for each other.
        group.ids.sort_unstable();
        for piece in pieces(&group.ids) {
            finish(db, column, consumer, group.at, piece).await?;
        }
    }
    for piece in pieces(&attempts) {
        insert_attempts(db, piece).await?;
    }
    Ok(())
}

fn column(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Success => "success",
        Outcome::Dead => "failed",
        Outcome::Expired => "orphan",
    }
}

async fn finish(
    db: &DatabaseConnection,
    column: &str,
    consumer: &Uid,
    at: i64,
    ids: &[&EventId],
) -> Result<(), Failure> {
    let at = time::text(at);
    let mut values: Vec<Value> = Vec::with_capacity(ids.len() + 3);
    values.push(at.as_str().into());
    let claim = if column == "orphan" {
        ""
    } else {
        values.extend([at.into(), consumer.as_str().into()]);
        ", consumed_spoke = coalesce(consumed_spoke, ?), consumer = ?"
    };
    values.extend(ids.iter().map(|id| Value::from(id.as_str())));
    let sql = format!(
        "UPDATE event_published SET {column} = ?{claim} WHERE event_id IN ({}) \
         AND success IS NULL AND failed IS NULL AND orphan IS NULL",
        marks(ids.len())
    );
    let hit = db.execute_raw(statement(sql, values)).await?.rows_affected();
    if usize::try_from(hit) == Ok(ids.len()) { Ok(()) } else { Err(Failure::Surprise) }
}

async fn insert_attempts(db: &DatabaseConnection, rows: &[&AttemptRow]) -> Result<(), DbErr> {
    let sql = format!(
        "INSERT INTO v1_attempt (event_id, grp, round, number, consumer, started, ended, reason, error) VALUES {}",
        row_marks(rows.len(), 9)
    );
    let mut values: Vec<Value> = Vec::with_capacity(rows.len() * 9);
    for row in rows {
        values.extend([
            row.event_id.as_str().into(),
            row.group.as_str().into(),
            row.round.into(),
            row.number.into(),
            row.consumer.as_str().into(),
            time::text(row.started).into(),
            time::text(row.ended).into(),
            cut(row.reason.clone(), REASON_BYTES).into(),
            cut(row.error.clone(), ERROR_BYTES).into(),
        ]);
    }
    db.execute_raw(statement(sql, values)).await.map(drop)
}
