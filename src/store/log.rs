//! Logs: the events of a process, of a child process, of an entity, of a domain, and which processes a domain has.

use sea_orm::{DbErr, QueryResult, Value};

use super::{
    LogKey, PidKey, Store, StoreError,
    engine::{Ask, Engine},
    events::{EVENT, event_of, page},
    page::{log_query, pid_query},
    sql::{marks, refused, signed, unsigned},
    time,
};
use crate::{
    event::{Domain, Event, Name, Pid},
    wire::{LogOf, LogQuery},
};

/// What is scheduled and has not run yet is in no log, and its process is none of its domain's.
pub(super) const HAS_BEGUN: &str =
    "NOT EXISTS (SELECT 1 FROM event_scheduled s WHERE s.event_id = e.id AND s.executed IS NULL)";
/// The bytes that the pids of a page may have as JSON: they cross the link in one record.
const PID_BYTES: usize = 32 * 1024;
/// The last moment that the database's times can say, in milliseconds since 1970.
const LAST_MOMENT: i64 = 253_402_300_799_999;

impl Store {
    /// A page of a log: at most `limit` events and `max_bytes` of [weight](Event::weight), but at least one event. The
    /// order is that of time, then number (events without one come last), then id; a domain's log has it reversed. The
    /// key leads to the next page; none: that was the last.
    ///
    /// # Errors
    /// [`StoreError::InvalidPage`] if `after` comes from another query, or whatever the database says.
    pub async fn log_page(
        &self,
        query: &LogQuery,
        after: Option<&LogKey>,
        limit: usize,
        max_bytes: usize,
    ) -> Result<(Vec<Event>, Option<LogKey>), StoreError> {
        let asked = log_query(query);
        if after.is_some_and(|after| after.query != asked) {
            return Err(StoreError::InvalidPage);
        }
        let (tail, values) = log_tail(query, after);
        let (rows, more) = page(&self.readers, &format!("{EVENT}, p.seq"), &tail, values, limit, max_bytes)
            .await
            .map_err(refused("read a log"))?;

        let mut last = None;
        let mut events = Vec::with_capacity(rows.len());
        for row in &rows {
            let read = || Ok((event_of(row)?, row.try_get_by_index::<Option<i64>>(7)?));
            let (event, seq) = read().map_err(refused("read a log"))?;
            last = Some((event.timestamp, seq.map(unsigned), event.id.clone()));
            events.push(event);
        }
        let next =
            last.filter(|_| more).map(|(timestamp, seq, id)| LogKey { query: asked, timestamp, seq, id });
        Ok((events, next))
    }

    /// A page of the processes that a domain has events of, rising: at most `limit`, but at least one if there is any.
    /// The key leads to the next page; none: that was the last.
    ///
    /// # Errors
    /// [`StoreError::InvalidPage`] if `after` comes from another query, or whatever the database says.
    pub async fn pids_page(
        &self,
        domain: &Domain,
        after: Option<&PidKey>,
        limit: usize,
    ) -> Result<(Vec<Pid>, Option<PidKey>), StoreError> {
        let query = pid_query(domain);
        if after.is_some_and(|after| after.query != query) {
            return Err(StoreError::InvalidPage);
        }
        let limit = limit.max(1);
        let (sql, values) = pids(self.readers.engine(), domain, after, limit.saturating_add(1));
        let rows = self.readers.rows(sql, values).await;
        let pid = |row: &QueryResult| row.try_get_by_index::<String>(0).map(Pid::from_stored);
        let pids: Result<Vec<Pid>, DbErr> = rows.and_then(|rows| rows.iter().map(pid).collect());
        let mut pids = pids.map_err(refused("list the processes of a domain"))?;

        let mut bytes = 0;
        let fitting = pids.iter().take_while(|pid| {
            bytes += json_bytes(pid);
            bytes <= PID_BYTES
        });
        let take = fitting.count().clamp(1, limit);
        let more = pids.len() > take;
        pids.truncate(take);
        let next = pids.last().filter(|_| more).map(|pid| PidKey { query, pid: pid.clone() });
        Ok((pids, next))
    }
}

/// With its quotes and comma, and each character that JSON escapes twice.
fn json_bytes(pid: &str) -> usize {
    pid.len() + pid.bytes().filter(|byte| matches!(byte, b'"' | b'\\')).count() + 3
}

