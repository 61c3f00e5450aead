//! Subscriptions over all links: what to restore, and where each one is.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use crate::{
    event::{Event, Fault, Pattern, Position, Uid},
    spoke::{
        Delivery,
        command::{Answering, Failure, Key, SubscribeCommand},
        lane::Lane,
        subscription::Arrival,
    },
    wire::{RemovedEvents, Req, Request, Since, Sub, SubscribeOptions},
};

/// All subscriptions of a spoke. A number ([`Sub`]) is given anew each time one is registered, so that what
/// still comes for an old one is known as such.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    all: BTreeMap<Key, Entry>,
    numbers: HashMap<Sub, Key>,
    /// The hub of the present link.
    hub: Option<Uid>,
    lagged: u64,
}

#[derive(Debug)]
struct Entry {
    domain: Pattern,
    name: Pattern,
    /// From where on, and once it has begun: where its reader stands. None: it is live.
    since: Option<Since>,
    /// A position in `since` is one of this hub's database.
    shared: bool,
    lane: Arc<Lane<Arrival>>,
    /// Its caller, until the hub has confirmed it for the first time.
    first: Option<Answering<Position>>,
    /// The hub has confirmed it, on this link or on one before.
    begun: bool,
    /// Where it stood at hubs that this link isn't known to lead to yet.
    left: Position,
    sub: Option<Sub>,
    /// Where its reader stands: the last event, or the position at which it began.
    last: Option<u64>,
    /// Off the hub until its reader has read what is there.
    lagging: bool,
}

impl Subscriptions {
    pub(super) fn add(&mut self, key: Key, subscribe: SubscribeCommand, first: Option<Answering<Position>>) {
        let SubscribeCommand { domain, name, since, shared, left, lane } = subscribe;
        let (begun, sub, last, lagging) = (false, None, None, false);
        let entry = Entry { domain, name, since, shared, lane, first, begun, left, sub, last, lagging };
        self.all.insert(key, entry);
    }

    /// The link is gone and others are there: nobody waits for its beginning on this one any more.
    pub(super) fn hand_over(&mut self, fault: &Fault) {
        for first in self.all.values_mut().filter_map(|entry| entry.first.take()) {
            // A caller that has gone away needs no answer.
            let _ = first.send(Err(Failure::LinkLost(fault.clone())));
        }
    }

    /// Forgets all of them; they go on elsewhere.
    pub(super) fn abandon(&mut self) {
        self.numbers.clear();
        self.all.clear();
    }

    /// Where each one stands at the hub of this link, for a later link to it.
    pub(super) fn standing(&self) -> Vec<(Key, Position)> {
        let Some(hub) = &self.hub else { return Vec::new() };
        let stands = |(key, entry): (&Key, &Entry)| Some((*key, Position::of(hub.clone(), entry.last?)));
        self.all.iter().filter_map(stands).collect()
    }

    /// There is a link to this hub.
    pub(super) fn link_up(&mut self, hub: &str) {
        self.hub = Some(Uid::from_stored(hub.to_owned()));
    }

    /// All that are to be registered on a new link.
    pub(super) fn wanted(&self) -> Vec<Key> {
        self.all
            .iter()
            .filter(|(_, entry)| entry.sub.is_none() && !entry.lagging && !entry.lane.is_closed())
            .map(|(key, _)| *key)
            .collect()
    }

    /// Registers one under this number. None if it is gone, or its reader has.
    pub(super) fn register(&mut self, key: Key, req: Req, sub: Sub) -> Option<Request> {
        let entry = self.all.get_mut(&key)?;
        if entry.lane.is_closed() {
            self.all.remove(&key);
            return None;
        }
        entry.sub = Some(sub);
        self.numbers.insert(sub, key);
        if let Some(hub) = &self.hub {
            entry.join(hub);
        }
        let options = SubscribeOptions { from: entry.since.clone() };
        Some(Request::Subscribe { req, sub, domain: entry.domain.clone(), name: entry.name.clone(), options })
    }

    /// The hub has confirmed it, from this position on. True: its reader has gone or lags, it is to be taken off.
    pub(super) fn confirmed(&mut self, key: Key, position: u64) -> bool {
        let hub = self.hub.clone();
        let Some(entry) = self.all.get_mut(&key) else { return false };
        let at = hub.map(|hub| (hub, position));
        if let Some((hub, seq)) = at.as_ref().filter(|_| entry.since.is_some()) {
            entry.reach(hub, *seq);
        }
        if entry.lane.is_closed() {
            return true;
        }
        let first = entry.first.take();
        if first.is_none() && !entry.begun {
            // One more hub: what the reader hears of it is only where it stands there.
            entry.begun = true;
            entry.last = entry.last.max(Some(position));
            return !entry.push(None, 0, at);
        }
        entry.begun = true;
        if let Some(first) = first {
            entry.last = entry.last.max(Some(position));
            let position = match (&entry.since, at) {
                (Some(Since::Position(position)), _) => position.clone(),
                (_, Some((hub, seq))) => Position::of(hub, seq),
                (_, None) => Position::default(),
            };
            // A caller that has gone away drops the subscription.
            let _ = first.send(Ok(position));
            return false;
        }
        if entry.since.is_some() {
            // It goes on where its reader stands.
            return false;
        }
        let from = entry.last.unwrap_or(position);
        // A hub that has just started may stand before an event that it sent last.
        let to = position.max(from);
        if entry.push(Some(Delivery::Gap { from, to }), 0, at) {
            entry.last = Some(position);
            return false;
        }
        // No room even for the gap: its reader is still where it was.
        self.lagged += 1;
        true
    }

