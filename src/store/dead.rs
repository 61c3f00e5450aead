//! Dead events: what failed for good in a group and wasn't redriven.

use sea_orm::{ConnectionTrait, DbErr, QueryResult, Value};

use super::{
    Store, StoreError,
    adoption::served,
    engine::{Ask, small},
    events::patterns as narrow,
    page::{DeadKey, dead_query},
    sql::{marks, refused, signed, unsigned},
    time,
    write::ends_of,
};
use crate::{
    event::{Domain, EventId, Name, Pattern, Pid, Uid},
    wire::{Dead, DeadQuery},
};

/// Dead events that are looked at for one page, whether they match or not.
pub(super) const LOOKED_AT: u64 = if cfg!(test) { 50 } else { 20_000 };
/// The bytes that a page may have as JSON: it crosses the link in one record.
const PAGE_BYTES: usize = 32 * 1024;
/// Of what an npm spoke has written nothing is known but that.
const UNKNOWN_REASON: &str = "failed";

impl Store {
    /// A page of the dead events of a group on a hub, and on those that it has adopted, by number: at most `limit`. The token leads to the next page;
    /// empty: that was the last. A page may be empty though there is a next one.
    ///
    /// # Errors
    /// [`StoreError::GroupNotFound`], [`StoreError::InvalidPage`] if `page` comes from another query, or whatever the database says.
    pub async fn dead_page(
        &self,
        hub: &Uid,
        query: &DeadQuery,
        page: &str,
        limit: usize,
    ) -> Result<(Vec<Dead>, String), StoreError> {
        let asked = dead_query(hub, query);
        let after = match page {
            "" => 0,
            token => token.parse::<DeadKey>()?.of(asked)?,
        };
        let refused = refused("list dead events");
        let hubs = served(&self.readers, hub).await.map_err(&refused)?;
        let rows = DeadRows { hubs: &hubs, group: query.group.as_deref().unwrap_or("") };
        if !rows.group.is_empty() && page.is_empty() && !self.has_group(rows.group).await.map_err(&refused)? {
            return Err(StoreError::GroupNotFound { group: rows.group.to_owned() });
        }
        let (found, scanned) = self.dead(rows, query, after, limit.max(1)).await.map_err(refused)?;
        let wanted = |dead: &Dead| {
            query.domain.as_ref().is_none_or(|domain| domain.matches(&dead.domain))
                && query.name.as_ref().is_none_or(|name| name.matches(&dead.name))
        };
        let mut page = Vec::new();
        let mut bytes = 0;
        let mut last = after;
        let mut next = scanned;
        for (seq, dead) in found {
            if wanted(&dead) {
                bytes += serde_json::to_string(&dead).map_or(0, |text| text.len() + 1);
                if !page.is_empty() && bytes > PAGE_BYTES {
                    next = Some(last);
                    break;
                }
                page.push(dead);
            }
            last = seq;
        }
        let token = next.map(|seq| DeadKey { query: asked, seq }.to_string());
        Ok((page, token.unwrap_or_default()))
    }

    async fn has_group(&self, name: &str) -> Result<bool, DbErr> {
        let row = self.readers.row("SELECT 1 FROM v1_group WHERE name = ?", vec![name.into()]).await?;
        Ok(row.is_some())
    }

    /// Dead events with their numbers, narrowed by what SQL can tell of patterns; besides, up to where that is all, if
    /// more may follow.
    async fn dead(
        &self,
        rows: DeadRows<'_>,
        query: &DeadQuery,
        after: u64,
        limit: usize,
    ) -> Result<(Vec<(u64, Dead)>, Option<u64>), DbErr> {
        let until = rows.until(&self.readers, after).await?;
        let any = Pattern::any();
        let patterns = (query.domain.as_ref().unwrap_or(&any), query.name.as_ref().unwrap_or(&any));
        let (sql, values) = page_of_dead(rows, patterns, after, until, limit);
        let found = self.readers.rows(sql, values).await?;
        let mut found: Vec<(u64, Dead)> = found.iter().map(dead_of).collect::<Result<_, _>>()?;
        // The attempts are joined to rows that came in this order; SQL promises none.
        found.sort_unstable_by_key(|(seq, _)| *seq);
        let is_cut = found.len() >= limit;
        let scanned = if is_cut { found.last().map(|(seq, _)| *seq) } else { until };
        Ok((found, scanned))
    }
}

/// The page with the attempts of each: how many, whether for one reason, and the last.
pub(super) fn page_of_dead(
    rows: DeadRows<'_>,
    patterns: (&Pattern, &Pattern),
    after: u64,
    until: Option<u64>,
    limit: usize,
) -> (String, Vec<Value>) {
    let mut values: Vec<Value> = vec![rows.group.into(), rows.group.into()];
    let columns = format!("e.id, e.domain, e.name, e.pid, {}, d.seq", rows.columns());
    let tail = rows.tail(patterns, after, until, &mut values);
    values.extend([signed(limit as u64).into(), rows.group.into()]);
    let of = "FROM v1_attempt a WHERE a.event_id = x.id AND a.grp = ? AND a.round = x.round";
    let sql = format!(
        "SELECT x.id, x.domain, x.name, x.pid, x.ended, x.consumer, x.round, x.seq, \
         (SELECT count(*) {of}), (SELECT count(DISTINCT a.reason) {of}), l.reason, l.error \
         FROM (SELECT {columns} {tail} LIMIT ?) x \
         LEFT JOIN v1_attempt l ON l.id = (SELECT max(a.id) {of})"
    );
    (sql, values)
}

