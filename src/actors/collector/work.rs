//! One piece of work of the [`Collector`](super::Collector): rows are read, the journal takes them.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use tokio::sync::oneshot;

use crate::{
    actors::{
        draining,
        journal::{Collect, Fate, Journal},
        mail::Handle,
    },
    event::{EventId, Fault},
    store::{MAX_DUE, NotTaken, Store, Unserved, UnservedKey, UnservedPage},
};

/// Rows that one page looks at.
const PAGE: usize = 1_000;
/// Events that one transaction takes, and the bytes of their data; one event always fits.
const MOST_TAKEN: usize = 256;
const TAKEN_BYTES: usize = 4 * 1024 * 1024;

/// Whom it works with.
#[derive(Debug, Clone)]
pub(super) struct Desk {
    pub(super) store: Store,
    pub(super) journal: Handle<Journal>,
    pub(super) age: Duration,
    pub(super) data_bytes: usize,
}

/// What a page came to.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) fates: Vec<(EventId, Fate)>,
    /// Where to go on; none: that was all.
    pub(super) next: Option<UnservedKey>,
    /// When a hub of ours first served the database.
    pub(super) first_start: i64,
}

/// Where a pass begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// At the first start of a hub on this database: what is older is history.
    FirstStart,
    /// At this time, in milliseconds since 1970.
    Time(i64),
}

impl Desk {
    /// Takes what a page finds, but for `skip`.
    pub(super) async fn page(
        &self,
        since: Since,
        after: Option<UnservedKey>,
        skip: &HashSet<EventId>,
    ) -> Result<Page, Fault> {
        // A hub that serves has set it.
        let first_start = self.store.first_start().await?.unwrap_or(MAX_DUE);
        let since = match since {
            Since::FirstStart => first_start,
            Since::Time(at) => at.max(first_start),
        };
        let page = self.store.unserved_page(since, self.age, after.as_ref(), PAGE).await?;
        let UnservedPage { mut events, next } = page;
        events.retain(|event| !skip.contains(&event.id));
        Ok(Page { fates: self.take(events).await?, next, first_start })
    }

    /// Takes these, in their order; those that aren't stored are unknown.
    pub(super) async fn named(&self, ids: Vec<EventId>) -> Result<Vec<(EventId, Fate)>, Fault> {
        let mut stored: HashMap<EventId, usize> =
            self.store.stored(&ids).await?.into_iter().map(|event| (event.id, event.bytes)).collect();
        let wanted = ids.iter().filter_map(|id| stored.remove_entry(id));
        let wanted = wanted.map(|(id, bytes)| Unserved { id, bytes }).collect();
        let mut fates: HashMap<EventId, Fate> = self.take(wanted).await?.into_iter().collect();
        let fate = |id: EventId| {
            let fate = match fates.get_mut(&id) {
                // Named twice: taken once.
                Some(fate @ Fate::Taken) => std::mem::replace(fate, Fate::Before),
                Some(fate) => fate.clone(),
                None => Fate::NotTaken(NotTaken::Unknown),
            };
            (id, fate)
        };
        Ok(ids.into_iter().map(fate).collect())
    }

    async fn take(&self, events: Vec<Unserved>) -> Result<Vec<(EventId, Fate)>, Fault> {
        take(&self.journal, self.data_bytes, events).await
    }
}

/// Has these taken by the journal, in their order and in pieces; what became of each.
///
/// # Errors
/// If the journal is gone, or the database is in trouble: what was taken by then stays taken.
pub async fn take(
    journal: &Handle<Journal>,
    data_bytes: usize,
    mut events: Vec<Unserved>,
) -> Result<Vec<(EventId, Fate)>, Fault> {
    let mut fates = Vec::with_capacity(events.len());
    // The next piece is the last one.
    let mut pieces = Vec::new();
    while !events.is_empty() {
        let rest = events.split_off(fitting(&events));
        pieces.push(std::mem::replace(&mut events, rest));
    }
    pieces.reverse();
    while let Some(mut piece) = pieces.pop() {
        let (done, answer) = oneshot::channel();
        let ids: Vec<EventId> = piece.iter().map(|event| event.id.clone()).collect();
        let bytes = piece.iter().map(|event| event.bytes).sum();
        journal.signal(Collect { events: ids, bytes, data_bytes, done });
        // A journal that is gone is part of a core that restarts.
        match answer.await.map_err(|_| draining())? {
            Ok(taken) => fates.extend(taken),
            Err(fault) if fault.is_retryable() => return Err(fault),
            // A row that can't be read at all spoils its whole piece: it is found by halves.
            Err(_) if piece.len() > 1 => {
                let rest = piece.split_off(piece.len() / 2);
                pieces.extend([rest, piece]);
            }
            Err(fault) => {
                let spoilt = piece.into_iter().map(|event| (event.id, Fate::Invalid(fault.message.clone())));
                fates.extend(spoilt);
            }
        }
    }
    Ok(fates)
}

/// How many of the first fit into one transaction.
fn fitting(events: &[Unserved]) -> usize {
    let mut bytes = 0_usize;
    let fit = events.iter().take(MOST_TAKEN).take_while(|event| {
        bytes = bytes.saturating_add(event.bytes);
        bytes <= TAKEN_BYTES
    });
    fit.count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_is_bounded_and_takes_one_at_least() {
        let of = |bytes| Unserved { id: EventId::from_stored("e"), bytes };
        assert_eq!(fitting(&vec![of(1); 1_000]), MOST_TAKEN);
        assert_eq!(fitting(&[of(TAKEN_BYTES), of(1)]), 1);
        assert_eq!(fitting(&[of(TAKEN_BYTES - 1), of(1), of(1)]), 2);
        assert_eq!(fitting(&[of(usize::MAX), of(usize::MAX)]), 1);
    }
}
