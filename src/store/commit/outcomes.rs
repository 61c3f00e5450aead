//! Outcomes, deliveries that ended without one, and what is published with them.

use std::{borrow::Cow, collections::BTreeMap};

use sea_orm::Value;

use super::{
    super::{
        AttemptRow, Letter, Write, Written,
        sql::{Script, cut, fill, ours, pieces, rounded, rows_of, signed, update_from},
        time,
    },
    Answer,
    known::Known,
    publishes::{self, Row},
    retries::{Retries, Retry},
};
use crate::event::{Event, EventId, Outcome, Uid};

/// The bytes of an error text that are kept.
const ERROR_BYTES: usize = 8 * 1024;
/// The bytes of a reason that are kept.
const REASON_BYTES: usize = 64;

/// The finishes of the default group with one outcome.
#[derive(Default)]
struct Finishes<'a> {
    events: Vec<(&'a EventId, &'a Uid, u64)>,
    at: i64,
}

/// Plans the batch's outcomes, attempts and retries, and answers them. An outcome that hits no row ends the script: see
/// [`Script::expect`].
pub(super) fn plan(
    writes: &[Write],
    mut known: Option<&mut Known>,
    answers: &mut [Answer],
    script: &mut Script,
) {
    let mut outcomes: BTreeMap<&str, Finishes<'_>> = BTreeMap::new();
    let mut named = Vec::new();
    let mut attempts = Vec::new();
    let mut retries = Retries::default();
    let mut letters = Letters::default();
    for (write, answer) in writes.iter().zip(answers) {
        match write {
            Write::Finish {
                event_id,
                seq,
                outcome,
                consumer,
                at,
                attempt,
                hub,
                group,
                round,
                retried,
                letter,
            } => {
                let judged = known.as_mut().map(|known| known.finish(event_id, *seq, group, *round));
                if let Some(Err(error)) = judged {
                    *answer = Err(error);
                    continue;
                }
                if group.is_empty() {
                    let finishes = outcomes.entry(column(*outcome)).or_default();
                    finishes.events.push((event_id, consumer, *seq));
                    finishes.at = finishes.at.max(*at);
                } else {
                    named.push(Named {
                        event_id,
                        group,
                        round: *round,
                        seq: *seq,
                        outcome: *outcome,
                        consumer,
                        at: *at,
                    });
                }
                retries.end(event_id, group, *round, *retried);
                attempts.extend(attempt);
                let letter =
                    letter.as_deref().is_some_and(|letter| letters.add(letter, hub, known.as_deref_mut()));
                *answer = Ok(Written::Finished { letter });
            }
            Write::Attempt(row) => match known.as_ref().map(|known| known.attempt(&row.event_id)) {
                Some(Err(error)) => *answer = Err(error),
                _ => attempts.push(row),
            },
            Write::Retry { attempt, hub, seq, original, pid, due } => {
                match known.as_mut().map(|known| known.retry(attempt, *original)) {
                    Some(Err(error)) => *answer = Err(error),
                    Some(Ok(false)) => {}
                    None | Some(Ok(true)) => {
                        attempts.push(attempt);
                        let (seq, original, due) = (*seq, *original, *due);
                        retries.begin(Retry { attempt, hub, seq, original, pid, due });
                    }
                }
            }
            _ => {}
        }
    }
    // Before the outcomes, which end them.
    retries.plan_begun(script);
    for (column, mut finishes) in outcomes {
        // Always in the same order, so that two hubs on one server can't wait for each other.
        finishes.events.sort_unstable();
        for piece in pieces(&finishes.events) {
            finish(column, finishes.at, piece, script);
        }
    }
    named.sort_by_key(|row| (row.event_id, row.group, row.round));
    for piece in pieces(&named) {
        finish_named(piece, script);
    }
    retries.plan_ended(script);
    for piece in pieces(&attempts) {
        insert_attempts(piece, script);
    }
    letters.plan(script);
}

/// An outcome in a named group: a row of `v1_outcome`.
struct Named<'a> {
    event_id: &'a EventId,
    group: &'a str,
    round: u32,
    seq: u64,
    outcome: Outcome,
    consumer: &'a Uid,
    at: i64,
}

