//! What waits for its time, page by page.

use sea_orm::{DbErr, QueryResult, Value};

use super::{
    super::{
        Store, StoreError,
        engine::Ask,
        page::{ScheduleKey, schedules_query},
        sql::{refused, signed},
        time,
    },
    DUE, MAX_DUE, rounded_up,
};
use crate::{
    event::{Domain, EventId, Name, Pid},
    wire::{ScheduledEvent, SchedulesQuery},
};

/// Schedules that are looked at for one page, whether their events match or not.
const LOOKED_AT: usize = if cfg!(test) { 10 } else { 5_000 };
/// The bytes that a page may have as JSON: it crosses the link in one record.
const PAGE_BYTES: usize = 32 * 1024;

impl Store {
    /// A page of what waits for its time, first what is due first: at most `limit`. The token leads to the next page; empty:
    /// that was the last. A page may be empty though there is a next one.
    ///
    /// # Errors
    /// [`StoreError::InvalidPage`] if `page` comes from another query, or whatever the database says.
    pub async fn schedules_page(
        &self,
        query: &SchedulesQuery,
        page: &str,
        limit: usize,
    ) -> Result<(Vec<ScheduledEvent>, String), StoreError> {
        let asked = schedules_query(query);
        let after = match page {
            "" => None,
            token => Some(token.parse::<ScheduleKey>()?),
        };
        if after.as_ref().is_some_and(|after| after.query != asked) {
            return Err(StoreError::InvalidPage);
        }
        let limit = limit.max(1);
        let looked_at = if query.domain.is_none() && query.name.is_none() { limit } else { LOOKED_AT };
        let read = async {
            let (sql, values) = list_query(query, after.as_ref(), looked_at.saturating_add(1));
            let rows = self.readers.rows(sql, values).await?;
            rows.iter().map(row_of).collect::<Result<Vec<_>, DbErr>>()
        };
        let mut rows = read.await.map_err(refused("list what is scheduled"))?;
        let mut more = rows.len() > looked_at;
        rows.truncate(looked_at);
        let (mut found, mut last, mut bytes) = (Vec::new(), None, 0);
        for (scheduled, event) in rows {
            let key = (scheduled, event.due, event.id.clone());
            let wanted = query.domain.as_ref().is_none_or(|domain| domain.matches(&event.domain))
                && query.name.as_ref().is_none_or(|name| name.matches(&event.name));
            if wanted {
                bytes += serde_json::to_string(&event).map_or(0, |text| text.len() + 1);
                if found.len() >= limit || (!found.is_empty() && bytes > PAGE_BYTES) {
                    more = true;
                    break;
                }
                found.push(event);
            }
            last = Some(key);
        }
        let token = last.filter(|_| more).map(|(scheduled, due, id)| ScheduleKey {
            query: asked,
            scheduled,
            due,
            id,
        });
        Ok((found, token.map(|token| token.to_string()).unwrap_or_default()))
    }
}

fn row_of(row: &QueryResult) -> Result<(String, ScheduledEvent), DbErr> {
    let text = |index| row.try_get_by_index::<String>(index);
    let event = ScheduledEvent {
        id: EventId::from_stored(text(1)?),
        due: row.try_get_by_index(2)?,
        domain: Domain::from_stored(text(3)?),
        name: Name::from_stored(text(4)?),
        pid: Pid::from_stored(text(5)?),
        rid: row.try_get_by_index::<Option<String>>(6)?.map(EventId::from_stored),
    };
    Ok((text(0)?, event))
}

/// By the condition of the index `event_scheduled_open` and in its order, as what is due is looked for. A date that is
/// none never comes, and isn't listed.
pub(in super::super) fn list_query(
    query: &SchedulesQuery,
    after: Option<&ScheduleKey>,
    limit: usize,
) -> (String, Vec<Value>) {
    let mut sql = format!(
        "SELECT @moment_text(s.scheduled), s.event_id, {DUE}, e.domain, e.name, e.pid, e.rid FROM event_scheduled s \
         JOIN event e ON e.id = s.event_id LEFT JOIN v1_schedule v ON v.event_id = s.event_id \
         WHERE s.executed IS NULL AND {DUE} IS NOT NULL"
    );
    let mut values: Vec<Value> = Vec::new();
    if let Some(from) = query.from {
        let from = from.clamp(0, MAX_DUE);
        // Of one with decimals, which others may write, the second lies below.
        sql.push_str(&format!(" AND s.scheduled >= ? AND {DUE} >= ?"));
        values.extend([time::value((from - from % 1_000 - 1_000).max(0)), from.into()]);
    }
    if let Some(to) = query.to {
        let to = to.clamp(0, MAX_DUE);
        sql.push_str(&format!(" AND s.scheduled <= ? AND {DUE} < ?"));
        values.extend([rounded_up(to.saturating_add(1_000)), to.into()]);
    }
    if let Some(ScheduleKey { scheduled, due, id, .. }) = after {
        sql.push_str(&format!(
            " AND s.scheduled >= @moment(?) AND (s.scheduled > @moment(?) OR {DUE} > ? OR ({DUE} = ? AND s.event_id > ?))"
        ));
        let scheduled = || Value::from(scheduled.as_str());
        values.extend([scheduled(), scheduled(), (*due).into(), (*due).into(), id.as_str().into()]);
    }
    sql.push_str(" ORDER BY s.scheduled, 3, s.event_id LIMIT ?");
    values.push(signed(limit as u64).into());
    (sql, values)
}