/// From pid to pid through the index, instead of over all events of the domain. MySQL would go through all of them before
/// it counts, and no further than a thousand: there the events of a page's processes are read, in the index's order.
pub(super) fn pids(
    engine: Engine,
    domain: &Domain,
    after: Option<&PidKey>,
    limit: usize,
) -> (String, Vec<Value>) {
    let after = after.map_or("", |key| &*key.pid);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    if engine == Engine::MySql {
        let sql = format!(
            "SELECT DISTINCT e.pid FROM event e WHERE e.domain = ? AND e.pid > ? AND {HAS_BEGUN} ORDER BY e.pid LIMIT ?"
        );
        return (sql, vec![domain.as_str().into(), after.into(), limit.into()]);
    }
    let next = |above: &str| {
        format!(
            "SELECT e.pid FROM event e WHERE e.domain = ? AND e.pid > {above} AND {HAS_BEGUN} ORDER BY e.pid LIMIT 1"
        )
    };
    let sql = format!(
        "WITH RECURSIVE found(pid) AS (SELECT ({}) UNION ALL \
         SELECT ({}) FROM found WHERE found.pid IS NOT NULL) \
         SELECT pid FROM found WHERE pid IS NOT NULL LIMIT ?",
        next("?"),
        next("found.pid")
    );
    (sql, vec![domain.as_str().into(), after.into(), domain.as_str().into(), limit.into()])
}

/// A log behind a key.
pub(super) fn log_tail(query: &LogQuery, after: Option<&LogKey>) -> (String, Vec<Value>) {
    let mut values = Vec::new();
    let mut tail = whose(&query.of, &mut values);
    named(&query.names, &mut tail, &mut values);
    if let Some(from) = query.from.filter(|from| *from > 0) {
        tail.push_str(" AND e.timestamp >= @local(?)");
        values.push(time::value(from.min(LAST_MOMENT)));
    }
    if let Some(to) = query.to {
        tail.push_str(" AND e.timestamp < @local(?)");
        values.push(time::value(to.clamp(0, LAST_MOMENT)));
    }
    let newest_first = matches!(query.of, LogOf::Domain { .. });
    if let Some(key) = after {
        let at = time::value(key.timestamp);
        values.extend([at.clone(), at]);
        // `>=` lets the index skip what came before, the rest sorts out the same millisecond.
        tail.push_str(match (newest_first, key.seq) {
            (false, Some(_)) => {
                " AND e.timestamp >= @local(?) AND (e.timestamp > @local(?) OR p.seq IS NULL OR p.seq > ? \
                 OR (p.seq = ? AND e.id > ?))"
            }
            (false, None) => {
                " AND e.timestamp >= @local(?) AND (e.timestamp > @local(?) OR (p.seq IS NULL AND e.id > ?))"
            }
            (true, Some(_)) => {
                " AND e.timestamp <= @local(?) AND (e.timestamp < @local(?) OR p.seq < ? \
                 OR (p.seq = ? AND e.id < ?))"
            }
            (true, None) => {
                " AND e.timestamp <= @local(?) AND (e.timestamp < @local(?) OR p.seq IS NOT NULL OR e.id < ?)"
            }
        });
        if let Some(seq) = key.seq.map(signed) {
            values.extend([seq.into(), seq.into()]);
        }
        values.push(key.id.as_str().into());
    }
    tail.push_str(if newest_first {
        " ORDER BY e.timestamp DESC, p.seq IS NULL DESC, p.seq DESC, e.id DESC"
    } else {
        " ORDER BY e.timestamp, p.seq IS NULL, p.seq, e.id"
    });
    (tail, values)
}

/// The events of a log, by the index that finds them: `INDEXED BY`, a cross join and a `+` keep SQLite from others,
/// which would sort all events of the domain.
fn whose(of: &LogOf, values: &mut Vec<Value>) -> String {
    let (from, condition) = match of {
        LogOf::Process { domain, pid } => {
            values.extend([domain.as_str().into(), pid.as_str().into()]);
            ("event e", "e.domain = ? AND e.pid = ?")
        }
        LogOf::ChildProcess { domain, cpid } => {
            values.extend([domain.as_str().into(), cpid.as_str().into()]);
            ("event_cpid a @join event e ON e.id = a.event_id", "a.domain = ? AND a.cpid = ?")
        }
        LogOf::Entity { eid, domain: None } => {
            values.push(eid.as_str().into());
            ("event_eid a @join event e ON e.id = a.event_id", "a.eid = ?")
        }
        LogOf::Entity { eid, domain: Some(domain) } => {
            values.extend([eid.as_str().into(), domain.as_str().into()]);
            ("event_eid a @join event e ON e.id = a.event_id", "a.eid = ? AND @loose(e.domain) = ?")
        }
        LogOf::Domain { domain } => {
            values.push(domain.as_str().into());
            ("event e @index(event_domain)", "e.domain = ?")
        }
    };
    format!("FROM {from} LEFT JOIN event_published p ON p.event_id = e.id WHERE {condition} AND {HAS_BEGUN}")
}

/// Only these names, if there are any.
pub(super) fn named(names: &[Name], tail: &mut String, values: &mut Vec<Value>) {
    if !names.is_empty() {
        tail.push_str(&format!(" AND e.name IN ({})", marks(names.len())));
        values.extend(names.iter().map(|name| Value::from(name.as_str())));
    }
}
