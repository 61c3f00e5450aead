//! What a hub still has to serve to a group.

use sea_orm::{ConnectionTrait, DbErr, QueryResult, Value};

use super::{
    GroupKey, Store, StoreError,
    engine::{Ask, small},
    events::{EVENT, event_of, page_with, patterns as narrow},
    sql::{ours, refused, signed, unsigned},
};
use crate::event::{Event, Pattern, Pid, Uid};

/// Rows that are looked at for one page, whether they are open and match or not: of a named group nearly all may have
/// their outcome, and a pattern may match nothing.
const LOOKED_AT: u64 = if cfg!(test) { 100 } else { 20_000 };

/// An event without outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenEvent {
    /// The event.
    pub event: Event,
    /// Its number on the hub.
    pub seq: u64,
    /// Who published it.
    pub publisher: Uid,
    /// In which round it stands in the group: 1 at first.
    pub round: u32,
    /// How many of its deliveries to the group ended without outcome in that round.
    pub attempts: u32,
    /// It was claimed in the database for a consumer of ours: in the default group only.
    pub claimed: bool,
}

/// A page of events without outcome.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OpenPage {
    /// The events, by number.
    pub events: Vec<OpenEvent>,
    /// Up to this number, itself included, nothing else is open: the next page begins after it.
    pub scanned: u64,
    /// There may be more above that. A page may be empty and yet have more after it.
    pub more: bool,
}

impl Store {
    /// A page of what the hub still has to serve to a group of these domains and names, by number, from `after_seq` on,
    /// itself excluded: at most `limit` events and `max_bytes` of [weight](Event::weight), but at least one event if
    /// one is among the first 20,000 rows that are looked at. What waits for another attempt isn't among them, see
    /// [`Store::retry_page`], nor is, of the default group, what npm spokes have claimed. Patterns with wildcards in
    /// the middle are matched by their beginning alone.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn open_page(
        &self,
        hub: &Uid,
        group: GroupKey<'_>,
        after_seq: u64,
        patterns: (&Pattern, &Pattern),
        limit: usize,
        max_bytes: usize,
    ) -> Result<OpenPage, StoreError> {
        let read = async {
            let until = until(&self.readers, hub, group, after_seq).await?;
            let mut values = Vec::new();
            let tail = open_tail(hub, group, after_seq, until, patterns, &mut values);
            let (columns, own) = columns(group);
            let (rows, is_cut) =
                page_with(&self.readers, (&columns, own), &tail, values, limit, max_bytes).await?;
            let open = |row: &QueryResult| open_of(row, group.round);
            let events: Vec<OpenEvent> = rows.iter().map(open).collect::<Result<_, DbErr>>()?;
            let last = events.last().map_or(after_seq, |last| last.seq);
            let scanned = if is_cut { last } else { until.unwrap_or(last) };
            Ok(OpenPage { events, scanned, more: is_cut || until.is_some() })
        };
        read.await.map_err(refused("read the open events"))
    }

    /// The same of one process, whatever the domain and the name: what is above the first number and not above the second.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn open_of_pid(
        &self,
        hub: &Uid,
        group: GroupKey<'_>,
        pid: &Pid,
        (after, upto): (u64, u64),
        limit: usize,
        max_bytes: usize,
    ) -> Result<OpenPage, StoreError> {
        let read = async {
            let until = until(&self.readers, hub, group, after).await?.map_or(upto, |until| until.min(upto));
            let mut values = Vec::new();
            let mut tail = open_rows(hub, group, after, Some(until), &mut values);
            tail.push_str(" AND e.pid = ? ORDER BY p.seq");
            values.push(pid.as_str().into());
            let (columns, own) = columns(group);
            let (rows, is_cut) =
                page_with(&self.readers, (&columns, own), &tail, values, limit, max_bytes).await?;
            let open = |row: &QueryResult| open_of(row, group.round);
            let events: Vec<OpenEvent> = rows.iter().map(open).collect::<Result<_, DbErr>>()?;
            let scanned = events.last().filter(|_| is_cut).map_or(until, |last| last.seq);
            Ok(OpenPage { events, scanned, more: scanned < upto })
        };
        read.await.map_err(refused("read the open events of a process"))
    }
}

