//! Events and who serves them.

use std::collections::{BTreeMap, HashSet};

use sea_orm::Value;

use super::{
    super::{
        Placed, StoreError, Write, Written,
        sql::{Script, fill, pieces, rounded, rows_of, rows_with_text, signed},
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
pub(super) struct Row<'a> {
    pub(super) event: &'a Event,
    pub(super) seq: u64,
    pub(super) publisher: &'a Uid,
    pub(super) hub: &'a Uid,
}

/// Whether the batch is looked through before it is written: what is expected of a log only a look can tell.
pub(super) fn looks_first(writes: &[Write]) -> bool {
    answers_later(writes) || writes.iter().any(|write| write.expecting().next().is_some())
}

/// Whether an event of the batch answers itself or one that comes later. Whether the database would notice
/// depends on how its rows fall into statements, so such a batch is looked through first.
fn answers_later(writes: &[Write]) -> bool {
    let mut answered = HashSet::new();
    writes.iter().flat_map(Write::stores).any(|event| {
        answered.extend(&event.rid);
        answered.contains(&event.id)
    })
}

/// The rows to insert, in their order.
#[derive(Default)]
struct Inserts<'a> {
    /// Each with the time that it is stored with.
    events: Vec<(&'a Event, i64)>,
    published: Vec<Row<'a>>,
}

impl<'a> Inserts<'a> {
    /// What a judged publish takes.
    fn publish(&mut self, row: Row<'a>, verdict: Verdict) -> Published {
        let timestamp = match verdict {
            Verdict::New { timestamp } => {
                self.events.push((row.event, timestamp));
                timestamp
            }
            Verdict::Publish { timestamp } => timestamp,
            Verdict::Duplicate(published) => return published,
        };
        let published = Published::fresh(timestamp, row.seq);
        self.published.push(row);
        published
    }

    /// What a judged event that is only stored takes.
    fn persist(&mut self, event: &'a Event, verdict: Verdict) -> Published {
        match verdict {
            Verdict::Duplicate(published) => published,
            Verdict::New { timestamp } | Verdict::Publish { timestamp } => {
                self.events.push((event, timestamp));
                Published::fresh(timestamp, 0)
            }
        }
    }
}

/// Plans the inserts of the batch's publishes in their order, and answers them.
pub(super) fn plan<'a>(
    writes: &'a [Write],
    mut known: Option<&mut Known>,
    answers: &mut [Answer],
    script: &mut Script,
) {
    let mut inserts = Inserts::default();
    for (write, answer) in writes.iter().zip(answers) {
        match write {
            Write::Publish { event, seq, publisher, hub, expect } => {
                let verdict = match &mut known {
                    Some(known) => known.publish(event, *seq, expect.as_ref()),
                    None => Ok(Verdict::new(event)),
                };
                let row = Row { event, seq: *seq, publisher, hub };
                *answer = verdict.map(|verdict| Written::Published(inserts.publish(row, verdict)));
            }
            Write::Batch { events, publisher, hub } => {
                let row = |placed: &'a Placed| Row { event: &placed.event, seq: placed.seq, publisher, hub };
                *answer = judge_all(events, known.as_deref_mut()).map(|verdicts| {
                    let rows = events.iter().map(row).zip(verdicts);
                    Written::Batch(rows.map(|(row, verdict)| inserts.publish(row, verdict)).collect())
                });
            }
            Write::Persist(event, expect) => {
                let verdict = match &mut known {
                    Some(known) => known.persist(event, expect.as_ref()),
                    None => Ok(Verdict::new(event)),
                };
                *answer = verdict.map(|verdict| Written::Published(inserts.persist(event, verdict)));
            }
            _ => {}
        }
    }

    let Inserts { events, published } = inserts;
    insert(&events, &published, script);
}

/// Events that are stored, and what is published of them and of others.
pub(super) fn insert(events: &[(&Event, i64)], published: &[Row<'_>], script: &mut Script) {
    for piece in pieces(events) {
        insert_events(piece, script);
    }
    for piece in pieces(published) {
        insert_published(piece, script);
    }
    save_seq(published.iter().map(|row| (row.hub, row.seq)), script);
}

/// Of a batch each is judged, and all are refused with the first that is.
fn judge_all(events: &[Placed], known: Option<&mut Known>) -> Result<Vec<Verdict>, StoreError> {
    match known {
        Some(known) => known.publish_all(events),
        None => Ok(events.iter().map(|placed| Verdict::new(&placed.event)).collect()),
    }
}

pub(super) fn insert_events(events: &[(&Event, i64)], script: &mut Script) {
    let mut values: Vec<Value> = Vec::with_capacity(rounded(events.len()) * 7);
    for (event, timestamp) in events {
        values.extend([
            event.id.as_str().into(),
            time::value(*timestamp),
            event.domain.as_str().into(),
            event.rid.as_ref().map(|rid| rid.as_str()).into(),
            event.pid.as_str().into(),
            event.name.as_str().into(),
            event.data.as_str().into(),
        ]);
    }
    fill(&mut values, events.len(), 7);
    let sql = format!(
        "INSERT INTO event (id, timestamp, domain, rid, pid, name, data) \
         SELECT column1, @local(column2), column3, column4, column5, column6, @json(column7) FROM {} v \
         WHERE column1 IS NOT NULL",
        rows_with_text(events.len(), 7, 7)
    );
    script.add(&sql, values);
}

/// The hub's claim (`hub`, `consumed_hub`) is written with the row: no other hub ever tries.
pub(super) fn insert_published(rows: &[Row<'_>], script: &mut Script) {
    let mut values: Vec<Value> = Vec::with_capacity(rounded(rows.len()) * 7);
    for row in rows {
        let at = time::value(row.event.timestamp);
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
    fill(&mut values, rows.len(), 7);
    let sql = format!(
        "INSERT INTO event_published (event_id, published, publisher, hub, consumed_hub, v1_hub, seq) \
         SELECT column1, @local(column2), column3, column4, column5, column6, column7 FROM {} v WHERE column1 IS NOT NULL",
        rows_of(rows.len(), 7)
    );
    script.add(&sql, values);
}

/// Remembers the highest number of each hub.
pub(super) fn save_seq<'a>(given: impl IntoIterator<Item = (&'a Uid, u64)>, script: &mut Script) {
    let mut highest: BTreeMap<&Uid, u64> = BTreeMap::new();
    for (hub, seq) in given {
        let last = highest.entry(hub).or_default();
        *last = seq.max(*last);
    }
    for (hub, seq) in highest {
        let seq = signed(seq);
        let sql = "UPDATE v1_hub_seq SET seq = ? WHERE hub_id = ? AND seq < ?";
        script.add(sql, [seq.into(), hub.as_str().into(), seq.into()]);
    }
}
