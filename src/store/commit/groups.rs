//! Groups: what is set, where they go on, and their end.

use sea_orm::{DbErr, Value};

use super::{
    super::{
        StoreError, Write, Written,
        engine::{Ask, small},
        sql::{Script, fill, marks, pieces, rounded, signed},
        time,
        writer::Db,
    },
    Answer,
};
use crate::event::Uid;

/// Writes and answers what changes groups, in its order.
pub(super) async fn write(db: &Db<'_>, writes: &[Write], answers: &mut [Answer]) -> Result<(), DbErr> {
    for (write, answer) in writes.iter().zip(answers) {
        match write {
            Write::SetGroup { name, settings, at } => {
                let text = serde_json::to_string(settings).map_err(|error| DbErr::Json(error.to_string()))?;
                insert(db, name, &text, *at, "@else_set(name) settings = @new(settings)").await?;
            }
            Write::Seek { group, start_seq, hub, at, by } => {
                let told = Told { hub, at: *at, by };
                *answer = seek(db, group, *start_seq, told).await?;
            }
            Write::Purge { group, start_seq, hub, at, by } => {
                let told = Told { hub, at: *at, by };
                *answer = purge(db, group, *start_seq, told).await?;
            }
            Write::RemoveGroup { group, hub, at, by, most } => {
                let told = Told { hub, at: *at, by };
                *answer = Ok(remove(db, group, *most, told).await?);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Makes the group's row without settings, if it is missing.
pub(super) async fn make(db: &Db<'_>, name: &str, at: i64) -> Result<(), DbErr> {
    insert(db, name, "{}", at, "@else_leave(name)").await
}

/// A new group begins above the rounds of one of its name whose removal didn't come to its end.
async fn insert(db: &Db<'_>, name: &str, settings: &str, at: i64, there: &str) -> Result<(), DbErr> {
    let round = if name.is_empty() { 1 } else { top_round(db, name).await? + 1 };
    let sql = format!("INSERT INTO v1_group (name, settings, round, created) VALUES (?, ?, ?, ?) {there}");
    let values = vec![name.into(), settings.into(), round.into(), time::value(at)];
    db.run(sql, values).await.map(drop)
}

/// The highest round in which an event ended in the group, or waits for an attempt; 0: none.
async fn top_round(db: &Db<'_>, group: &str) -> Result<u32, DbErr> {
    let sql = "SELECT coalesce((SELECT max(round) FROM v1_outcome WHERE grp = ?), 0), \
               coalesce((SELECT max(round) FROM v1_retry WHERE grp = ?), 0)";
    let row = db.row(sql, vec![group.into(), group.into()]).await?;
    row.map_or(Ok(0), |row| Ok(small(&row, 0)?.max(small(&row, 1)?)))
}

/// For the line in the `log` table, in the transaction that does it: no crash parts the two.
#[derive(Clone, Copy)]
pub(super) struct Told<'a> {
    pub(super) hub: &'a Uid,
    pub(super) at: i64,
    pub(super) by: &'a Uid,
}

impl Told<'_> {
    pub(super) fn tell(self, message: String, details: &serde_json::Value, script: &mut Script) {
        script.add(
            "INSERT INTO log (timestamp, agent, message, error) VALUES (@local(?), ?, ?, @json(?))",
            [time::value(self.at), self.hub.as_str().into(), message.into(), details.to_string().into()],
        );
    }
}

pub(super) async fn round_of(db: &Db<'_>, group: &str) -> Result<Option<u32>, DbErr> {
    let sql = "SELECT round FROM v1_group WHERE name = ?";
    let row = db.row(sql, vec![group.into()]).await?;
    row.map(|row| small(&row, 0)).transpose()
}

async fn seek(db: &Db<'_>, group: &str, start: u64, told: Told<'_>) -> Result<Answer, DbErr> {
    let Some(round) = round_of(db, group).await? else {
        return Ok(Err(StoreError::GroupNotFound { group: group.to_owned() }));
    };
    let round = round.max(top_round(db, group).await?) + 1;
    let mut script = Script::new(db.engine());
    script.add("UPDATE v1_group SET round = ? WHERE name = ?", [round.into(), group.into()]);
    go_on(group, start, &mut script);
    let message = format!("sought: the group {group:?} to {start}, by {}", told.by);
    let details = serde_json::json!({ "by": told.by, "group": group, "seq": start, "round": round });
    told.tell(message, &details, &mut script);
    script.run(db).await?;
    Ok(Ok(Written::Sought { round }))
}

async fn purge(db: &Db<'_>, group: &str, start: u64, told: Told<'_>) -> Result<Answer, DbErr> {
    if round_of(db, group).await?.is_none() {
        return Ok(Err(StoreError::GroupNotFound { group: group.to_owned() }));
    }
    let count = "SELECT count(*) FROM v1_retry WHERE grp = ?";
    let retrying: i64 = match db.row(count, vec![group.into()]).await? {
        Some(row) => row.try_get_by_index(0)?,
        None => 0,
    };
    let mut script = Script::new(db.engine());
    go_on(group, start, &mut script);
    let message = format!("purged: the group {group:?} up to {start}, by {}", told.by);
    let details = serde_json::json!({ "by": told.by, "group": group, "seq": start, "count": retrying });
    told.tell(message, &details, &mut script);
    script.run(db).await?;
    Ok(Ok(Written::Purged { retrying: retrying.unsigned_abs() }))
}

/// What stands below `start` isn't wanted any more, by no binding: cursors may stand there, and nothing waits.
fn go_on(group: &str, start: u64, script: &mut Script) {
    let start = signed(start);
    script.add("UPDATE v1_binding SET start_seq = ? WHERE grp = ?", [start.into(), group.into()]);
    script.add("UPDATE v1_cursor SET seq = ? WHERE grp = ?", [(start - 1).max(0).into(), group.into()]);
    script.add("DELETE FROM v1_retry WHERE grp = ?", [group.into()]);
}

async fn remove(db: &Db<'_>, group: &str, most: usize, told: Told<'_>) -> Result<Written, DbErr> {
    let stands = round_of(db, group).await?.is_some();
    // Attempts without outcome too: a group of that name would count them as its own.
    let mut script = Script::new(db.engine());
    script.add(
        "DELETE FROM v1_attempt WHERE grp = ? AND event_id IN (SELECT r.event_id FROM v1_retry r WHERE r.grp = ?)",
        [group.into(), group.into()],
    );
    for table in ["v1_retry", "v1_binding", "v1_cursor"] {
        script.add(format!("DELETE FROM {table} WHERE grp = ?"), [group.into()]);
    }
    script.add("DELETE FROM v1_group WHERE name = ?", [group.into()]);

    let limit = signed(most.max(1) as u64);
    let sql = "SELECT DISTINCT event_id FROM v1_outcome WHERE grp = ? LIMIT ?";
    let rows = db.rows(sql, vec![group.into(), (limit + 1).into()]).await?;
    let mut ids: Vec<String> = rows.iter().map(|row| row.try_get_by_index(0)).collect::<Result<_, _>>()?;
    let mut more = ids.len() as u64 > limit.unsigned_abs();
    ids.truncate(most.max(1));
    for piece in pieces(&ids) {
        for table in ["v1_attempt", "v1_outcome"] {
            let mut values: Vec<Value> = piece.iter().map(|id| id.as_str().into()).collect();
            fill(&mut values, piece.len(), 1);
            values.push(group.into());
            let marks = marks(rounded(piece.len()));
            script.add(format!("DELETE FROM {table} WHERE event_id IN ({marks}) AND grp = ?"), values);
        }
    }
    if !more {
        more = other_attempts(db, group, limit, &mut script).await?;
    }
    if stands {
        let message = format!("removed: the group {group:?}, by {}", told.by);
        told.tell(message, &serde_json::json!({ "by": told.by, "group": group }), &mut script);
    }
    script.run(db).await?;
    Ok(Written::Removed { more })
}

/// Attempts of events that neither have an outcome nor wait for another attempt: those that were offered again at once, or
/// passed over. No index finds them, for the sake of those who write them; a group isn't removed often. Whether there are
/// more than so many.
async fn other_attempts(db: &Db<'_>, group: &str, limit: i64, script: &mut Script) -> Result<bool, DbErr> {
    let sql = "SELECT id FROM v1_attempt WHERE grp = ? LIMIT ?";
    let rows = db.rows(sql, vec![group.into(), (limit + 1).into()]).await?;
    let mut ids: Vec<i64> = rows.iter().map(|row| row.try_get_by_index(0)).collect::<Result<_, _>>()?;
    let more = ids.len() as u64 > limit.unsigned_abs();
    ids.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    for piece in pieces(&ids) {
        let mut values: Vec<Value> = piece.iter().map(|id| (*id).into()).collect();
        fill(&mut values, piece.len(), 1);
        script.add(format!("DELETE FROM v1_attempt WHERE id IN ({})", marks(rounded(piece.len()))), values);
    }
    Ok(more)
}
