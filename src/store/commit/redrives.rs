//! Dead events that are tried again: each in a new round, at once. What became of the rounds before stays on record.

use sea_orm::{DbErr, QueryResult, Value};

use super::{
    super::{
        Redriven, StoreError, Write, Written,
        adoption::served_locked,
        dead::DeadRows,
        engine::{Ask, small},
        sql::{Script, fill, marks, ours, pieces, rounded, rows_of, signed, unsigned},
        writer::Db,
    },
    Answer,
    groups::{Told, round_of},
    publishes::save_seq,
};
use crate::{
    event::{EventId, Pattern, Uid},
    wire::Redrive,
};

/// Writes and answers the redrives in their order.
pub(super) async fn write(db: &Db<'_>, writes: &[Write], answers: &mut [Answer]) -> Result<(), DbErr> {
    for (write, answer) in writes.iter().zip(answers) {
        if let Write::Redrive { what, hub, at, by, most, after, first } = write {
            let told = Told { hub, at: *at, by };
            // None of those that it has adopted comes back before the end of this.
            let hubs = served_locked(db, hub).await?;
            let rows = DeadRows { hubs: &hubs, group: what.group.as_deref().unwrap_or("") };
            let mut numbers = Numbers { hub, next: *first, taken: false };
            // A part that isn't the first goes on whatever became of the group.
            if *after == 0 && !rows.group.is_empty() && round_of(db, rows.group).await?.is_none() {
                *answer = Err(StoreError::GroupNotFound { group: rows.group.to_owned() });
                continue;
            }
            *answer = match &what.id {
                Some(id) => one(db, id, rows, told, &mut numbers).await?,
                None => Ok(many(db, what, rows, told, ((*most).max(1), *after), &mut numbers).await?),
            }
            .map(Written::Redriven);
        }
    }
    Ok(())
}

/// An event that is to be tried again.
struct Again {
    id: String,
    /// Its number on the hub that serves it from now on.
    seq: i64,
    pid: String,
    /// The round that it begins.
    round: u32,
}

/// Numbers of the hub that redrives, for events that others have dispatched.
struct Numbers<'a> {
    hub: &'a Uid,
    next: u64,
    taken: bool,
}

impl Numbers<'_> {
    /// The number that an event is known by on this hub.
    fn of(&mut self, owner: &str, seq: i64) -> i64 {
        if owner == self.hub.as_str() {
            return seq;
        }
        self.taken = true;
        self.next += 1;
        signed(self.next - 1)
    }

    /// It gives them to nothing else, over restarts too.
    fn save(&self, script: &mut Script) {
        if self.taken {
            save_seq([(self.hub, self.next - 1)], script);
        }
    }
}

async fn many(
    db: &Db<'_>,
    what: &Redrive,
    rows: DeadRows<'_>,
    told: Told<'_>,
    (most, after): (usize, u64),
    numbers: &mut Numbers<'_>,
) -> Result<Redriven, DbErr> {
    let any = Pattern::any();
    let (domain, name) = (what.domain.as_ref().unwrap_or(&any), what.name.as_ref().unwrap_or(&any));
    let until = rows.until(db, after).await?;
    let mut values = Vec::new();
    let tail = rows.tail((domain, name), after, until, &mut values);
    values.push(signed(most as u64).into());
    let (columns, owner) = (rows.columns(), rows.owner());
    let sql = format!("SELECT e.id, d.seq, e.pid, {columns}, e.domain, e.name, {owner} {tail} LIMIT ?");
    let found = db.rows(sql, values).await?;

    let mut all = Vec::with_capacity(found.len());
    let mut last = None;
    for row in &found {
        let text = |index| row.try_get_by_index::<String>(index);
        let seq = row.try_get_by_index(1)?;
        last = Some(unsigned(seq));
        if domain.matches(&text(6)?) && name.matches(&text(7)?) {
            let seq = numbers.of(&text(8)?, seq);
            all.push(Again { id: text(0)?, seq, pid: text(2)?, round: next(row, 5)? });
        }
    }
    let rest = if found.len() >= most { last } else { until };
    let done = Redriven { events: all.len() as u64, more: rest.is_some(), after: rest.unwrap_or(after) };
    if !all.is_empty() {
        let message = format!("redriven: {} events of {}, by {}", all.len(), group_text(rows.group), told.by);
        let details = serde_json::json!({
            "by": told.by, "group": rows.group, "domain": domain, "name": name, "count": all.len()
        });
        redrive(db, &all, rows, told, (message, &details), numbers).await?;
    }
    Ok(done)
}