    /// Whether its caller was told that it is there.
    pub(super) fn is_confirmed(&self, key: Key) -> bool {
        self.all.get(&key).is_some_and(|entry| entry.first.is_none())
    }

    /// The hub refused it: this is its end, if its caller doesn't know better.
    pub(super) fn refused(&mut self, key: Key, fault: Fault) {
        let Some(entry) = self.remove(key) else { return };
        match entry.first {
            // A caller that has gone away needs no answer.
            Some(first) => _ = first.send(Err(Failure::Refused(fault))),
            None => entry.lane.close(Some(fault)),
        }
    }

    /// An event for these numbers. Gives those that lag now: they are to be taken off the hub.
    pub(super) fn deliver(&mut self, subs: &[Sub], seq: u64, event: &Event) -> Vec<Key> {
        let mut lagging = Vec::new();
        for sub in subs {
            let Some(key) = self.numbers.get(sub) else { continue };
            let Some(entry) = self.all.get_mut(key).filter(|entry| !entry.lagging) else { continue };
            let at = self.hub.clone().map(|hub| (hub, seq));
            if entry.push(Some(Delivery::Event { event: event.clone(), seq }), event.weight(), at) {
                // Events from before the position may come late, to a subscriber of the first seconds.
                entry.last = entry.last.max(Some(seq));
            } else {
                self.lagged += u64::from(!entry.lane.is_closed());
                lagging.push(*key);
            }
        }
        lagging
    }

    /// Events that this number asked for are gone. Gives its key if it lags now: it is to be taken off the hub.
    pub(super) fn removed(&mut self, sub: Sub, removed: RemovedEvents) -> Option<Key> {
        let key = *self.numbers.get(&sub)?;
        let entry = self.all.get_mut(&key).filter(|entry| !entry.lagging)?;
        let RemovedEvents { from, to, events } = removed;
        let removed = Arrival {
            delivery: Some(Delivery::Removed { from, to, events }),
            hub: self.hub.clone(),
            seq: None,
        };
        if entry.hand(removed, 0) {
            return None;
        }
        self.lagged += 1;
        Some(key)
    }

    /// Its number is free: nothing that comes for it is taken any more.
    pub(super) fn unregister(&mut self, key: Key) -> Option<Sub> {
        let sub = self.all.get_mut(&key)?.sub.take()?;
        self.numbers.remove(&sub);
        Some(sub)
    }

    /// Its reader has caught up. True: it is to be registered again.
    pub(super) fn drained(&mut self, key: Key) -> bool {
        match self.all.get_mut(&key) {
            Some(entry) if entry.lagging => {
                entry.lagging = false;
                true
            }
            _ => false,
        }
    }

    /// Forgets one; gives the number under which the hub knows it.
    pub(super) fn forget(&mut self, key: Key) -> Option<Sub> {
        self.remove(key).and_then(|entry| entry.sub)
    }

    pub(super) fn link_down(&mut self) {
        self.numbers.clear();
        for entry in self.all.values_mut() {
            entry.sub = None;
        }
    }

    pub(super) fn close(&mut self, fault: &Fault) {
        self.numbers.clear();
        for entry in std::mem::take(&mut self.all).into_values() {
            entry.lane.close(Some(fault.clone()));
            if let Some(first) = entry.first {
                // A caller that has gone away needs no answer.
                let _ = first.send(Err(Failure::Closed(fault.clone())));
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn lagged(&self) -> u64 {
        self.lagged
    }

    fn remove(&mut self, key: Key) -> Option<Entry> {
        let entry = self.all.remove(&key)?;
        if let Some(sub) = entry.sub {
            self.numbers.remove(&sub);
        }
        Some(entry)
    }
}

impl Entry {
    /// It is about to be registered at this hub: if it stood there before, it goes on from there.
    fn join(&mut self, hub: &Uid) {
        if self.last.is_none()
            && let Some(seq) = self.left.seq(hub)
        {
            self.last = Some(seq);
            self.begun = true;
            if self.since.is_some() {
                self.reach(hub, seq);
            }
        }
        match &mut self.since {
            Some(Since::Position(position)) if self.shared && position.seq(hub).is_none() => {
                position.reach(hub, 0);
            }
            _ => {}
        }
    }

    /// Hands it to the reader, who then stands there. False: there is no room, it lags from here on.
    fn push(&mut self, delivery: Option<Delivery>, weight: usize, at: Option<(Uid, u64)>) -> bool {
        let reached = at.clone().filter(|_| self.since.is_some());
        let (hub, seq) = at.unzip();
        if !self.hand(Arrival { delivery, hub, seq }, weight) {
            return false;
        }
        if let Some((hub, seq)) = reached {
            self.reach(&hub, seq);
        }
        true
    }

    fn hand(&mut self, arrival: Arrival, weight: usize) -> bool {
        if self.lane.push(arrival, weight).is_ok() {
            return true;
        }
        self.lagging = true;
        if !self.lane.is_closed() {
            self.lane.lag();
            if self.since.is_none() {
                tracing::warn!(domain = self.domain.as_str(), "a subscription lags: its reader is too slow");
            }
        }
        false
    }

    /// From now on it is restored from here.
    fn reach(&mut self, hub: &Uid, seq: u64) {
        match &mut self.since {
            Some(Since::Position(position)) => position.reach(hub, seq),
            since => *since = Some(Since::Position(Position::of(hub.clone(), seq))),
        }
    }
}
