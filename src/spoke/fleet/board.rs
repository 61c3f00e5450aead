//! How all links stand, for whoever looks.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use super::state::LinkId;
use crate::spoke::{LinkStatus, Status};

/// Written by each link's task when something of it has changed.
#[derive(Debug, Default)]
pub(in crate::spoke) struct Board {
    stands: Mutex<Stands>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Stands {
    links: BTreeMap<LinkId, Stand>,
    /// What links counted that are no more.
    past: Status,
    /// Publishes that wait for any link.
    parked: usize,
}

#[derive(Debug)]
struct Stand {
    address: Arc<str>,
    status: Status,
    /// Its task has ended, and so do all others.
    ended: bool,
}

impl Board {
    pub(super) fn add(&self, link: LinkId, address: Arc<str>, status: Status) {
        self.stands().links.insert(link, Stand { address, status, ended: false });
        self.changed();
    }

    pub(super) fn report(&self, link: LinkId, status: Status) {
        if let Some(stand) = self.stands().links.get_mut(&link) {
            stand.status = status;
        }
        self.changed();
    }

    /// A link is no more.
    pub(super) fn leave(&self, link: LinkId) {
        let mut stands = self.stands();
        if let Some(last) = stands.links.remove(&link) {
            stands.past.count(&last.status);
        }
        drop(stands);
        self.changed();
    }

    /// A link has ended, as all others do.
    pub(super) fn end(&self, link: LinkId) {
        if let Some(stand) = self.stands().links.get_mut(&link) {
            stand.ended = true;
        }
        self.changed();
    }

    pub(super) fn parked(&self, parked: usize) {
        let before = std::mem::replace(&mut self.stands().parked, parked);
        if before != parked {
            self.changed();
        }
    }

    /// Whoever waits looks again.
    pub(super) fn changed(&self) {
        self.news.notify_waiters();
    }

    /// How it stands now.
    pub(in crate::spoke) fn status(&self) -> Status {
        let stands = self.stands();
        let closed = stands.links.values().all(|stand| stand.ended);
        let mut all = Status { closed, ..Status::default() };
        all.count(&stands.past);
        for Stand { address, status: link, .. } in stands.links.values() {
            all.count(link);
            all.hub = all.hub.or_else(|| link.hub.clone());
            all.trouble = all.trouble.or_else(|| link.trouble.clone());
            all.publishes_in_flight += link.publishes_in_flight;
            all.publishes_waiting += link.publishes_waiting;
            all.subscriptions = all.subscriptions.max(link.subscriptions);
            all.consumers = all.consumers.max(link.consumers);
            all.claims_held += link.claims_held;
            all.links.push(LinkStatus {
                address: address.clone(),
                hub: link.hub.clone(),
                trouble: link.trouble.clone(),
                links_lost: link.links_lost,
                publishes_in_flight: link.publishes_in_flight,
                claims_held: link.claims_held,
            });
        }
        all.publishes_waiting += stands.parked;
        if all.hub.is_some() {
            all.trouble = None;
        }
        all
    }

    /// Waits until it stands so, or the spoke has ended.
    pub(in crate::spoke) async fn when(&self, mut wanted: impl FnMut(&Status) -> bool) -> Status {
        loop {
            let news = self.news.notified();
            tokio::pin!(news);
            // From here on nothing is missed.
            news.as_mut().enable();
            let status = self.status();
            if wanted(&status) || status.closed {
                return status;
            }
            news.await;
        }
    }

    /// Waits for the next change.
    pub(super) fn news(&self) -> tokio::sync::futures::Notified<'_> {
        self.news.notified()
    }

    fn stands(&self) -> MutexGuard<'_, Stands> {
        // No code that can panic runs under the lock.
        self.stands.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Status {
    /// Adds what only ever grows.
    fn count(&mut self, other: &Self) {
        self.links_lost += other.links_lost;
        self.publishes_retried += other.publishes_retried;
        self.lagged += other.lagged;
        self.claims_lost += other.claims_lost;
    }
}