/// The round after the one in this column.
fn next(row: &QueryResult, index: usize) -> Result<u32, DbErr> {
    small(row, index).map(|round| round.saturating_add(1))
}

async fn one(
    db: &Db<'_>,
    id: &EventId,
    rows: DeadRows<'_>,
    told: Told<'_>,
    numbers: &mut Numbers<'_>,
) -> Result<Result<Redriven, StoreError>, DbErr> {
    let again = match find(db, id, rows, numbers).await? {
        Ok(again) => again,
        Err(error) => return Ok(Err(error)),
    };
    let message = format!("redriven: the event {id:?} in {}, by {}", group_text(rows.group), told.by);
    let details = serde_json::json!({ "by": told.by, "group": rows.group, "id": id, "count": 1 });
    redrive(db, &[again], rows, told, (message, &details), numbers).await?;
    Ok(Ok(Redriven { events: 1, more: false, after: 0 }))
}

/// The event that is named, if it can be tried again.
async fn find(
    db: &Db<'_>,
    id: &EventId,
    rows: DeadRows<'_>,
    numbers: &mut Numbers<'_>,
) -> Result<Result<Again, StoreError>, DbErr> {
    // Of the group's last round: that number, the hub and whether it is dead there; of the default group besides,
    // whether an npm spoke has claimed it and left.
    let (last, dead, left) = if rows.group.is_empty() {
        let open = "p.success IS NULL AND p.failed IS NULL AND p.orphan IS NULL";
        (
            "p.v1_hub, (SELECT max(o.round) FROM v1_outcome o WHERE o.event_id = e.id AND o.grp = ?)",
            "p.failed IS NOT NULL AND p.success IS NULL",
            format!("p.event_id IS NOT NULL AND {open} AND NOT {}", ours("p")),
        )
    } else {
        (
            "o.hub, o.round",
            "o.dead IS NOT NULL AND o.round >= coalesce((SELECT round FROM v1_group WHERE name = ?), 1)",
            "FALSE".to_owned(),
        )
    };
    let join = if rows.group.is_empty() {
        ""
    } else {
        "LEFT JOIN v1_outcome o ON o.event_id = e.id AND o.grp = ? AND o.dead IS NOT NULL"
    };
    let sql = format!(
        "SELECT p.seq, e.pid, {last}, {dead}, {left} FROM event e LEFT JOIN event_published p ON p.event_id = e.id \
         {join} WHERE e.id = ? ORDER BY 4 DESC LIMIT 1"
    );
    let mut values: Vec<Value> = vec![rows.group.into()];
    if !rows.group.is_empty() {
        values.push(rows.group.into());
    }
    values.push(id.as_str().into());
    let Some(row) = db.row(sql, values).await? else {
        return Ok(Err(StoreError::EventNotFound { id: id.clone() }));
    };
    let hub: Option<String> = row.try_get_by_index(2)?;
    let round: Option<i32> = row.try_get_by_index(3)?;
    let round = round.map(|round| u32::try_from(round).unwrap_or(0));
    let is_dead = row.try_get_by_index::<Option<bool>>(4)?.unwrap_or(false);
    let is_left = row.try_get_by_index::<Option<bool>>(5)?.unwrap_or(false);
    if !is_dead && !is_left {
        return Ok(Err(StoreError::NotDead { id: id.clone(), group: rows.group.to_owned() }));
    }
    let seq = row.try_get_by_index::<Option<i64>>(0)?;
    let is_served = |owner: &str| rows.hubs.iter().any(|hub| hub.as_str() == owner);
    let Some((seq, owner)) = seq.zip(hub.as_deref().filter(|owner| is_served(owner))) else {
        return Ok(Err(StoreError::ElsewhereServed { id: id.clone(), hub }));
    };
    let seq = numbers.of(owner, seq);
    // In the default group only the rounds before have rows of their own; what was left goes on in its round.
    let over = round.unwrap_or(0) + u32::from(rows.group.is_empty() && is_dead);
    Ok(Ok(Again { id: id.to_string(), seq, pid: row.try_get_by_index(1)?, round: over + 1 }))
}

