//! Work of a dead hub, page by page: see [`super::super::adoption`].

use std::{collections::BTreeSet, ops::RangeFrom};

use sea_orm::{DbErr, Value};

use super::{
    super::{
        Adopted, AdoptionWork, Binding, GroupKey, StoreError, Write, Written, bindings,
        engine::{Ask, small},
        open,
        sql::{Script, fill, pieces, rounded, rows_of, signed, unsigned, update_from},
        writer::Db,
    },
    Answer,
    groups::round_of,
    publishes::save_seq,
};
use crate::event::Uid;

/// Writes and answers the parts of adoptions in their order.
pub(super) async fn write(db: &Db<'_>, writes: &[Write], answers: &mut [Answer]) -> Result<(), DbErr> {
    for (write, answer) in writes.iter().zip(answers) {
        if let Write::Adopt { work, hub, at, most, first } = write {
            let part = Part { from: &work.from, hub, at: *at, most: (*most).max(1), first: *first };
            *answer = adopt(db, work, part).await?.map(Written::Adopted);
        }
    }
    Ok(())
}

/// A part of it, and who goes on with it.
#[derive(Clone, Copy)]
struct Part<'a> {
    from: &'a Uid,
    hub: &'a Uid,
    at: i64,
    most: usize,
    first: u64,
}

async fn adopt(
    db: &Db<'_>,
    work: &AdoptionWork,
    part: Part<'_>,
) -> Result<Result<Adopted, StoreError>, DbErr> {
    // It may be back: then nothing is taken from it any more. It can't come back before the end of this transaction.
    let sql = "SELECT adopted_by FROM v1_hub_lease WHERE hub_id = ? @locked";
    let row = db.row(sql, vec![part.from.as_str().into()]).await?;
    let by = row.map(|row| row.try_get_by_index::<Option<String>>(0)).transpose()?.flatten();
    if by.as_deref() != Some(part.hub.as_str()) {
        return Ok(Ok(Adopted::default()));
    }
    match &work.group {
        None => waiting(db, part).await.map(Ok),
        Some(group) => open(db, group, part).await,
    }
}

/// Its rows of events that wait for another attempt: they are due as they were. Of each process in their order, by the index
/// `v1_retry_pid`.
async fn waiting(db: &Db<'_>, part: Part<'_>) -> Result<Adopted, DbErr> {
    let sql = "SELECT event_id, grp FROM v1_retry @index(v1_retry_pid) WHERE hub = ? ORDER BY grp, pid, seq LIMIT ?";
    let rows = db.rows(sql, vec![part.from.as_str().into(), signed(part.most as u64).into()]).await?;
    let keys: Vec<(String, String)> = rows
        .iter()
        .map(|row| Ok((row.try_get_by_index(0)?, row.try_get_by_index(1)?)))
        .collect::<Result<_, DbErr>>()?;
    let mut script = Script::new(db.engine());
    let mut numbers = part.first..;
    for piece in pieces(&keys) {
        let mut values: Vec<Value> = Vec::with_capacity(rounded(piece.len()) * 3);
        for ((id, group), number) in piece.iter().zip(&mut numbers) {
            values.extend([id.as_str().into(), group.as_str().into(), signed(number).into()]);
        }
        fill(&mut values, piece.len(), 3);
        let (sql, values) = update_from(
            db.engine(),
            "v1_retry",
            ("hub = ?, seq = taken.column3".to_owned(), vec![part.hub.as_str().into()]),
            (format!("{} taken", rows_of(piece.len(), 3)), values),
            "event_id = @id(taken.column1) AND grp = @id(taken.column2)",
        );
        script.add(sql, values);
    }
    used(part, keys.len(), &mut script);
    script.run(db).await?;
    let groups: BTreeSet<String> = keys.iter().map(|(_, group)| group.clone()).collect();
    Ok(Adopted {
        events: keys.len() as u64,
        groups: groups.into_iter().collect(),
        more: keys.len() >= part.most,
    })
}

/// An event that nobody had yet, or whose claim is void.
struct Open {
    id: String,
    pid: String,
    attempts: u32,
}

