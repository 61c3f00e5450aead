//! Retention: orphans expire, and what was kept long enough goes. What it decided by its reads is decided again here, where
//! nobody writes meanwhile.

use std::collections::BTreeMap;

use sea_orm::{DbErr, Value};

use super::{
    super::{
        Binding, Fate, Gone, StoreError, Sweep, Swept, Write, Written,
        adoption::served_locked,
        bindings,
        engine::Ask,
        keep::{Facts, answered, facts},
        sql::{Script, fill, marks, pieces, rounded, signed, update_from},
        time,
        writer::Db,
    },
    Answer,
};
use crate::event::{EventId, Kept, Uid};

/// Rows that tell of gaps. Beyond, the older half becomes one row per hub and domain.
pub(in crate::store) const MOST_GAPS: u64 = 10_000;

/// Writes and answers the sweeps in their order.
pub(super) async fn write(db: &Db<'_>, writes: &[Write], answers: &mut [Answer]) -> Result<(), DbErr> {
    for (write, answer) in writes.iter().zip(answers) {
        if let Write::Sweep(sweep) = write {
            *answer = run(db, sweep).await?.map(Written::Swept);
        }
    }
    Ok(())
}

async fn run(db: &Db<'_>, sweep: &Sweep) -> Result<Result<Swept, StoreError>, DbErr> {
    let bindings = match bindings::list(db, None).await? {
        Ok(bindings) => bindings,
        Err(error) => return Ok(Err(error)),
    };
    // None of those that it has adopted comes back before the end of this.
    let hubs = served_locked(db, &sweep.hub).await?;
    let mut swept = Swept::default();
    let mut going = Vec::new();
    for facts in facts(db, &sweep.ids).await? {
        // An event of the same id may have come into another domain meanwhile.
        if facts.domain != sweep.domain {
            continue;
        }
        match fate(&facts, sweep, &hubs, &bindings) {
            Fate::Expires => swept.expired.push(facts.id),
            Fate::Goes(kept) => going.push((kept, facts)),
            Fate::Due(_) | Fate::Open(_) | Fate::Waits | Fate::Stays => {}
        }
    }
    let ids: Vec<EventId> = going.iter().map(|(_, facts)| facts.id.clone()).collect();
    let stays = answered(db, &ids).await?;
    going.retain(|(_, facts)| !stays.contains(&facts.id));
    let mut script = Script::new(db.engine());
    expire(sweep, &swept.expired, &mut script);
    remove(sweep, &going, &mut script);
    script.run(db).await?;
    if !going.is_empty() {
        merge_gaps(db).await?;
    }
    swept.removed = going.into_iter().map(|(kept, facts)| (kept, gone(facts, &sweep.hub))).collect();
    Ok(Ok(swept))
}

fn fate(facts: &Facts, sweep: &Sweep, hubs: &[Uid], bindings: &[Binding]) -> Fate {
    facts.fate(hubs, bindings, sweep.policies.of(&sweep.domain), sweep.at)
}

fn expire(sweep: &Sweep, ids: &[EventId], script: &mut Script) {
    for piece in pieces(ids) {
        let mut values: Vec<Value> = Vec::with_capacity(rounded(piece.len()) + 1);
        values.push(time::value(sweep.at));
        values.extend(piece.iter().map(|id| Value::from(id.as_str())));
        fill(&mut values, piece.len(), 1);
        let sql = format!(
            "UPDATE event_published SET orphan = ? WHERE event_id IN ({}) \
             AND success IS NULL AND failed IS NULL AND orphan IS NULL AND consumed_spoke IS NULL",
            marks(rounded(piece.len()))
        );
        script.add(&sql, values);
        script.expect(piece.len());
    }
}

fn remove(sweep: &Sweep, going: &[(Kept, Facts)], script: &mut Script) {
    for piece in pieces(going) {
        let mut values: Vec<Value> = piece.iter().map(|(_, facts)| facts.id.as_str().into()).collect();
        fill(&mut values, piece.len(), 1);
        script.add(format!("DELETE FROM event WHERE id IN ({})", marks(rounded(piece.len()))), values);
    }
    // After them: in a full database it is they that make room for it.
    let mut gaps: BTreeMap<&Uid, (u64, u64, u64)> = BTreeMap::new();
    let numbers = going.iter().filter_map(|(_, facts)| facts.standing.as_ref());
    for (hub, seq) in numbers.filter_map(|standing| Some((standing.hub.as_ref()?, standing.seq?))) {
        let (first, last, events) = gaps.entry(hub).or_insert((seq, seq, 0));
        (*first, *last, *events) = ((*first).min(seq), (*last).max(seq), *events + 1);
    }
    for (hub, (first, last, events)) in gaps {
        let values: [Value; 6] = [
            hub.as_str().into(),
            sweep.domain.as_str().into(),
            signed(first).into(),
            signed(last).into(),
            signed(events).into(),
            time::value(sweep.at),
        ];
        script.add(
            "INSERT INTO v1_removed (hub, domain, first_seq, last_seq, events, removed) VALUES (?, ?, ?, ?, ?, ?)",
            values,
        );
    }
}

/// Keeps the rows that tell of gaps few: of the older half of them one row per hub and domain is left, the latest, which
/// tells of as many events, within wider ends. Ids stay in their order: who reads on behind one reads nothing twice.
async fn merge_gaps(db: &Db<'_>) -> Result<(), DbErr> {
    let nth = async |rows: u64| {
        let sql = "SELECT id FROM v1_removed ORDER BY id LIMIT 1 OFFSET ?";
        let row = db.row(sql, vec![signed(rows).into()]).await?;
        row.map(|row| row.try_get_by_index::<i64>(0)).transpose()
    };
    if nth(MOST_GAPS).await?.is_none() {
        return Ok(());
    }
    let Some(upto) = nth(MOST_GAPS / 2).await? else { return Ok(()) };
    let mut script = Script::new(db.engine());
    let merged = "(SELECT max(id) AS last_id, min(first_seq) AS first, max(last_seq) AS last, \
                  @whole(sum(events)) AS sum FROM v1_removed WHERE id <= ? GROUP BY hub, domain) m";
    let (sql, values) = update_from(
        db.engine(),
        "v1_removed",
        ("first_seq = m.first, last_seq = m.last, events = m.sum".to_owned(), Vec::new()),
        (merged.to_owned(), vec![upto.into()]),
        "id = m.last_id",
    );
    script.add(sql, values);
    script.add(
        "DELETE FROM v1_removed WHERE id <= ? AND id NOT IN (SELECT m.last_id FROM \
         (SELECT max(id) AS last_id FROM v1_removed WHERE id <= ? GROUP BY hub, domain) m)",
        [upto.into(), upto.into()],
    );
    script.run(db).await
}

fn gone(facts: Facts, hub: &Uid) -> Gone {
    let Facts { id, domain, name, standing, .. } = facts;
    let open = standing.as_ref().is_some_and(|standing| standing.end.is_none() && standing.claimed.is_none());
    let seq =
        standing.filter(|standing| standing.hub.as_ref() == Some(hub)).and_then(|standing| standing.seq);
    Gone { id, domain, name, seq, scheduled: false, open }
}