async fn redrive(
    db: &Db<'_>,
    all: &[Again],
    rows: DeadRows<'_>,
    told: Told<'_>,
    (message, details): (String, &serde_json::Value),
    numbers: &Numbers<'_>,
) -> Result<(), DbErr> {
    let mut script = Script::new(db.engine());
    for piece in pieces(all) {
        if rows.group.is_empty() {
            reopen(piece, &mut script);
        } else {
            revive(piece, rows.group, &mut script);
        }
        wait(piece, rows.group, told, &mut script);
    }
    numbers.save(&mut script);
    told.tell(message, details, &mut script);
    script.run(db).await
}

/// Takes the outcomes of the default group out of `event_published`, and with them every claim.
fn reopen(all: &[Again], script: &mut Script) {
    let mut values: Vec<Value> = Vec::with_capacity(rounded(all.len()) * 2);
    for again in all {
        values.extend([again.id.as_str().into(), again.round.saturating_sub(1).into()]);
    }
    fill(&mut values, all.len(), 2);
    script.add(
        format!(
            "INSERT INTO v1_outcome (event_id, grp, round, hub, seq, outcome, consumer, ended, dead) \
             SELECT p.event_id, '', v.column2, p.v1_hub, p.seq, 'dead', coalesce(p.consumer, ''), p.failed, NULL \
             FROM {} v @join event_published p ON p.event_id = @id(v.column1) WHERE p.failed IS NOT NULL",
            rows_of(all.len(), 2)
        ),
        values,
    );
    for sql in [
        "UPDATE event_published SET failed = NULL, consumed_spoke = NULL, consumer = NULL WHERE event_id IN",
        "DELETE FROM v1_claim WHERE event_id IN",
    ] {
        let mut values = all.iter().map(|again| again.id.as_str().into()).collect();
        fill(&mut values, all.len(), 1);
        script.add(format!("{sql} ({})", marks(rounded(all.len()))), values);
    }
}

/// Those of a named group stay where they are, as history.
fn revive(all: &[Again], group: &str, script: &mut Script) {
    let mut values: Vec<Value> = all.iter().map(|again| again.id.as_str().into()).collect();
    fill(&mut values, all.len(), 1);
    values.push(group.into());
    let sql = format!(
        "UPDATE v1_outcome SET dead = NULL WHERE event_id IN ({}) AND grp = ? AND dead IS NOT NULL",
        marks(rounded(all.len()))
    );
    script.add(&sql, values);
}

fn wait(all: &[Again], group: &str, told: Told<'_>, script: &mut Script) {
    let mut values: Vec<Value> = Vec::with_capacity(rounded(all.len()) * 8);
    for again in all {
        values.extend([
            again.id.as_str().into(),
            group.into(),
            told.hub.as_str().into(),
            again.seq.into(),
            again.pid.as_str().into(),
            again.round.into(),
            0_i64.into(),
            told.at.into(),
        ]);
    }
    fill(&mut values, all.len(), 8);
    let sql = format!(
        "INSERT INTO v1_retry (event_id, grp, hub, seq, pid, round, attempts, due) \
         SELECT * FROM {} v WHERE column1 IS NOT NULL @else_set(event_id, grp) \
         hub = @new(hub), seq = @new(seq), pid = @new(pid), round = @new(round), \
         attempts = @new(attempts), due = @new(due)",
        rows_of(all.len(), 8)
    );
    script.add(&sql, values);
}

fn group_text(group: &str) -> String {
    if group.is_empty() { "the default group".to_owned() } else { format!("the group {group:?}") }
}
