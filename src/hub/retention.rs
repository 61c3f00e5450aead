//! What retention would do now, for the admin HTTP.

use std::sync::Arc;

use tokio::sync::Mutex;

use crate::{
    admin::{Outlook, PolicyOutlook, Retention},
    config::show_policy,
    event::{Domain, EventId, Fault, Policies, Uid},
    store::{Fate, Looked, Store},
};

/// Events of one page.
const PAGE: usize = 500;
/// Events that one look takes.
const MOST_LOOKED: u64 = 200_000;

/// Looks for a hub.
#[derive(Debug)]
pub struct Lookout {
    hub: Uid,
    store: Store,
    policies: Arc<Policies>,
    /// One at a time: a look reads much.
    turn: Mutex<()>,
}

impl Lookout {
    /// For this hub.
    #[must_use]
    pub fn new(hub: Uid, store: Store, policies: Arc<Policies>) -> Self {
        Self { hub, store, policies, turn: Mutex::new(()) }
    }

    async fn domain(&self, domain: &Domain, until: i64, now: i64, seen: &mut Seen<'_>) -> Result<(), Fault> {
        let mut after = None;
        loop {
            let place = (&self.hub, domain);
            let rows =
                self.store.keep_page(place, after.as_ref(), until, PAGE, (&self.policies, now)).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = Some(last.mark.clone());
            *seen.looked += rows.len() as u64;
            let goes: Vec<EventId> = ids(&rows, |fate| matches!(fate, Fate::Goes(_)));
            let answered = self.store.answered(&goes).await?;
            for row in &rows {
                match row.fate {
                    Fate::Goes(_) if answered.contains(&row.id) => seen.policy.answered += 1,
                    Fate::Goes(kept) => *seen.policy.goes.entry(kept.as_str()).or_default() += 1,
                    Fate::Expires => seen.policy.expires += 1,
                    Fate::Waits => seen.policy.waits += 1,
                    Fate::Due(_) | Fate::Open(_) | Fate::Stays => {}
                }
            }
            if rows.len() < PAGE || *seen.looked >= MOST_LOOKED {
                return Ok(());
            }
        }
    }
}

/// Where a look counts.
struct Seen<'a> {
    policy: &'a mut PolicyOutlook,
    looked: &'a mut u64,
}

fn ids(rows: &[Looked], wanted: impl Fn(&Fate) -> bool) -> Vec<EventId> {
    rows.iter().filter(|row| wanted(&row.fate)).map(|row| row.id.clone()).collect()
}

#[async_trait::async_trait]
impl Retention for Lookout {
    async fn outlook(&self) -> Result<Outlook, Fault> {
        let _turn = self.turn.lock().await;
        let now = crate::actors::clock::now_millis();
        let policies = self.policies.iter().map(|(pattern, policy)| PolicyOutlook {
            pattern: pattern.to_string(),
            settings: show_policy(policy),
            ..PolicyOutlook::default()
        });
        let mut outlook = Outlook { policies: policies.collect(), looked: 0, complete: true };
        let mut next = self.store.next_domain("").await?;
        while let Some(domain) = next {
            if outlook.looked >= MOST_LOOKED {
                outlook.complete = false;
                break;
            }
            let (place, policy) = self.policies.find(&domain);
            // That of the others is the last one.
            let place = place.unwrap_or(outlook.policies.len() - 1);
            if let (Some(until), Some(counts)) = (policy.least().begin(now), outlook.policies.get_mut(place))
            {
                counts.domains += 1;
                let mut seen = Seen { policy: counts, looked: &mut outlook.looked };
                self.domain(&domain, until, now, &mut seen).await?;
            }
            next = self.store.next_domain(&domain).await?;
        }
        Ok(outlook)
    }
}