/// It is one of the hub that dispatched the event, whoever serves it: that one lists what is dead.
fn finish_named(rows: &[Named<'_>], script: &mut Script) {
    let mut values: Vec<Value> = Vec::with_capacity(rounded(rows.len()) * 8);
    for row in rows {
        let ended = time::value(row.at);
        values.extend([
            row.event_id.as_str().into(),
            row.group.into(),
            row.round.into(),
            signed(row.seq).into(),
            row.outcome.as_str().into(),
            row.consumer.as_str().into(),
            ended.clone(),
            if row.outcome == Outcome::Dead { ended } else { ended.as_null() },
        ]);
    }
    fill(&mut values, rows.len(), 8);
    let sql = format!(
        "INSERT INTO v1_outcome (event_id, grp, round, hub, seq, outcome, consumer, ended, dead) \
         SELECT v.column1, v.column2, v.column3, p.v1_hub, v.column4, v.column5, v.column6, v.column7, v.column8 \
         FROM {} v @join event_published p ON p.event_id = @id(v.column1) AND p.seq = v.column4 \
         WHERE NOT {}",
        rows_of(rows.len(), 8),
        has_outcome("@id(v.column1)", "@id(v.column2)", "v.column3")
    );
    script.add(&sql, values);
    script.expect(rows.len());
}

/// Whether a named group has an outcome of that round, or of a later one.
pub(super) fn has_outcome(event: &str, group: &str, round: &str) -> String {
    format!(
        "EXISTS (SELECT 1 FROM v1_outcome o WHERE o.event_id = {event} AND o.grp = {group} AND o.round >= {round})"
    )
}

/// Dead-letter events, published with the outcomes that they tell of.
#[derive(Default)]
struct Letters<'a>(Vec<(Cow<'a, Event>, u64, &'a Uid, &'a Uid)>);

impl<'a> Letters<'a> {
    /// Whether it will be published: its id isn't there.
    fn add(&mut self, letter: &'a Letter, hub: &'a Uid, known: Option<&mut Known>) -> bool {
        let event = match known {
            Some(known) => known.letter(letter),
            None => Some(Cow::Borrowed(&letter.event)),
        };
        let Some(event) = event else { return false };
        self.0.push((event, letter.seq, &letter.publisher, hub));
        true
    }

    fn plan(&self, script: &mut Script) {
        let events: Vec<(&Event, i64)> =
            self.0.iter().map(|(event, ..)| (&**event, event.timestamp)).collect();
        let rows: Vec<Row<'_>> = self
            .0
            .iter()
            .map(|(event, seq, publisher, hub)| Row { event, seq: *seq, publisher, hub })
            .collect();
        publishes::insert(&events, &rows, script);
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
    let at = time::value(at);
    let set = if column == "orphan" {
        (format!("{column} = ?"), vec![at])
    } else {
        let claim = "consumed_spoke = coalesce(consumed_spoke, ?), consumer = ended.column2";
        (format!("{column} = ?, {claim}"), vec![at.clone(), at])
    };
    let mut values: Vec<Value> = Vec::with_capacity(rounded(events.len()) * 3);
    for (id, consumer, seq) in events {
        values.extend([id.as_str().into(), consumer.as_str().into(), signed(*seq).into()]);
    }
    fill(&mut values, events.len(), 3);
    let (sql, values) = update_from(
        script.engine(),
        "event_published",
        set,
        (format!("{} ended", rows_of(events.len(), 3)), values),
        &format!(
            "event_id = @id(ended.column1) AND seq = ended.column3 \
             AND success IS NULL AND failed IS NULL AND orphan IS NULL AND {}",
            ours("event_published")
        ),
    );
    script.add(sql, values);
    script.expect(events.len());
}

fn insert_attempts(rows: &[&AttemptRow], script: &mut Script) {
    let sql = format!(
        "INSERT INTO v1_attempt (event_id, grp, round, number, consumer, started, ended, reason, error) \
         SELECT * FROM {} v WHERE column1 IS NOT NULL",
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
            time::value(row.started),
            time::value(row.ended),
            cut(row.reason.clone(), REASON_BYTES).into(),
            cut(row.error.clone(), ERROR_BYTES).into(),
        ]);
    }
    fill(&mut values, rows.len(), 9);
    script.add(&sql, values);
}
