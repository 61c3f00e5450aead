//! Outcomes of the default group, and deliveries that ended without one.

use std::collections::BTreeMap;

use sea_orm::Value;

use super::{
    super::{
        AttemptRow, Write, Written,
        sql::{Script, cut, fill, ours, pieces, rounded, rows_of, signed},
        time,
    },
    Answer,
    known::Known,
};
use crate::event::{EventId, Outcome, Uid};

/// The bytes of an error text that are kept.
const ERROR_BYTES: usize = 8 * 1024;
/// The bytes of a reason that are kept.
const REASON_BYTES: usize = 64;

/// The finishes with one outcome.
#[derive(Default)]
struct Finishes<'a> {
    events: Vec<(&'a EventId, &'a Uid, u64)>,
    at: i64,
}

/// Plans the batch's outcomes and attempts, and answers them. An outcome that hits no row ends the script: see
/// [`Script::expect`].
pub(super) fn plan(
    writes: &[Write],
    mut known: Option<&mut Known>,
    answers: &mut [Answer],
    script: &mut Script,
) {
    let mut outcomes: BTreeMap<&str, Finishes<'_>> = BTreeMap::new();
    let mut attempts = Vec::new();
    for (write, answer) in writes.iter().zip(answers) {
        match write {
            Write::Finish { event_id, seq, outcome, consumer, at, attempt, .. } => {
                if let Some(Err(error)) = known.as_mut().map(|known| known.finish(event_id, *seq)) {
                    *answer = Err(error);
                    continue;
                }
                let finishes = outcomes.entry(column(*outcome)).or_default();
                finishes.events.push((event_id, consumer, *seq));
                finishes.at = finishes.at.max(*at);
                attempts.extend(attempt);
                *answer = Ok(Written::Finished { letter: false });
            }
            Write::Attempt(row) => match known.as_ref().map(|known| known.attempt(&row.event_id)) {
                Some(Err(error)) => *answer = Err(error),
                _ => attempts.push(row),
            },
            _ => {}
        }
    }
    for (column, mut finishes) in outcomes {
        // Always in the same order, so that two hubs on one server can't wait for each other.
        finishes.events.sort_unstable();
        for piece in pieces(&finishes.events) {
            finish(column, finishes.at, piece, script);
        }
    }
    for piece in pieces(&attempts) {
        insert_attempts(piece, script);
    }
}

fn column(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Success => "success",
        Outcome::Dead => "failed",
        Outcome::Expired => "orphan",
    }
}

fn finish(column: &str, at: i64, events: &[(&EventId, &Uid, u64)], script: &mut Script) {
    let at = time::text(at);
    let mut values: Vec<Value> = Vec::with_capacity(rounded(events.len()) * 3 + 2);
    values.push(at.as_str().into());
    let claim = if column == "orphan" {
        ""
    } else {
        values.push(at.into());
        ", consumed_spoke = coalesce(consumed_spoke, ?), consumer = ended.column2"
    };
    for (id, consumer, seq) in events {
        values.extend([id.as_str().into(), consumer.as_str().into(), signed(*seq).into()]);
    }
    fill(&mut values, events.len(), 3);
    let sql = format!(
        "UPDATE event_published SET {column} = ?{claim} FROM {} AS ended WHERE event_id = ended.column1 \
         AND seq = ended.column3 AND success IS NULL AND failed IS NULL AND orphan IS NULL AND {}",
        rows_of(events.len(), 3),
        ours("event_published")
    );
    script.add(&sql, values);
    script.expect(events.len());
}

fn insert_attempts(rows: &[&AttemptRow], script: &mut Script) {
    let sql = format!(
        "INSERT INTO v1_attempt (event_id, grp, round, number, consumer, started, ended, reason, error) \
         SELECT * FROM {} WHERE column1 IS NOT NULL",
        rows_of(rows.len(), 9)
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
    fill(&mut values, rows.len(), 9);
    script.add(&sql, values);
}
