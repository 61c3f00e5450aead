//! Events that go, and with them, by the foreign keys, all that hangs on them.

use sea_orm::{DbErr, QueryResult, Value};

use super::{
    super::{
        Delete, Deleted, Gone, StoreError, Write, Written,
        engine::Ask,
        log::HAS_BEGUN,
        sql::{Script, fill, marks, ours, pieces, rounded, signed, unsigned},
        time,
        writer::Db,
    },
    Answer,
};
use crate::{
    event::{Domain, EventId, Name},
    wire::Deletion,
};

/// Writes and answers the deletions in their order.
pub(super) async fn write(db: &Db<'_>, writes: &[Write], answers: &mut [Answer]) -> Result<(), DbErr> {
    for (write, answer) in writes.iter().zip(answers) {
        if let Write::Delete(delete) = write {
            *answer = run(db, delete).await?.map(Written::Deleted);
        }
    }
    Ok(())
}

async fn run(db: &Db<'_>, delete: &Delete) -> Result<Result<Deleted, StoreError>, DbErr> {
    let mut gone = find(db, delete).await?;
    let more = gone.len() > delete.most;
    gone.truncate(delete.most);
    if gone.is_empty() {
        return Ok(match &delete.what {
            Deletion::Event { id } => Err(StoreError::EventNotFound { id: id.clone() }),
            Deletion::Log { .. } => Ok(Deleted { gone, rest: None }),
        });
    }
    let mut script = Script::new(db.engine());
    for piece in pieces(&gone) {
        let mut values: Vec<Value> = piece.iter().map(|gone| gone.id.as_str().into()).collect();
        fill(&mut values, piece.len(), 1);
        script.add(format!("DELETE FROM event WHERE id IN ({})", marks(rounded(piece.len()))), values);
    }
    // After them: in a full database it is they that make room for it.
    tell(delete, gone.len(), &mut script);
    script.run(db).await?;
    Ok(Ok(Deleted { gone, rest: more.then(|| delete.clone()) }))
}

/// What is to go now, and one more if there is more. What waits for its time is in no log, and doesn't go with one.
async fn find(db: &Db<'_>, delete: &Delete) -> Result<Vec<Gone>, DbErr> {
    let find = format!(
        "SELECT e.id, e.domain, e.name, CASE WHEN p.v1_hub = ? THEN p.seq END, NOT ({HAS_BEGUN}), p.seq IS NOT NULL \
         AND p.success IS NULL AND p.failed IS NULL AND p.orphan IS NULL AND {} \
         FROM event e LEFT JOIN event_published p ON p.event_id = e.id WHERE",
        ours("p")
    );
    let (sql, values) = match &delete.what {
        Deletion::Event { id } => {
            (format!("{find} e.id = ?"), vec![delete.hub.as_str().into(), id.as_str().into()])
        }
        Deletion::Log { domain, pid } => {
            let mut values: Vec<Value> =
                vec![delete.hub.as_str().into(), domain.as_str().into(), pid.as_str().into()];
            values.extend(delete.before.map(time::value));
            values.push(signed(delete.most.saturating_add(1) as u64).into());
            let before = if delete.before.is_some() { "AND e.timestamp < @local(?)" } else { "" };
            let tail =
                format!("e.domain = ? AND e.pid = ? {before} AND {HAS_BEGUN} ORDER BY e.timestamp LIMIT ?");
            (format!("{find} {tail}"), values)
        }
    };
    db.rows(sql, values).await?.iter().map(gone_of).collect()
}

fn gone_of(row: &QueryResult) -> Result<Gone, DbErr> {
    Ok(Gone {
        id: EventId::from_stored(row.try_get_by_index::<String>(0)?),
        domain: Domain::from_stored(row.try_get_by_index::<String>(1)?),
        name: Name::from_stored(row.try_get_by_index::<String>(2)?),
        seq: row.try_get_by_index::<Option<i64>>(3)?.map(unsigned),
        scheduled: row.try_get_by_index(4)?,
        open: row.try_get_by_index(5)?,
    })
}

/// The line that remembers it, in the transaction that does it: no crash parts the two.
fn tell(delete: &Delete, count: usize, script: &mut Script) {
    let by = &delete.by;
    let (message, error) = match &delete.what {
        Deletion::Event { id } => (
            format!("deleted: the event {id:?}, by {by}"),
            serde_json::json!({ "by": by, "id": id, "count": count }),
        ),
        Deletion::Log { domain, pid } => (
            format!("deleted: {count} events of the log {domain:?} {pid:?}, by {by}"),
            serde_json::json!({ "by": by, "domain": domain, "pid": pid, "count": count }),
        ),
    };
    script.add(
        "INSERT INTO log (timestamp, agent, message, error) VALUES (@local(?), ?, ?, @json(?))",
        [time::value(delete.at), delete.hub.as_str().into(), message.into(), error.to_string().into()],
    );
}
