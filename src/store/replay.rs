//! Reading what a hub has dispatched, in the order of its numbers, a page at a time.

use sea_orm::{DbErr, QueryResult, Value};

use super::{
    Store, StoreError,
    engine::Ask,
    events::{EVENT, event_of, page, patterns},
    sql::{refused, signed, unsigned},
};
use crate::event::{Event, EventId, Pattern, Uid};

/// Numbers that one page looks through at most: a rare pattern in a large log must not hold a reader for long.
const MOST_LOOKED_AT: u64 = 10_000;

/// What lies between two numbers of a hub, or the beginning of it.
#[derive(Debug)]
pub struct ReplayPage {
    /// The events that match, with their numbers, rising.
    pub events: Vec<(Event, u64)>,
    /// Up to this number all of them are here.
    pub to: u64,
}

/// Where an event stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// It is stored, but no hub has dispatched it.
    Stored,
    /// This hub has dispatched it, under this number.
    Dispatched(Uid, u64),
}

impl Store {
    /// A page of what the hub has dispatched above `after` and up to `to`, of these domains and names: at most `limit`
    /// events and `max_bytes` of [weight](Event::weight), but at least one event if there is any. It may be empty though
    /// there are more: it looks at 10,000 numbers.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn replay_page(
        &self,
        hub: &Uid,
        (after, to): (u64, u64),
        (domain, name): (&Pattern, &Pattern),
        limit: usize,
        max_bytes: usize,
    ) -> Result<ReplayPage, StoreError> {
        let refused = refused("replay events");
        // Others must get at the readers too, however many links replay.
        let _turn = self.replays.acquire().await;
        let to = self.window(hub, after, to).await.map_err(&refused)?;
        let (tail, values) = tail(hub, (after, to), (domain, name));
        let (rows, more) = page(&self.readers, &format!("{EVENT}, p.seq"), &tail, values, limit, max_bytes)
            .await
            .map_err(&refused)?;
        let read = |row: &QueryResult| Ok((event_of(row)?, unsigned(row.try_get_by_index(7)?)));
        let mut events = rows.iter().map(read).collect::<Result<Vec<_>, DbErr>>().map_err(&refused)?;
        let last = events.last().map_or(to, |(_, seq)| *seq);
        // The database narrowed down, the patterns decide.
        events.retain(|(event, _)| domain.matches(&event.domain) && name.matches(&event.name));
        Ok(ReplayPage { events, to: if more { last } else { to } })
    }

    /// Where the look from `after` on ends.
    async fn window(&self, hub: &Uid, after: u64, to: u64) -> Result<u64, DbErr> {
        let sql = "SELECT p.seq FROM event_published p WHERE p.v1_hub = ? AND p.seq > ? AND p.seq <= ? \
                   ORDER BY p.seq LIMIT 1 OFFSET ?";
        let values: [Value; 4] =
            [hub.as_str().into(), signed(after).into(), signed(to).into(), signed(MOST_LOOKED_AT - 1).into()];
        let row = self.readers.row(sql, values.into()).await?;
        row.map_or(Ok(to), |row| row.try_get_by_index(0).map(unsigned))
    }

    /// Which hub has dispatched an event, and under which number.
    ///
    /// # Errors
    /// [`StoreError::EventNotFound`], or whatever the database says.
    pub async fn place(&self, id: &EventId) -> Result<Place, StoreError> {
        let refused = refused("read when an event was dispatched");
        let sql = "SELECT p.v1_hub, p.seq FROM event e LEFT JOIN event_published p ON p.event_id = e.id \
                   WHERE e.id = ?";
        let row = self.readers.row(sql, vec![id.as_str().into()]).await;
        let row = row.map_err(&refused)?.ok_or_else(|| StoreError::EventNotFound { id: id.clone() })?;
        let read = || {
            let hub: Option<String> = row.try_get_by_index(0)?;
            let seq: Option<i64> = row.try_get_by_index(1)?;
            Ok(match hub.zip(seq) {
                Some((hub, seq)) => Place::Dispatched(Uid::from_stored(hub), unsigned(seq)),
                None => Place::Stored,
            })
        };
        read().map_err(refused)
    }
}

/// What a hub dispatched between two numbers, the first excluded: by the index `event_published_seq`. The `+` that
/// [`patterns`] writes keep SQLite from any other: it would have to sort all events of a domain.
pub(super) fn tail(
    hub: &Uid,
    (after, to): (u64, u64),
    (domain, name): (&Pattern, &Pattern),
) -> (String, Vec<Value>) {
    let mut values: Vec<Value> = vec![hub.as_str().into(), signed(after).into(), signed(to).into()];
    let mut tail = "FROM event_published p JOIN event e ON e.id = p.event_id \
                    WHERE p.v1_hub = ? AND p.seq > ? AND p.seq <= ?"
        .to_owned();
    patterns(domain, name, &mut tail, &mut values);
    tail.push_str(" ORDER BY p.seq");
    (tail, values)
}