/// The columns of an [`OpenEvent`], for [`open_tail`], with the values that they need.
pub(super) fn columns(group: GroupKey<'_>) -> (String, Vec<Value>) {
    let claimed = if group.is_default() { "p.consumed_spoke IS NOT NULL" } else { "FALSE" };
    let columns = format!(
        "{EVENT}, p.seq, p.publisher, \
         (SELECT count(*) FROM v1_attempt a WHERE a.event_id = e.id AND a.grp = ? AND a.round = ?), {claimed}"
    );
    (columns, vec![group.name.into(), group.round.into()])
}

fn open_of(row: &QueryResult, round: u32) -> Result<OpenEvent, DbErr> {
    Ok(OpenEvent {
        event: event_of(row)?,
        seq: unsigned(row.try_get_by_index(7)?),
        publisher: Uid::from_stored(row.try_get_by_index::<String>(8)?),
        round,
        attempts: small(row, 9)?,
        claimed: row.try_get_by_index(10)?,
    })
}

/// Up to where one look goes; none: to the end. From the index alone.
pub(super) async fn until(
    db: &impl ConnectionTrait,
    hub: &Uid,
    group: GroupKey<'_>,
    after: u64,
) -> Result<Option<u64>, DbErr> {
    let (sql, values) = until_sql(hub, group, after);
    let row = db.row(sql, values).await?;
    row.map(|row| row.try_get_by_index(0).map(unsigned)).transpose()
}

pub(super) fn until_sql(hub: &Uid, group: GroupKey<'_>, after: u64) -> (String, Vec<Value>) {
    let mut values = Vec::new();
    let rows = rows_above(hub, group, "", after, &mut values);
    values.push(signed(LOOKED_AT - 1).into());
    (format!("SELECT p.seq {rows} ORDER BY p.seq LIMIT 1 OFFSET ?"), values)
}

/// Rows `p` of a hub that may be open: of the default group those without outcome, which an index holds; of named
/// groups all.
fn rows_above(hub: &Uid, group: GroupKey<'_>, join: &str, after: u64, values: &mut Vec<Value>) -> String {
    values.extend([hub.as_str().into(), signed(after).into()]);
    if group.is_default() {
        format!(
            "FROM event_published p @index(event_published_open) {join} WHERE p.v1_hub = ? AND p.seq > ? \
             AND p.success IS NULL AND p.failed IS NULL AND p.orphan IS NULL"
        )
    } else {
        format!("FROM event_published p @index(event_published_seq) {join} WHERE p.v1_hub = ? AND p.seq > ?")
    }
}

/// The open ones of them, with their events as `e`, up to `until` if it is given.
pub(super) fn open_rows(
    hub: &Uid,
    group: GroupKey<'_>,
    after: u64,
    until: Option<u64>,
    values: &mut Vec<Value>,
) -> String {
    let mut rows = rows_above(hub, group, "@join event e ON e.id = p.event_id", after, values);
    if let Some(until) = until {
        rows.push_str(" AND p.seq <= ?");
        values.push(signed(until).into());
    }
    rows.push_str(" AND NOT EXISTS (SELECT 1 FROM v1_retry r WHERE r.event_id = p.event_id AND r.grp = ?)");
    values.push(group.name.into());
    if group.is_default() {
        rows.push_str(" AND ");
        rows.push_str(&ours("p"));
    } else {
        rows.push_str(
            " AND NOT EXISTS (SELECT 1 FROM v1_outcome o WHERE o.event_id = p.event_id AND o.grp = ? AND o.round >= ?)",
        );
        values.extend([group.name.into(), group.round.into()]);
    }
    rows
}

/// Those that the patterns' beginnings let through, in the order of a page.
pub(super) fn open_tail(
    hub: &Uid,
    group: GroupKey<'_>,
    after: u64,
    until: Option<u64>,
    patterns: (&Pattern, &Pattern),
    values: &mut Vec<Value>,
) -> String {
    let mut tail = open_rows(hub, group, after, until, values);
    narrow(patterns.0, patterns.1, &mut tail, values);
    tail.push_str(" ORDER BY p.seq");
    tail
}
