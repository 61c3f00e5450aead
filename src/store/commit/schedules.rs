//! Schedules: made, cancelled, run.

use std::collections::{HashMap, HashSet};

use sea_orm::{DbErr, Value};

use super::{
    super::{
        Ran, Replaced, Running, StoreError, Write, Written,
        engine::Ask,
        events::{EVENT, event_of},
        schedules::{DUE, NOW, rounded_up},
        sql::{Script, fill, marks, pieces, rounded, rows_of, signed, update_from, update_which},
        time,
        writer::Db,
    },
    Answer,
    known::{Known, Plan},
    publishes,
};
use crate::event::{Event, EventId, Uid};

/// Makes, cancels and runs the batch's schedules in their order, and answers them.
pub(super) async fn write(db: &Db<'_>, writes: &[Write], answers: &mut [Answer]) -> Result<(), DbErr> {
    if !writes.iter().any(is_schedule) {
        return Ok(());
    }
    // After the publishes of the batch, so that they are known too.
    let schedules = writes.iter().filter(|write| matches!(write, Write::Schedule { .. }));
    let mut known = Known::read(db, schedules).await?;
    for (write, answer) in writes.iter().zip(answers) {
        match write {
            Write::Schedule { event, due, publisher, replaces } => {
                let plan = match replaces {
                    Some(old) => replace(db, old, &mut known, (event, *due), publisher).await?,
                    None => known.schedule(event, *due).map(|plan| (plan, false)),
                };
                *answer = match plan {
                    Ok((plan, replaced)) => {
                        insert(db, plan, event, *due, publisher).await?;
                        Ok(Written::Scheduled { due: *due, fresh: plan != Plan::Duplicate, replaced })
                    }
                    Err(error) => Err(error),
                };
            }
            Write::Cancel { event_id, by, hub, at } => {
                *answer = cancel(db, event_id, by, hub, *at).await?;
                if answer.is_ok() {
                    known.forget(event_id);
                }
            }
            Write::RunDue { events, hub } => *answer = Ok(Written::Ran(run(db, events, hub).await?)),
            _ => {}
        }
    }
    Ok(())
}

/// Whether this is one of those that are written here.
pub(super) fn is_schedule(write: &Write) -> bool {
    matches!(write, Write::Schedule { .. } | Write::Cancel { .. } | Write::RunDue { .. })
}

/// The rows that the npm stack writes too, and ours. Who serves the event is decided when it runs.
async fn insert(db: &Db<'_>, plan: Plan, event: &Event, due: i64, publisher: &Uid) -> Result<(), DbErr> {
    if plan == Plan::Duplicate {
        return Ok(());
    }
    let id = || Value::from(event.id.as_str());
    let now = || time::value(event.timestamp);
    let mut script = Script::new(db.engine());
    if plan == Plan::New {
        script.add(
            "INSERT INTO event (id, timestamp, domain, rid, pid, name, data) \
             VALUES (?, @local(?), ?, ?, ?, ?, @json(?))",
            [
                id(),
                now(),
                event.domain.as_str().into(),
                event.rid.as_ref().map(|rid| rid.as_str()).into(),
                event.pid.as_str().into(),
                event.name.as_str().into(),
                event.data.as_str().into(),
            ],
        );
    }
    script.add(
        "INSERT INTO event_published (event_id, published, publisher) VALUES (?, @local(?), ?)",
        [id(), now(), publisher.as_str().into()],
    );
    script.add(
        "INSERT INTO event_scheduled (event_id, timestamp, scheduled) VALUES (?, @local(?), ?)",
        [id(), now(), rounded_up(due)],
    );
    script.add("INSERT INTO v1_schedule (event_id, due) VALUES (?, ?)", [id(), due.into()]);
    script.run(db).await
}

/// Judges a schedule that takes another one's place, and cancels that one. Whoever says it again, as after a lost link, finds
/// his own schedule, and the other one gone.
async fn replace(
    db: &Db<'_>,
    old: &Replaced,
    known: &mut Known,
    (event, due): (&Event, i64),
    by: &Uid,
) -> Result<Result<(Plan, bool), StoreError>, DbErr> {
    let Replaced { event_id: old, hub } = old;
    let (plan, before) = match known.schedule_instead(old, event, due) {
        Ok((Plan::Duplicate, _)) if *old == event.id => return Ok(Ok((Plan::Duplicate, false))),
        Ok(judged) => judged,
        Err(error) => return Ok(Err(error)),
    };
    Ok(match cancel(db, old, by, hub, event.timestamp).await? {
        Ok(_) => Ok((plan, true)),
        Err(_) if plan == Plan::Duplicate => Ok((plan, false)),
        Err(error) => {
            known.undo(before);
            Err(error)
        }
    })
}

/// The event goes with all that hangs on it. The guard stands in the statement: another hub may run it just now.
async fn cancel(db: &Db<'_>, id: &EventId, by: &Uid, hub: &Uid, at: i64) -> Result<Answer, DbErr> {
    let sql = "DELETE FROM event WHERE id = ? AND EXISTS \
               (SELECT 1 FROM event_scheduled s WHERE s.event_id = event.id AND s.executed IS NULL)";
    if db.run(sql, vec![id.as_str().into()]).await? == 0 {
        let sql = "SELECT 1 FROM event_scheduled WHERE event_id = ?";
        let ran = db.row(sql, vec![id.as_str().into()]).await?.is_some();
        let id = id.clone();
        return Ok(Err(if ran {
            StoreError::ScheduleExecuted { id }
        } else {
            StoreError::ScheduleNotFound { id }
        }));
    }
    let mut script = Script::new(db.engine());
    // In the form in which deletions are remembered.
    let details = serde_json::json!({ "by": by, "id": id, "count": 1 });
    script.add(
        "INSERT INTO log (timestamp, agent, message, error) VALUES (@local(?), ?, ?, @json(?))",
        [
            time::value(at),
            hub.as_str().into(),
            format!("cancelled: the scheduled event {id:?}, by {by}").into(),
            details.to_string().into(),
        ],
    );
    script.run(db).await?;
    Ok(Ok(Written::Cancelled))
}

