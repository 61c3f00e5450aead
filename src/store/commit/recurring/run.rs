//! Runs of recurring schedules: each inserts its events and moves the schedule on, in the same transaction.

use std::collections::{HashMap, HashSet};

use sea_orm::{DbErr, QueryResult, Value};

use super::{
    super::{
        super::{
            Due, Ran, Recurred, StoreError, Written,
            engine::Ask,
            recurring::{Row, WITH_DATA, occurrence_id},
            sql::{Script, fill, marks, pieces, rounded, rows_of, signed},
            writer::Db,
        },
        Answer, known,
        publishes::{self, insert_events, insert_published, save_seq},
    },
    clock, log, read,
};
use crate::{
    event::{Data, Event, EventId, Pid, RecurringName, Uid},
    recurrence::{Plan, plan},
    wire::Published,
};

/// Bytes of data that one schedule publishes at once; one event always fits.
const MOST_BYTES: usize = 4 * 1024 * 1024;
/// Events that one schedule publishes at once: what it has missed besides comes with the next transactions.
const MOST_RUNS: usize = 64;

/// One that is due, and what is to be done with it.
struct Step {
    row: Row,
    data: Data,
    plan: Plan,
    /// Why its rule can't be read.
    broken: Option<String>,
}

/// An event that is to be published.
struct Run {
    event: Event,
    seq: u64,
    due: i64,
    /// Of which step.
    step: usize,
}

/// Runs those of the schedules that are due by the database's clock.
pub(super) async fn due(
    db: &Db<'_>,
    names: &[RecurringName],
    places: &[(u64, i64)],
    hub: &Uid,
) -> Result<Vec<Recurred>, DbErr> {
    let now = clock(db).await?;
    let mut all = Vec::new();
    let mut places = places.iter().copied();
    let mut left = names.len();
    for piece in pieces(names) {
        let mut steps = Vec::new();
        for (row, data) in find(db, piece, now).await? {
            // One place is kept for each of the others.
            left = left.saturating_sub(1);
            let used: usize = steps.iter().map(|step: &Step| step.plan.runs.len()).sum();
            let free = places.len().saturating_sub(used + left);
            let room = free.min(MOST_BYTES / data.len().max(1)).clamp(1, MOST_RUNS);
            steps.extend(step(row, data, now, room));
        }
        let runs = runs(db, &steps, &mut places).await?;
        let mut script = Script::new(db.engine());
        for step in &steps {
            advance(&mut script, step, hub, now);
        }
        insert(&mut script, &runs, &steps, hub);
        script.run(db).await?;
        all.extend(told(steps, runs));
    }
    Ok(all)
}

/// Those that are due, with their data. The database decides what time it is.
async fn find(db: &Db<'_>, names: &[RecurringName], now: i64) -> Result<Vec<(Row, Data)>, DbErr> {
    let mut values: Vec<Value> = names.iter().map(|name| name.as_str().into()).collect();
    fill(&mut values, names.len(), 1);
    values.push(now.into());
    let sql = format!(
        "SELECT {WITH_DATA} FROM v1_recurring WHERE name IN ({}) AND NOT paused AND due <= ? ORDER BY due, name",
        marks(rounded(names.len()))
    );
    let rows = db.rows(sql, values).await?;
    let row = |row: &QueryResult| Ok((Row::of(row)?, Data::from_stored(row.try_get_by_index::<String>(17)?)));
    rows.iter().map(row).collect()
}

fn step(row: Row, data: Data, now: i64, room: usize) -> Option<Step> {
    match row.times() {
        Ok(times) => {
            let plan = plan(&times, row.policy(), row.due?, now, room)?;
            Some(Step { row, data, plan, broken: None })
        }
        // It rests until somebody makes it anew.
        Err(error) => Some(Step { row, data, plan: Plan::default(), broken: Some(error.to_string()) }),
    }
}

/// The events to publish, each with its place: those that aren't there already.
async fn runs(
    db: &Db<'_>,
    steps: &[Step],
    places: &mut impl Iterator<Item = (u64, i64)>,
) -> Result<Vec<Run>, DbErr> {
    let dues = |(at, step): (usize, &Step)| {
        let name = step.row.state.name.clone();
        let due = move |due: &i64| (at, *due, occurrence_id(&name, *due));
        step.plan.runs.iter().map(due).collect::<Vec<_>>()
    };
    let wanted: Vec<(usize, i64, EventId)> = steps.iter().enumerate().flat_map(dues).collect();
    let mut there = HashSet::new();
    for piece in pieces(&wanted) {
        let mut values: Vec<Value> = piece.iter().map(|(_, _, id)| id.as_str().into()).collect();
        fill(&mut values, piece.len(), 1);
        let sql = format!("SELECT id FROM event WHERE id IN ({})", marks(rounded(piece.len())));
        for row in db.rows(sql, values).await? {
            there.insert(row.try_get_by_index::<String>(0)?);
        }
    }
    let mut runs = Vec::with_capacity(wanted.len());
    for (step, due, id) in wanted {
        let Some(Step { row, data, .. }) = steps.get(step).filter(|_| !there.contains(id.as_str())) else {
            continue;
        };
        // There is one for each: the schedule must not move on past a time that didn't run.
        let (seq, timestamp) = places.next().ok_or(DbErr::RecordNotInserted)?;
        let event = event(row, data, id, timestamp);
        runs.push(Run { event, seq, due, step });
    }
    Ok(runs)
}