fn dead_of(row: &QueryResult) -> Result<(u64, Dead), DbErr> {
    let text = |index| row.try_get_by_index::<String>(index);
    let consumer = row.try_get_by_index::<Option<String>>(5)?.filter(|consumer| !consumer.is_empty());
    let attempts = small(row, 8)?;
    let reasons = small(row, 9)?;
    let last = row.try_get_by_index::<Option<String>>(10)?;
    let reason = match last {
        Some(reason) if attempts > 1 && reasons == 1 => format!("{reason} x{attempts}"),
        Some(reason) => reason,
        None => UNKNOWN_REASON.to_owned(),
    };
    let dead = Dead {
        id: EventId::from_stored(text(0)?),
        domain: Domain::from_stored(text(1)?),
        name: Name::from_stored(text(2)?),
        pid: Pid::from_stored(text(3)?),
        ended: time::millis(row.try_get_by_index(4)?),
        consumer: consumer.map(Uid::from_stored),
        round: small(row, 6)?,
        attempts,
        reason,
        error: ends_of(row.try_get_by_index::<Option<String>>(11)?.unwrap_or_default()),
    };
    Ok((unsigned(row.try_get_by_index(7)?), dead))
}

/// The rows of a group that tell of dead events which these hubs have dispatched: one, and those that it has adopted.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeadRows<'a> {
    pub(super) hubs: &'a [Uid],
    /// Empty is the default group.
    pub(super) group: &'a str,
}

impl DeadRows<'_> {
    /// When it ended, who had it last, and the round. The rows are called `d`.
    pub(super) fn columns(&self) -> &'static str {
        if self.group.is_empty() {
            "d.failed AS ended, d.consumer AS consumer, 1 + coalesce((SELECT max(o.round) FROM v1_outcome o \
             WHERE o.event_id = d.event_id AND o.grp = ''), 0) AS round"
        } else {
            "d.dead AS ended, d.consumer AS consumer, d.round AS round"
        }
    }

    /// Which hub dispatched them.
    pub(super) fn owner(&self) -> &'static str {
        if self.group.is_empty() { "d.v1_hub" } else { "d.hub" }
    }

    /// By the partial index that holds nothing else. What ended before the group's base round doesn't count.
    fn above(&self, join: &str, after: u64, values: &mut Vec<Value>) -> String {
        values.extend(self.hubs.iter().map(|hub| Value::from(hub.as_str())));
        let hubs = marks(self.hubs.len());
        let of = |column: &str| match self.hubs {
            [_] => format!("{column} = ?"),
            _ => format!("{column} IN ({hubs})"),
        };
        if self.group.is_empty() {
            values.push(signed(after).into());
            return format!(
                "FROM event_published d @index(event_published_failed) {join} \
                 WHERE {} AND d.failed IS NOT NULL AND d.success IS NULL AND d.seq > ?",
                of("d.v1_hub")
            );
        }
        values.extend([self.group.into(), self.group.into(), signed(after).into()]);
        format!(
            "FROM v1_outcome d @index(v1_outcome_dead) {join} WHERE {} AND d.grp = ? AND d.dead IS NOT NULL \
             AND d.round >= coalesce((SELECT round FROM v1_group WHERE name = ?), 1) AND d.seq > ?",
            of("d.hub")
        )
    }

    /// Those above `after` and up to `until`, by number, with their events as `e`; narrowed by the patterns' beginnings.
    pub(super) fn tail(
        &self,
        patterns: (&Pattern, &Pattern),
        after: u64,
        until: Option<u64>,
        values: &mut Vec<Value>,
    ) -> String {
        let mut tail = self.above("@join event e ON e.id = d.event_id", after, values);
        if let Some(until) = until {
            tail.push_str(" AND d.seq <= ?");
            values.push(signed(until).into());
        }
        narrow(patterns.0, patterns.1, &mut tail, values);
        tail.push_str(" ORDER BY d.seq");
        tail
    }

    /// Up to where one look goes; none: to the end.
    pub(super) async fn until(&self, db: &impl ConnectionTrait, after: u64) -> Result<Option<u64>, DbErr> {
        let mut values = Vec::new();
        let above = self.above("", after, &mut values);
        values.push(signed(LOOKED_AT - 1).into());
        let sql = format!("SELECT d.seq {above} ORDER BY d.seq LIMIT 1 OFFSET ?");
        let row = db.row(sql, values).await?;
        row.map(|row| row.try_get_by_index(0).map(unsigned)).transpose()
    }

    /// How many there are: of the index alone.
    pub(super) fn count(&self) -> (String, Vec<Value>) {
        let mut values = Vec::new();
        let above = self.above("", 0, &mut values);
        (format!("SELECT count(*) {above}"), values)
    }
}