/// What is open in a group above its cursor, as far as bindings want it.
async fn open(db: &Db<'_>, group: &str, part: Part<'_>) -> Result<Result<Adopted, StoreError>, DbErr> {
    let again = Adopted { more: true, ..Adopted::default() };
    // Locked before the bindings are read: who makes another one meanwhile sets the cursor back after this transaction.
    let sql = "SELECT seq FROM v1_cursor WHERE hub_id = ? AND grp = ? @locked";
    let key = || -> Vec<Value> { vec![part.from.as_str().into(), group.into()] };
    let Some(row) = db.row(sql, key()).await? else {
        // Only a row that is committed can be set back.
        let sql = "INSERT INTO v1_cursor (hub_id, grp, seq) VALUES (?, ?, 0) @else_leave(grp)";
        db.run(sql, key()).await?;
        return Ok(Ok(again));
    };
    let cursor = unsigned(row.try_get_by_index(0)?);
    let wanted = match bindings::list_of(db, group).await? {
        Ok(wanted) => wanted,
        Err(error) => return Ok(Err(error)),
    };
    let round = if group.is_empty() { Some(1) } else { round_of(db, group).await? };
    let end = last_seq(db, part.from).await?;
    let mut script = Script::new(db.engine());
    let start = wanted.iter().map(|binding| binding.start_seq).min();
    let (found, scanned) = match start.zip(round) {
        Some((start, round)) => {
            let (group, after) = (GroupKey { name: group, round }, cursor.max(start.saturating_sub(1)));
            let (found, scanned) = page(db, group, (after, end), &wanted, part).await?;
            let mut numbers = part.first..;
            for piece in pieces(&found) {
                insert(piece, group, &mut numbers, part, &mut script);
            }
            (found, scanned)
        }
        // It was removed meanwhile.
        None => (Vec::new(), end),
    };
    used(part, found.len(), &mut script);
    let sql = "UPDATE v1_cursor SET seq = ? WHERE hub_id = ? AND grp = ?";
    script.add(sql, [vec![signed(scanned).into()], key()].concat());
    script.run(db).await?;
    let groups = if found.is_empty() { Vec::new() } else { vec![group.to_owned()] };
    Ok(Ok(Adopted { events: found.len() as u64, groups, more: scanned < end }))
}

async fn last_seq(db: &Db<'_>, hub: &Uid) -> Result<u64, DbErr> {
    let row = db.row("SELECT seq FROM v1_hub_seq WHERE hub_id = ?", vec![hub.as_str().into()]).await?;
    row.map_or(Ok(0), |row| row.try_get_by_index(0).map(unsigned))
}

/// The open events that a binding wants, and up to which number that is all.
async fn page(
    db: &Db<'_>,
    group: GroupKey<'_>,
    (after, end): (u64, u64),
    wanted: &[Binding],
    part: Part<'_>,
) -> Result<(Vec<Open>, u64), DbErr> {
    let until = open::until(db, part.from, group, after).await?.unwrap_or(end).min(end).max(after);
    let mut values: Vec<Value> = vec![group.name.into(), group.round.into()];
    let rows = open::open_rows(part.from, group, after, Some(until), &mut values);
    values.push(signed(part.most as u64).into());
    let sql = format!(
        "SELECT e.id, p.seq, e.pid, e.domain, e.name, \
         (SELECT count(*) FROM v1_attempt a WHERE a.event_id = e.id AND a.grp = ? AND a.round = ?) \
         {rows} ORDER BY p.seq LIMIT ?"
    );
    let rows = db.rows(sql, values).await?;
    let mut found = Vec::with_capacity(rows.len());
    let mut last = after;
    for row in &rows {
        let text = |index| row.try_get_by_index::<String>(index);
        let seq = unsigned(row.try_get_by_index(1)?);
        last = seq;
        let (domain, name) = (text(3)?, text(4)?);
        if wanted.iter().any(|binding| binding.wants(&domain, &name, seq)) {
            found.push(Open { id: text(0)?, pid: text(2)?, attempts: small(row, 5)? });
        }
    }
    Ok((found, if rows.len() >= part.most { last } else { until }))
}

fn insert(
    all: &[Open],
    group: GroupKey<'_>,
    numbers: &mut RangeFrom<u64>,
    part: Part<'_>,
    script: &mut Script,
) {
    let mut values: Vec<Value> = Vec::with_capacity(rounded(all.len()) * 8);
    for (open, number) in all.iter().zip(numbers) {
        values.extend([
            open.id.as_str().into(),
            group.name.into(),
            part.hub.as_str().into(),
            signed(number).into(),
            open.pid.as_str().into(),
            group.round.into(),
            open.attempts.into(),
            part.at.into(),
        ]);
    }
    fill(&mut values, all.len(), 8);
    let sql = format!(
        "INSERT INTO v1_retry (event_id, grp, hub, seq, pid, round, attempts, due) \
         SELECT * FROM {} v WHERE column1 IS NOT NULL",
        rows_of(all.len(), 8)
    );
    script.add(sql, values);
    script.expect(all.len());
}

/// Numbers of the adopter that are taken: it gives them to nothing else, over restarts too.
fn used(part: Part<'_>, count: usize, script: &mut Script) {
    if count > 0 {
        save_seq([(part.hub, part.first + count as u64 - 1)], script);
    }
}
