//! What npm left unfinished, for the admin HTTP: counted, and dispatched if somebody asks for it.

use std::{collections::BTreeMap, time::Duration};

use async_trait::async_trait;
use tokio::sync::{oneshot, watch};

use crate::{
    actors::{
        collector::take,
        connection::Core,
        journal::{Fate, RunDue},
    },
    admin::{Adopted, AskedHistory, Histories, RefusedEvent},
    event::{Fault, code},
    store::{HistoryPlace, Left, Past, Store},
};

/// Rows that one page looks at: to count them, and to dispatch them.
const COUNTED: usize = 20_000;
const TAKEN: usize = 1_000;
/// Events of one transaction.
const BATCH: usize = 256;

/// Answers for a hub that is up.
#[derive(Debug)]
pub struct HistoryDesk {
    /// The core, while there is one.
    pub core: watch::Receiver<Option<Core>>,
    /// Where it stands.
    pub store: Store,
    /// What npm scheduled for before this isn't run by itself, in milliseconds since 1970.
    pub overdue: i64,
    /// The most bytes that an event's data may have.
    pub data_bytes: usize,
}

#[async_trait]
impl Histories for HistoryDesk {
    async fn page(&self, asked: AskedHistory) -> Result<Adopted, Fault> {
        let place = match asked.after {
            None => HistoryPlace::Published(None),
            Some(after) => serde_json::from_value(after).map_err(|error| {
                Fault::refused(code::INVALID_PAGE, format!("`after` is no place in the history: {error}"))
            })?,
        };
        let first_start = self.store.first_start().await?.unwrap_or(0);
        let past = Past { since: asked.since, first_start, overdue: self.overdue };
        let limit = if asked.take { TAKEN } else { COUNTED };
        let page = self.store.history_page(past, &place, limit).await?;
        let mut adopted = Adopted { first_start, ..Adopted::default() };
        for event in &page.events {
            let kinds: &mut BTreeMap<_, _> = adopted.domains.entry(event.domain.to_string()).or_default();
            *kinds.entry(event.left.to_string()).or_insert(0) += 1;
        }
        if asked.take {
            let of = |left| page.events.iter().filter(move |event| event.left == left);
            let core = self.core()?;
            let published: Vec<_> = of(Left::Published).map(|event| event.unserved()).collect();
            for (id, fate) in take(&core.journal, self.data_bytes, published).await? {
                match fate {
                    Fate::Taken => adopted.taken += 1,
                    Fate::Invalid(reason) => {
                        adopted.refused.push(RefusedEvent { id: id.to_string(), reason })
                    }
                    Fate::Before | Fate::NotTaken(_) => adopted.elsewhere += 1,
                }
            }
            if asked.schedules {
                let due: Vec<_> = of(Left::Overdue).map(|event| event.scheduled()).collect();
                for due in due.chunks(BATCH) {
                    let (done, ran) = oneshot::channel();
                    core.journal.signal(RunDue { due: due.to_vec(), done });
                    let ran = ran.await.map_err(|_| restarting())??;
                    adopted.taken += ran as u64;
                    adopted.elsewhere += (due.len() - ran.min(due.len())) as u64;
                }
            }
        }
        adopted.next = page.next.map(serde_json::to_value).transpose().map_err(|error| {
            Fault::refused(code::INTERNAL, format!("the next place can't be told: {error}"))
        })?;
        Ok(adopted)
    }
}

impl HistoryDesk {
    fn core(&self) -> Result<Core, Fault> {
        self.core.borrow().clone().ok_or_else(restarting)
    }
}

fn restarting() -> Fault {
    let why = "the hub's core is restarting: ask again in a moment";
    Fault::retryable(code::HUB_RESTART, why, Duration::from_secs(1))
}

/// Says once at a start what was left, as far as a look at the latest of it tells.
///
/// # Errors
/// Whatever the database says.
pub async fn announce(store: &Store, overdue: i64) -> Result<(), crate::store::StoreError> {
    let Some(first_start) = store.first_start().await? else { return Ok(()) };
    let past = Past { since: 0, first_start, overdue };
    let mut counts = BTreeMap::new();
    let mut is_all = true;
    for place in [HistoryPlace::Published(None), HistoryPlace::Scheduled(None)] {
        let page = store.history_page(past, &place, COUNTED).await?;
        is_all &=
            !matches!(page.next, Some(HistoryPlace::Published(Some(_)) | HistoryPlace::Scheduled(Some(_))));
        for event in page.events {
            *counts.entry(event.left).or_insert(0_u64) += 1;
        }
    }
    if counts.is_empty() {
        return Ok(());
    }
    let of = |left| counts.get(&left).copied().unwrap_or(0);
    tracing::info!(
        published = of(Left::Published),
        claimed = of(Left::Claimed),
        overdue = of(Left::Overdue),
        at_least = !is_all,
        "npm left these unfinished before a hub of this kind first served the database: nobody gets them unless \
         `eventflow adopt` is run; its --dry-run counts them"
    );
    Ok(())
}