/// Publishes what is due and hasn't run, once: only rows that the guard lets through go on.
async fn run(db: &Db<'_>, events: &[Running], hub: &Uid) -> Result<Vec<Ran>, DbErr> {
    let places: HashMap<&EventId, &Running> = events.iter().map(|running| (&running.id, running)).collect();
    let mut all = Vec::new();
    for piece in pieces(events) {
        let executed = execute(db, piece).await?;
        let given: Vec<&Running> = executed.iter().filter_map(|id| places.get(id).copied()).collect();
        let served = serve(db, &given, hub).await?;
        happen(db, &served).await?;
        for (event, due) in read(db, &served).await? {
            if let Some(running) = places.get(&event.id) {
                all.push(Ran { seq: running.seq, due, event });
            }
        }
    }
    all.sort_unstable_by_key(|ran| ran.seq);
    let mut script = Script::new(db.engine());
    publishes::save_seq(all.iter().map(|ran| (hub, ran.seq)), &mut script);
    script.run(db).await?;
    Ok(all)
}

/// Marks those that are due as executed, and returns them.
async fn execute(db: &Db<'_>, events: &[Running]) -> Result<HashSet<EventId>, DbErr> {
    let set = ("executed = @now, success = @now".to_owned(), Vec::new());
    let due = "coalesce((SELECT v.due FROM v1_schedule v WHERE v.event_id = event_scheduled.event_id), \
               @ms(scheduled))";
    let which =
        format!("event_id IN ({}) AND executed IS NULL AND {due} <= {NOW}", marks(rounded(events.len())));
    let ids = values(events.iter().map(|running| &running.id));
    update_which(db, "event_scheduled", set, (which, ids)).await
}

/// Takes the events for this hub, and returns those that no hub of ours had. An npm hub's claim stays its own: that one
/// says who tells npm spokes. An event that somebody scheduled without publishing it is published by the hub.
async fn serve<'a>(db: &Db<'_>, events: &[&'a Running], hub: &Uid) -> Result<Vec<&'a Running>, DbErr> {
    if events.is_empty() {
        return Ok(Vec::new());
    }
    // Rows that nobody published yet, as if somebody had.
    let missing = format!(
        "INSERT INTO event_published (event_id, published, publisher) SELECT e.id, @local(@now), ? FROM event e \
         WHERE e.id IN ({}) AND NOT EXISTS (SELECT 1 FROM event_published p WHERE p.event_id = e.id)",
        marks(rounded(events.len()))
    );
    let ids = || values(events.iter().map(|running| &running.id));
    let mut by: Vec<Value> = vec![hub.as_str().into()];
    by.append(&mut ids());
    db.run(missing, by).await?;

    let which = format!("event_id IN ({}) AND v1_hub IS NULL", marks(rounded(events.len())));
    // MySQL sets one column after the other: the claim that decides comes last.
    let set = "published = @local(@now), hub = CASE WHEN consumed_hub IS NULL THEN ? ELSE hub END, \
               consumed_hub = coalesce(consumed_hub, @now), v1_hub = ?";
    let set = (set.to_owned(), vec![hub.as_str().into(), hub.as_str().into()]);
    let served = update_which(db, "event_published", set, (which, ids())).await?;
    Ok(events.iter().copied().filter(|running| served.contains(&running.id)).collect())
}

/// Gives the events their numbers, and the time at which they happen. They were in no log before, and now stand in theirs by the order of
/// dispatch, whenever they were scheduled.
async fn happen(db: &Db<'_>, events: &[&Running]) -> Result<(), DbErr> {
    if events.is_empty() {
        return Ok(());
    }
    let mut values: Vec<Value> = Vec::with_capacity(3 * rounded(events.len()));
    for running in events {
        let Running { id, seq, timestamp, .. } = running;
        values.extend([id.as_str().into(), time::value(*timestamp), signed(*seq).into()]);
    }
    fill(&mut values, events.len(), 3);
    let given = || (format!("{} given", rows_of(events.len(), 3)), values.clone());
    let happens = ("timestamp = @local(given.column2)".to_owned(), Vec::new());
    let mut script = Script::new(db.engine());
    let (sql, values) = update_from(db.engine(), "event", happens, given(), "id = @id(given.column1)");
    script.add(sql, values);
    let numbered = ("seq = given.column3".to_owned(), Vec::new());
    let (sql, values) =
        update_from(db.engine(), "event_published", numbered, given(), "event_id = @id(given.column1)");
    script.add(sql, values);
    script.run(db).await
}

async fn read(db: &Db<'_>, events: &[&Running]) -> Result<Vec<(Event, i64)>, DbErr> {
    if events.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT {EVENT}, {DUE} FROM event e JOIN event_scheduled s ON s.event_id = e.id \
         LEFT JOIN v1_schedule v ON v.event_id = e.id WHERE e.id IN ({})",
        marks(rounded(events.len()))
    );
    let rows = db.rows(sql, values(events.iter().map(|running| &running.id))).await?;
    rows.iter().map(|row| Ok((event_of(row)?, row.try_get_by_index(7)?))).collect()
}

fn values<'a>(ids: impl ExactSizeIterator<Item = &'a EventId>) -> Vec<Value> {
    let count = ids.len();
    let mut values = ids.map(|id| id.as_str().into()).collect();
    fill(&mut values, count, 1);
    values
}

#[cfg(test)]
mod tests;
