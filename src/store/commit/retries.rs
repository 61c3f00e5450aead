//! What waits for its next attempt: rows of `v1_retry`, made by a failed attempt and ended by an outcome.

use std::collections::HashSet;

use sea_orm::Value;

use super::{
    super::{
        AttemptRow, Write,
        engine::Engine,
        sql::{Script, fill, ours, pieces, rounded, rows_of, signed},
    },
    outcomes::has_outcome,
};
use crate::event::{EventId, Pid, Uid};

/// Whether an event of the batch gets an outcome before it is to be tried again. The statements take retries first, so
/// such a batch is looked through.
pub(super) fn come_late(writes: &[Write]) -> bool {
    if !writes.iter().any(|write| matches!(write, Write::Retry { .. })) {
        return false;
    }
    let mut ended = HashSet::new();
    writes.iter().any(|write| match write {
        Write::Finish { event_id, group, .. } => {
            ended.insert((event_id, group));
            false
        }
        Write::Retry { attempt, .. } => ended.contains(&(&attempt.event_id, &attempt.group)),
        _ => false,
    })
}

/// A row that is made or moved on.
pub(super) struct Retry<'a> {
    pub(super) attempt: &'a AttemptRow,
    pub(super) hub: &'a Uid,
    pub(super) seq: u64,
    pub(super) original: u64,
    pub(super) pid: &'a Pid,
    pub(super) due: i64,
}

/// The rows that a batch makes and ends.
#[derive(Default)]
pub(super) struct Retries<'a> {
    begun: Vec<Retry<'a>>,
    /// Event, group and round of each.
    ended: Vec<(&'a EventId, &'a str, u32)>,
}

impl<'a> Retries<'a> {
    pub(super) fn begin(&mut self, retry: Retry<'a>) {
        self.begun.push(retry);
    }

    /// An outcome. `stands`: there is a row for it; one of this very batch isn't known to the caller.
    pub(super) fn end(&mut self, id: &'a EventId, group: &'a str, round: u32, stands: bool) {
        let made =
            || self.begun.iter().any(|retry| retry.attempt.event_id == *id && retry.attempt.group == group);
        if stands || made() {
            self.ended.push((id, group, round));
        }
    }

    pub(super) fn plan_begun(&mut self, script: &mut Script) {
        // Always in the same order, so that two hubs on one server can't wait for each other.
        self.begun.sort_by_key(|retry| (&retry.attempt.event_id, &retry.attempt.group));
        // Servers write no row twice in one statement: of an event in a group the last says all. What isn't later than
        // the one before was there already, which the database is to notice.
        self.begun.dedup_by(|next, last| {
            let place = |retry: &Retry<'a>| (retry.attempt.round, retry.attempt.number);
            let is_same =
                last.attempt.event_id == next.attempt.event_id && last.attempt.group == next.attempt.group;
            let is_later = is_same && place(next) > place(last);
            if is_later {
                std::mem::swap(next, last);
            }
            is_later
        });
        for piece in pieces(&self.begun) {
            begin(piece, script);
        }
    }

    pub(super) fn plan_ended(&mut self, script: &mut Script) {
        self.ended.sort_unstable();
        for piece in pieces(&self.ended) {
            end(piece, script);
        }
    }
}

fn begin(rows: &[Retry<'_>], script: &mut Script) {
    let mut values: Vec<Value> = Vec::with_capacity(rounded(rows.len()) * 9);
    for Retry { attempt, hub, seq, original, pid, due } in rows {
        values.extend([
            attempt.event_id.as_str().into(),
            attempt.group.as_str().into(),
            hub.as_str().into(),
            signed(*seq).into(),
            pid.as_str().into(),
            attempt.round.into(),
            attempt.number.into(),
            (*due).into(),
            signed(*original).into(),
        ]);
    }
    fill(&mut values, rows.len(), 9);
    let table = rows_of(rows.len(), 9);
    // Whether it isn't over.
    let lasts = format!(
        "CASE WHEN v.column2 = '' \
         THEN p.success IS NULL AND p.failed IS NULL AND p.orphan IS NULL AND {} ELSE NOT {} END",
        ours("p"),
        has_outcome("@id(v.column1)", "@id(v.column2)", "v.column6")
    );
    let insert = format!(
        "INSERT INTO v1_retry (event_id, grp, hub, seq, pid, round, attempts, due) \
         SELECT v.column1, v.column2, v.column3, v.column4, v.column5, v.column6, v.column7, v.column8 \
         FROM {table} v @join event_published p ON p.event_id = @id(v.column1) AND p.seq = v.column9 WHERE {lasts}"
    );
    let sql = if script.engine() == Engine::MySql {
        // Its upsert knows no condition, and counts a row that it changes twice: what is behind makes room first.
        let behind = format!(
            "DELETE r FROM {table} v STRAIGHT_JOIN v1_retry r ON r.event_id = @id(v.column1) AND r.grp = @id(v.column2) \
             WHERE r.round < v.column6 OR (r.round = v.column6 AND r.attempts < v.column7)"
        );
        script.add(behind, values.clone());
        format!(
            "{insert} AND NOT EXISTS (SELECT 1 FROM v1_retry r WHERE r.event_id = @id(v.column1) \
             AND r.grp = @id(v.column2))"
        )
    } else {
        format!(
            "{insert} @else_set(event_id, grp) hub = @new(hub), seq = @new(seq), pid = @new(pid), \
             round = @new(round), attempts = @new(attempts), due = @new(due) \
             WHERE v1_retry.round < @new(round) \
             OR (v1_retry.round = @new(round) AND v1_retry.attempts < @new(attempts))"
        )
    };
    script.add(sql, values);
    script.expect(rows.len());
}

/// A row of a later round belongs to a redrive that came since, and stays.
fn end(rows: &[(&EventId, &str, u32)], script: &mut Script) {
    let mut values: Vec<Value> = Vec::with_capacity(rounded(rows.len()) * 3);
    for (id, group, round) in rows {
        values.extend([id.as_str().into(), (*group).into(), (*round).into()]);
    }
    fill(&mut values, rows.len(), 3);
    let table = rows_of(rows.len(), 3);
    let sql = match script.engine() {
        Engine::MySql => format!(
            "DELETE r FROM {table} v STRAIGHT_JOIN v1_retry r ON r.event_id = @id(v.column1) AND r.grp = @id(v.column2) \
             WHERE r.round <= v.column3"
        ),
        Engine::Sqlite | Engine::Postgres => format!(
            "DELETE FROM v1_retry WHERE (event_id, grp) IN (SELECT r.event_id, r.grp FROM {table} v \
             @join v1_retry r ON r.event_id = v.column1 AND r.grp = v.column2 WHERE r.round <= v.column3)"
        ),
    };
    script.add(sql, values);
}
