//! Recurring schedules: made, changed, run.

mod run;

use sea_orm::{DbErr, Value};

use super::{
    super::{
        Due, StoreError, Write, Written,
        engine::Ask,
        recurring::{MOST_SCHEDULES, Row, WITH_DATA, times},
        schedules::{MAX_DUE, NOW},
        sql::{Script, signed},
        time,
        writer::Db,
    },
    Answer,
};
use crate::{
    event::{Data, RecurringName, Uid},
    recurrence::{RuleError, Zone},
    wire::{Made, Recur, RecurChange, Recurring},
};

/// How long a window may be, in milliseconds.
const WINDOWS: std::ops::RangeInclusive<u64> = 1_000..=366 * 86_400_000;

/// Writes what a batch has about recurring schedules, in its order, and answers it.
pub(super) async fn write(db: &Db<'_>, writes: &[Write], answers: &mut [Answer]) -> Result<(), DbErr> {
    for (write, answer) in writes.iter().zip(answers) {
        match write {
            Write::Recur { recur, by, hub, at } => *answer = make(db, recur, by, hub, *at).await?,
            Write::RecurChange { name, change, by, hub, at } => {
                *answer = alter(db, name, *change, by, hub, *at).await?;
            }
            Write::RunExtra { name, id, seq, timestamp, by, hub } => {
                *answer = run::extra(db, name, id, (*seq, *timestamp), by, hub).await?;
            }
            Write::RunRecurring { names, places, hub } => {
                *answer = Ok(Written::Recurred(run::due(db, names, places, hub).await?));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Now by the database's clock.
async fn clock(db: &Db<'_>) -> Result<i64, DbErr> {
    match db.row(format!("SELECT {NOW}"), Vec::new()).await? {
        Some(row) => row.try_get_by_index(0),
        None => Err(DbErr::RecordNotFound("the time".into())),
    }
}

/// The row of this name, with its data.
async fn read(db: &Db<'_>, name: &RecurringName) -> Result<Option<(Row, Data)>, DbErr> {
    let sql = format!("SELECT {WITH_DATA} FROM v1_recurring WHERE name = ?");
    let row = db.row(sql, vec![name.as_str().into()]).await?;
    row.map(|row| Ok((Row::of(&row)?, Data::from_stored(row.try_get_by_index::<String>(17)?)))).transpose()
}

async fn make(db: &Db<'_>, recur: &Recur, by: &Uid, hub: &Uid, at: i64) -> Result<Answer, DbErr> {
    let now = clock(db).await?;
    // As it is spelled where it comes from.
    let (what, due) = match checked(&recur.what, now) {
        Ok(checked) => checked,
        Err(error) => return Ok(Err(error.into())),
    };
    let name = &recur.name;
    let bytes = recur.data.len();
    let next = |due: Option<i64>| due.map(|due| Due { due, id: name.clone(), bytes });
    let made = match read(db, name).await? {
        Some((row, data)) => match difference(&row.state.what, &what, &data, &recur.data) {
            None => {
                return Ok(Ok(Written::Recurring { next: next(row.state.next), made: Made::Duplicate }));
            }
            Some(_) if recur.replace => Made::Replaced,
            Some(field) => {
                return Ok(Err(StoreError::RecurringConflict { name: name.clone(), field }));
            }
        },
        None => Made::New,
    };
    if made == Made::New && count(db).await? >= MOST_SCHEDULES {
        return Ok(Err(StoreError::TooManyRecurring { name: name.clone() }));
    }
    let mut script = Script::new(db.engine());
    // `ran` and `left_out` go on over replacements.
    script.add(
        "INSERT INTO v1_recurring (name, domain, event, pid, data, rule, zone, missed, window_ms, start_at, end_at, \
         paused, due, publisher, made, ran, left_out) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0) \
         @else_set(name) domain = @new(domain), event = @new(event), pid = @new(pid), \
         data = @new(data), rule = @new(rule), zone = @new(zone), missed = @new(missed), \
         window_ms = @new(window_ms), start_at = @new(start_at), end_at = @new(end_at), \
         paused = @new(paused), due = @new(due), publisher = @new(publisher), made = @new(made)",
        values(recur, &what, due, by, now),
    );
    if made == Made::Replaced {
        remember(&mut script, "replaced", name, by, hub, at);
    }
    script.run(db).await?;
    Ok(Ok(Written::Recurring { next: next(Some(due)).filter(|_| !what.paused), made }))
}

fn values(recur: &Recur, what: &Recurring, due: i64, by: &Uid, now: i64) -> [Value; 15] {
    [
        recur.name.as_str().into(),
        what.domain.as_str().into(),
        what.event.as_str().into(),
        what.pid.as_ref().map(|pid| pid.as_str()).into(),
        recur.data.as_str().into(),
        what.rule.as_str().into(),
        what.zone.as_str().into(),
        what.missed.as_str().into(),
        signed(what.window_ms).into(),
        what.start.into(),
        what.end.into(),
        what.paused.into(),
        due.into(),
        by.as_str().into(),
        now.into(),
    ]
}

/// The schedule with its zone as the database of zones spells it, and its first time.
fn checked(what: &Recurring, now: i64) -> Result<(Recurring, i64), RuleError> {
    if !WINDOWS.contains(&what.window_ms) {
        return Err(RuleError::Window { window_ms: what.window_ms });
    }
    if let Some(start) = what.start.filter(|start| *start > MAX_DUE) {
        return Err(RuleError::Start { start });
    }
    if what.start.zip(what.end).is_some_and(|(start, end)| end < start) {
        return Err(RuleError::Bounds);
    }
    let due = times(what, now)?.first(now, &what.rule)?;
    let zone = Zone::parse(&what.zone)?.name().to_owned();
    Ok((Recurring { zone, ..what.clone() }, due))
}

/// The first field in which what stands differs from what is wanted.
fn difference(
    stands: &Recurring,
    wanted: &Recurring,
    data: &Data,
    wanted_data: &Data,
) -> Option<&'static str> {
    let fields = [
        ("domain", stands.domain == wanted.domain),
        ("event", stands.event == wanted.event),
        ("pid", stands.pid == wanted.pid),
        ("rule", stands.rule == wanted.rule),
        ("time zone", stands.zone == wanted.zone),
        ("policy for missed runs", stands.missed == wanted.missed),
        ("window", stands.window_ms == wanted.window_ms),
        ("start", stands.start == wanted.start),
        ("end", stands.end == wanted.end),
        ("data", data.same_value(wanted_data)),
    ];
    fields.iter().find(|(_, same)| !same).map(|(field, _)| *field)
}

async fn count(db: &Db<'_>) -> Result<u64, DbErr> {
    let row = db.row("SELECT count(*) FROM v1_recurring", Vec::new()).await?;
    row.map_or(Ok(0), |row| row.try_get_by_index::<i64>(0).map(super::super::sql::unsigned))
}

async fn alter(
    db: &Db<'_>,
    name: &RecurringName,
    change: RecurChange,
    by: &Uid,
    hub: &Uid,
    at: i64,
) -> Result<Answer, DbErr> {
    let Some((row, data)) = read(db, name).await? else {
        return Ok(Err(StoreError::RecurringNotFound { name: name.clone() }));
    };
    let mut script = Script::new(db.engine());
    let id = || Value::from(name.as_str());
    let mut next = None;
    match change {
        RecurChange::Pause => {
            script.add("UPDATE v1_recurring SET paused = TRUE WHERE name = ?", [id()]);
        }
        RecurChange::Resume if !row.state.what.paused => next = row.due,
        RecurChange::Resume => {
            // From now on: what it missed is skipped.
            let now = clock(db).await?;
            next = match row.times() {
                Ok(times) => times.next(now),
                Err(error) => return Ok(Err(error.into())),
            };
            let sql = "UPDATE v1_recurring SET paused = FALSE, due = ? WHERE name = ?";
            script.add(sql, [next.into(), id()]);
        }
        RecurChange::Remove => {
            script.add("DELETE FROM v1_recurring WHERE name = ?", [id()]);
            remember(&mut script, "removed", name, by, hub, at);
        }
    }
    script.run(db).await?;
    Ok(Ok(Written::Changed(next.map(|due| Due { due, id: name.clone(), bytes: data.len() }))))
}

/// A line in the `log` table, in the form in which deletions are remembered.
fn remember(script: &mut Script, what: &str, name: &RecurringName, by: &Uid, hub: &Uid, at: i64) {
    log(
        script,
        &format!("{what}: the recurring schedule {name:?}, by {by}"),
        &serde_json::json!({ "by": by, "recurring": name }),
        hub,
        at,
    );
}

fn log(script: &mut Script, message: &str, details: &serde_json::Value, hub: &Uid, at: i64) {
    script.add(
        "INSERT INTO log (timestamp, agent, message, error) VALUES (@local(?), ?, ?, @json(?))",
        [time::value(at), hub.as_str().into(), message.into(), details.to_string().into()],
    );
}

#[cfg(test)]
mod tests;