fn event(row: &Row, data: &Data, id: EventId, timestamp: i64) -> Event {
    let what = &row.state.what;
    // Without a process of their own, each event is one.
    let pid = what.pid.clone().unwrap_or_else(|| Pid::from_stored(id.as_bytestring().clone()));
    let (domain, name) = (what.domain.clone(), what.event.clone());
    Event { id, timestamp, domain, name, pid, rid: None, data: data.clone() }
}

/// Moves the schedule on, if it still stands where it was found.
fn advance(script: &mut Script, step: &Step, hub: &Uid, now: i64) {
    let Step { row, plan, broken, .. } = step;
    let name = &row.state.name;
    let last = plan.runs.last().copied().or(row.state.last);
    script.add(
        "UPDATE v1_recurring SET due = ?, last = ?, ran = ran + ?, left_out = left_out + ? \
         WHERE name = ? AND due = ? AND NOT paused",
        [
            plan.next.into(),
            last.into(),
            signed(plan.runs.len() as u64).into(),
            signed(plan.left_out).into(),
            name.as_str().into(),
            row.due.into(),
        ],
    );
    script.expect(1);
    if plan.left_out > 0 {
        let policy = row.state.what.missed.as_str();
        let message =
            format!("left out: {} missed runs of the recurring schedule {name:?} ({policy})", plan.left_out);
        let details = serde_json::json!({ "recurring": name, "left_out": plan.left_out, "missed": policy, "from": row.due });
        log(script, &message, &details, hub, now);
    }
    if let Some(reason) = broken {
        let message = format!("the recurring schedule {name:?} can't run: {reason}");
        log(script, &message, &serde_json::json!({ "recurring": name }), hub, now);
    }
}

fn insert(script: &mut Script, runs: &[Run], steps: &[Step], hub: &Uid) {
    for piece in pieces(runs) {
        let events: Vec<_> = piece.iter().map(|run| (&run.event, run.event.timestamp)).collect();
        insert_events(&events, script);
        let rows: Vec<publishes::Row<'_>> = piece
            .iter()
            .filter_map(|Run { event, seq, step, .. }| {
                let publisher = &steps.get(*step)?.row.state.publisher;
                Some(publishes::Row { event, seq: *seq, publisher, hub })
            })
            .collect();
        insert_published(&rows, script);
        let mut values: Vec<Value> = Vec::with_capacity(3 * rounded(piece.len()));
        for run in piece {
            let name = steps.get(run.step).map(|step| step.row.state.name.as_str());
            values.extend([run.event.id.as_str().into(), name.into(), run.due.into()]);
        }
        occurrences(script, values, piece.len());
    }
    save_seq(runs.iter().map(|run| (hub, run.seq)), script);
}

fn occurrences(script: &mut Script, mut values: Vec<Value>, rows: usize) {
    fill(&mut values, rows, 3);
    let sql = format!(
        "INSERT INTO v1_occurrence (event_id, name, due) SELECT * FROM {} v WHERE column1 IS NOT NULL",
        rows_of(rows, 3)
    );
    script.add(&sql, values);
}

fn told(steps: Vec<Step>, runs: Vec<Run>) -> impl Iterator<Item = Recurred> {
    let mut ran: HashMap<usize, Vec<Ran>> = HashMap::new();
    for Run { event, seq, due, step } in runs {
        ran.entry(step).or_default().push(Ran { event, seq, due });
    }
    steps.into_iter().enumerate().map(move |(at, step)| {
        let Step { row, data, plan, broken } = step;
        let name = row.state.name;
        Recurred {
            next: plan.next.map(|due| Due { due, id: name.clone(), bytes: data.len() }),
            name,
            ran: ran.remove(&at).unwrap_or_default(),
            late: plan.late,
            left_out: plan.left_out,
            broken,
        }
    })
}

/// Publishes the event of a schedule now, under this id; again is a duplicate.
pub(super) async fn extra(
    db: &Db<'_>,
    name: &RecurringName,
    id: &EventId,
    (seq, timestamp): (u64, i64),
    by: &Uid,
    hub: &Uid,
) -> Result<Answer, DbErr> {
    let Some((row, data)) = read(db, name).await? else {
        return Ok(Err(StoreError::RecurringNotFound { name: name.clone() }));
    };
    if let Some(answer) = before(db, name, id).await? {
        return Ok(answer);
    }
    let event = event(&row, &data, id.clone(), timestamp);
    let mut script = Script::new(db.engine());
    insert_events(&[(&event, timestamp)], &mut script);
    insert_published(&[publishes::Row { event: &event, seq, publisher: by, hub }], &mut script);
    occurrences(&mut script, vec![id.as_str().into(), name.as_str().into(), None::<i64>.into()], 1);
    script.add("UPDATE v1_recurring SET ran = ran + 1 WHERE name = ?", [name.as_str().into()]);
    save_seq([(hub, seq)], &mut script);
    script.run(db).await?;
    Ok(Ok(Written::RanExtra(Some(Box::new(event)), Published::fresh(timestamp, seq))))
}

/// The answer to a run whose id is taken, if it is.
async fn before(db: &Db<'_>, name: &RecurringName, id: &EventId) -> Result<Option<Answer>, DbErr> {
    let Some(published) = known::duplicate(db, id).await? else { return Ok(None) };
    let sql = "SELECT 1 FROM v1_occurrence WHERE event_id = ? AND name = ? AND due IS NULL";
    let values = vec![id.as_str().into(), name.as_str().into()];
    let same = db.row(sql, values).await?.is_some();
    Ok(Some(if same {
        Ok(Written::RanExtra(None, published))
    } else {
        Err(StoreError::EventConflict { id: id.clone(), field: "origin" })
    }))
}
