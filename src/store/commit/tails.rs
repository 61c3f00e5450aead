//! How logs end: for publishes that expect an end, and the places behind it.

use std::collections::{HashMap, HashSet};

use sea_orm::{DbErr, Value};

use super::{
    super::{
        StoreError, Write,
        engine::Ask,
        log::HAS_BEGUN,
        sql::{fill, pieces, rows_of, signed, unsigned},
        time,
        writer::Db,
    },
    Answer,
};
use crate::event::{Domain, Event, EventId, Expect, LogConflict, Pid};

/// The last event of a log, by the order in which logs are read.
#[derive(Debug, Clone)]
struct Last {
    id: EventId,
    timestamp: i64,
    /// None: it isn't dispatched.
    seq: Option<u64>,
}

#[derive(Debug, Clone, Default)]
struct Tail {
    last: Option<Last>,
    /// Events that the batch has added so far.
    added: u64,
}

type LogId = (Domain, Pid);

/// The ends of the logs that a batch expects something of, after the writes that were taken up so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Tails(HashMap<LogId, Tail>);

impl Tails {
    /// Reads the ends of those logs of which one of the writes expects something: most batches have none.
    pub(super) async fn read<'a>(
        db: &Db<'_>,
        writes: impl IntoIterator<Item = &'a Write>,
    ) -> Result<Self, DbErr> {
        let expecting = writes.into_iter().flat_map(Write::expecting);
        let logs: HashSet<(&Domain, &Pid)> =
            expecting.map(|(event, _)| (&event.domain, &event.pid)).collect();
        let logs: Vec<_> = logs.into_iter().collect();
        let mut tails = HashMap::with_capacity(logs.len());
        for piece in pieces(&logs) {
            let sql = format!(
                "SELECT l.column1, l.column2, e.id, @utc(e.timestamp), p.seq FROM {} l \
                 JOIN event e ON e.id = (SELECT e.id FROM event e LEFT JOIN event_published p ON p.event_id = e.id \
                 WHERE e.domain = l.column1 AND e.pid = l.column2 AND {HAS_BEGUN} \
                 ORDER BY e.timestamp DESC, p.seq IS NULL DESC, p.seq DESC, e.id DESC LIMIT 1) \
                 LEFT JOIN event_published p ON p.event_id = e.id WHERE l.column1 IS NOT NULL",
                rows_of(piece.len(), 2)
            );
            let texts = piece.iter().flat_map(|(domain, pid)| [domain.as_str(), pid.as_str()]);
            let mut values: Vec<Value> = texts.map(Value::from).collect();
            fill(&mut values, piece.len(), 2);
            for row in db.rows(sql, values).await? {
                let log = (
                    Domain::from_stored(row.try_get_by_index::<String>(0)?),
                    Pid::from_stored(row.try_get_by_index::<String>(1)?),
                );
                let last = Last {
                    id: EventId::from_stored(row.try_get_by_index::<String>(2)?),
                    timestamp: time::millis(row.try_get_by_index(3)?),
                    seq: row.try_get_by_index::<Option<i64>>(4)?.map(unsigned),
                };
                tails.insert(log, Tail { last: Some(last), added: 0 });
            }
        }
        for (domain, pid) in logs {
            tails.entry((domain.clone(), pid.clone())).or_default();
        }
        Ok(Self(tails))
    }

    /// Judges an event that is to be stored, with this number if it is dispatched too; if the log is as expected, takes
    /// it up. The time that it is to be stored with: its own, or, where a log has run ahead of the clock, one behind
    /// the log's end; else the next publisher would expect an event that isn't the last.
    pub(super) fn append(
        &mut self,
        event: &Event,
        seq: Option<u64>,
        expect: Option<&Expect>,
    ) -> Result<i64, StoreError> {
        if self.0.is_empty() {
            return Ok(event.timestamp);
        }
        let log = (event.domain.clone(), event.pid.clone());
        let Some(tail) = self.0.get_mut(&log) else { return Ok(event.timestamp) };
        let last = tail.last.as_ref();
        if let Some(expected) = expect.filter(|expect| !expect.holds(last.map(|last| &last.id))) {
            let (domain, pid) = log;
            let last = last.map(|last| last.id.clone());
            // What the database holds is added once it is known to be needed.
            let conflict = LogConflict { domain, pid, expected: expected.clone(), last, count: tail.added };
            return Err(StoreError::LogConflict(Box::new(conflict)));
        }
        let timestamp = match last {
            Some(last) if expect.is_some() && !last.is_before(event.timestamp, seq) => {
                last.timestamp.saturating_add(1)
            }
            _ => event.timestamp,
        };
        tail.added += 1;
        if last.is_none_or(|last| last.is_before(timestamp, seq)) {
            tail.last = Some(Last { id: event.id.clone(), timestamp, seq });
        }
        Ok(timestamp)
    }

    /// An event that was stored before is dispatched now, under this number.
    pub(super) fn dispatched(&mut self, event: &Event, seq: u64) {
        if self.0.is_empty() {
            return;
        }
        let tail = self.0.get_mut(&(event.domain.clone(), event.pid.clone()));
        if let Some(last) = tail.and_then(|tail| tail.last.as_mut()).filter(|last| last.id == event.id) {
            last.seq = Some(seq);
        }
    }
}

impl Last {
    /// Whether an event of this time and number comes after it for sure.
    fn is_before(&self, timestamp: i64, seq: Option<u64>) -> bool {
        let numbers = self.seq.zip(seq).is_some_and(|(last, next)| last < next);
        self.timestamp < timestamp || (self.timestamp == timestamp && numbers)
    }
}

/// Completes the conflicts among the answers: how many events their logs have. To be called before anything of the
/// batch is written.
pub(super) async fn count(db: &Db<'_>, answers: &mut [Answer]) -> Result<(), DbErr> {
    let mut counts: HashMap<LogId, u64> = HashMap::new();
    for answer in answers {
        let Err(StoreError::LogConflict(conflict)) = answer else { continue };
        let log = (conflict.domain.clone(), conflict.pid.clone());
        let stored = match counts.get(&log) {
            Some(stored) => *stored,
            None => {
                let stored = stored(db, &log).await?;
                counts.insert(log, stored);
                stored
            }
        };
        conflict.count = conflict.count.saturating_add(stored).min(LogConflict::MOST_COUNTED);
    }
    Ok(())
}

async fn stored(db: &Db<'_>, (domain, pid): &LogId) -> Result<u64, DbErr> {
    let sql = format!(
        "SELECT count(*) FROM (SELECT 1 FROM event e WHERE e.domain = ? AND e.pid = ? AND {HAS_BEGUN} LIMIT ?) counted"
    );
    let most = signed(LogConflict::MOST_COUNTED);
    let values = vec![domain.as_str().into(), pid.as_str().into(), most.into()];
    let row = db.row(sql, values).await?;
    row.map_or(Ok(0), |row| row.try_get_by_index::<i64>(0).map(unsigned))
}
