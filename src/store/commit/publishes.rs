//! Events and who serves them.

use std::collections::{HashMap, HashSet};

use sea_orm::{ConnectionTrait, DatabaseConnection, DbErr, Value};

use super::{
    super::{
        Write, Written,
        sql::{pieces, row_marks, signed, statement},
        time,
    },
    Answer,
    known::{Known, Verdict},
};
use crate::{
    event::{Event, Uid},
    wire::Published,
};

/// A row of `event_published`.
struct Row<'a> {
    event: &'a Event,
    seq: u64,
    publisher: &'a Uid,
    hub: &'a Uid,
}

/// Whether an event of the batch answers itself or one that comes later. Whether the database would notice
/// depends on how its rows fall into statements, so such a batch is looked through first.
pub(super) fn answers_later(writes: &[Write]) -> bool {
    let mut answered = HashSet::new();
    writes.iter().any(|write| match write {
        Write::Publish { event, .. } => {
            answered.extend(&event.rid);
            answered.contains(&event.id)
        }
        _ => false,
    })
}

/// Inserts the publishes of the batch in their order, and answers them.
pub(super) async fn write(
    db: &DatabaseConnection,
    writes: &[Write],
    mut known: Option<&mut Known>,
    answers: &mut [Answer],
) -> Result<(), DbErr> {
    let mut events = Vec::new();
    let mut rows = Vec::new();
    for (write, answer) in writes.iter().zip(answers) {
        let Write::Publish { event, seq, publisher, hub } = write else { continue };
        let verdict = known.as_mut().map_or(Ok(Verdict::New), |known| known.publish(event, *seq));
        let published = match verdict {
            Ok(Verdict::New) => {
                events.push(event);
                Published { fresh: true, timestamp: event.timestamp, seq: *seq }
            }
            Ok(Verdict::Publish { timestamp }) => Published { fresh: true, timestamp, seq: *seq },
            Ok(Verdict::Duplicate(published)) => published,
            Err(error) => {
                *answer = Err(error);
                continue;
            }
        };
        if published.fresh {
            rows.push(Row { event, seq: *seq, publisher, hub });
        }
        *answer = Ok(Written::Published(published));
    }

    let mut clock = Clock::default();
    for piece in pieces(&events) {
        insert_events(db, piece, &mut clock).await?;
    }
    for piece in pieces(&rows) {
        insert_published(db, piece, &mut clock).await?;
    }
    save_seq(db, &rows).await
}

async fn insert_events(db: &DatabaseConnection, events: &[&Event], clock: &mut Clock) -> Result<(), DbErr> {
    let sql = format!(
        "INSERT INTO event (id, timestamp, domain, rid, pid, name, data) VALUES {}",
        row_marks(events.len(), 7)
    );
    let mut values: Vec<Value> = Vec::with_capacity(events.len() * 7);
    for event in events {
        values.extend([
            event.id.as_str().into(),
            clock.text(event.timestamp),
            event.domain.as_str().into(),
            event.rid.as_ref().map(|rid| rid.as_str()).into(),
            event.pid.as_str().into(),
            event.name.as_str().into(),
            event.data.as_str().into(),
        ]);
    }
    db.execute_raw(statement(sql, values)).await.map(drop)
}

/// The hub's claim (`hub`, `consumed_hub`) is written with the row: no other hub ever tries.
async fn insert_published(db: &DatabaseConnection, rows: &[Row<'_>], clock: &mut Clock) -> Result<(), DbErr> {
    let sql = format!(
        "INSERT INTO event_published (event_id, published, publisher, hub, consumed_hub, v1_hub, seq) VALUES {}",
        row_marks(rows.len(), 7)
    );
    let mut values: Vec<Value> = Vec::with_capacity(rows.len() * 7);
    for row in rows {
        let at = clock.text(row.event.timestamp);
        values.extend([
            row.event.id.as_str().into(),
            at.clone(),
            row.publisher.as_str().into(),
            row.hub.as_str().into(),
            at,
            row.hub.as_str().into(),
            signed(row.seq).into(),
        ]);
    }
    db.execute_raw(statement(sql, values)).await.map(drop)
}

/// Remembers the highest number of each hub.
async fn save_seq(db: &DatabaseConnection, rows: &[Row<'_>]) -> Result<(), DbErr> {
    let mut highest: HashMap<&Uid, u64> = HashMap::new();
    for row in rows {
        let seq = highest.entry(row.hub).or_default();
        *seq = row.seq.max(*seq);
    }
    for (hub, seq) in highest {
        let seq = signed(seq);
        let sql = "UPDATE v1_hub_seq SET seq = ? WHERE hub_id = ? AND seq < ?";
        db.execute_raw(statement(sql, vec![seq.into(), hub.as_str().into(), seq.into()])).await?;
    }
    Ok(())
}

/// Times as text; most events of a batch share theirs.
#[derive(Default)]
struct Clock(Option<(i64, String)>);

impl Clock {
    fn text(&mut self, ms: i64) -> Value {
        match &self.0 {
            Some((last, text)) if *last == ms => text.as_str().into(),
            _ => {
                let text = time::text(ms);
                self.0 = Some((ms, text.clone()));
                text.into()
            }
        }
    }
}
