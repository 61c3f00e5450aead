//! Consumers over all links, and the claims of the present one.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;

use super::leases::{Held, Leases};
use crate::{
    event::{Event, Fault, code},
    spoke::{
        Claim, Hold,
        command::{Answering, ClaimId, ConsumeCommand, Failure, Key, Port},
    },
    wire::{ConsumeOptions, LinkLimits, Req, Request, Sub, Token},
};

/// All consumers of a spoke. As with subscriptions, a number is given anew at each registration.
#[derive(Debug, Default)]
pub(super) struct Consumers {
    all: BTreeMap<Key, Entry>,
    numbers: HashMap<Sub, Key>,
    /// Claims of this link that are not settled.
    pub(super) leases: Leases,
    /// The hub of this link is stopping: what comes is handed back.
    held_off: bool,
    lost: u64,
}

#[derive(Debug)]
struct Entry {
    consume: ConsumeCommand,
    /// Its caller, until the hub has confirmed it for the first time.
    first: Option<Answering<()>>,
    sub: Option<Sub>,
    /// The hub of this link has confirmed it.
    begun: bool,
    /// How long the hub of this link holds its claims without a word; none: as long as the link.
    lease: Option<Duration>,
    /// What comes for it is handed back.
    stopping: bool,
    /// Who waits for its stop.
    stops: Vec<Answering<()>>,
}

impl Entry {
    /// Ends it: its reader and those who wait for its stop are told.
    fn end(self, fault: Option<&Fault>) {
        self.consume.lane.close(fault.cloned());
        self.consume.lane.clear();
        let failure = || fault.map_or(Ok(()), |fault| Err(Failure::Closed(fault.clone())));
        for answer in self.stops.into_iter().chain(self.first) {
            // A caller that has gone away needs no answer.
            let _ = answer.send(failure());
        }
    }
}

impl Consumers {
    /// False: it is there already, and only its caller is new.
    pub(super) fn add(&mut self, key: Key, consume: ConsumeCommand, first: Option<Answering<()>>) -> bool {
        if let Some(entry) = self.all.get_mut(&key) {
            match first {
                // A caller that has gone away needs no answer.
                Some(first) if entry.begun => _ = first.send(Ok(())),
                first => entry.first = first,
            }
            return false;
        }
        let (sub, lease, stops) = (None, None, Vec::new());
        let entry = Entry { consume, first, sub, begun: false, lease, stopping: false, stops };
        self.all.insert(key, entry);
        true
    }

    /// The link is gone and others are there: nobody waits for its beginning on this one any more.
    pub(super) fn hand_over(&mut self, fault: &Fault) {
        for first in self.all.values_mut().filter_map(|entry| entry.first.take()) {
            // A caller that has gone away needs no answer.
            let _ = first.send(Err(Failure::LinkLost(fault.clone())));
        }
    }

    /// Forgets all of them; they go on elsewhere. Those that are stopping have stopped here.
    pub(super) fn abandon(&mut self) {
        self.numbers.clear();
        for answer in std::mem::take(&mut self.all).into_values().flat_map(|entry| entry.stops) {
            // A caller that has gone away needs no answer.
            let _ = answer.send(Ok(()));
        }
    }

    /// All that are to be registered on a new link.
    pub(super) fn wanted(&self) -> Vec<Key> {
        self.all
            .iter()
            .filter(|(_, entry)| entry.sub.is_none() && !entry.stopping)
            .map(|(key, _)| *key)
            .collect()
    }

    /// Registers one under this number. None if it is gone, or its reader has.
    pub(super) fn register(&mut self, key: Key, req: Req, sub: Sub, limits: &LinkLimits) -> Option<Request> {
        let entry = self.all.get_mut(&key)?;
        if entry.consume.lane.is_closed() {
            self.all.remove(&key);
            return None;
        }
        entry.sub = Some(sub);
        self.numbers.insert(sub, key);
        let ConsumeCommand { group, domain, name, options, .. } = &entry.consume;
        let credit = options.credit.min(limits.credit.max(1));
        let lease = options.lease.unwrap_or(limits.lease_ms);
        entry.lease = (lease > 0).then(|| Duration::from_millis(lease));
        Some(Request::Consume {
            req,
            sub,
            group: group.clone(),
            domain: domain.clone(),
            name: name.clone(),
            options: ConsumeOptions {
                credit,
                concurrency: options.concurrency.min(credit),
                ..options.clone()
            },
        })
    }

    /// The hub has confirmed it. True: its reader has gone, it is to be stopped.
    pub(super) fn confirmed(&mut self, key: Key) -> bool {
        let Some(entry) = self.all.get_mut(&key) else { return false };
        entry.begun = true;
        if let Some(first) = entry.first.take() {
            // A caller that has gone away drops the claims.
            let _ = first.send(Ok(()));
        }
        entry.consume.lane.is_closed()
    }

    /// Whether its caller was told that it is there, and it isn't stopping.
    pub(super) fn is_confirmed(&self, key: Key) -> bool {
        self.all.get(&key).is_some_and(|entry| entry.first.is_none() && !entry.stopping)
    }

    /// Its number is free.
    pub(super) fn unregister(&mut self, key: Key) {
        if let Some(sub) = self.all.get_mut(&key).and_then(|entry| entry.sub.take()) {
            self.numbers.remove(&sub);
        }
    }

    /// The hub refused it: this is its end, on all links.
    pub(super) fn refused(&mut self, key: Key, fault: Fault) {
        if let Some(entry) = self.remove(key) {
            entry.consume.lane.close(Some(fault.clone()));
            if let Some(first) = entry.first {
                // A caller that has gone away needs no answer.
                let _ = first.send(Err(Failure::Refused(fault)));
            }
        }
    }

    /// The hub ends it: its binding or its group was removed. Of a removed group nothing that it holds counts any more: what
    /// nobody has begun vanishes.
    pub(super) fn ended(&mut self, sub: Sub, fault: Fault) {
        if let Some(key) = self.numbers.get(&sub).copied() {
            if let Some(entry) = self.all.get(&key).filter(|_| fault.code == code::GROUP_NOT_FOUND) {
                entry.consume.lane.clear();
            }
            self.refused(key, fault);
        }
    }

    /// A claim has come. False: nobody takes it, it is to be handed back. A claim that doesn't fit (the hub
    /// gave more than the credit) hands itself back when it is dropped here.
    pub(super) fn claimed(
        &mut self,
        sub: Sub,
        id: ClaimId,
        (attempt, seq, event): (u32, u64, Event),
        port: &Arc<Port>,
        now: Instant,
    ) -> bool {
        let hold = Hold::new();
        let found = self.numbers.get(&sub).and_then(|key| Some((*key, self.all.get(key)?)));
        let (key, lease) = found.map_or((0, None), |(key, entry)| (key, entry.lease));
        self.leases.add(id.token, key, hold.clone(), lease, now);
        // Its reader may have ended by what another hub said.
        let takes =
            |(_, entry): &(Key, &Entry)| !entry.stopping && !self.held_off && !entry.consume.lane.is_closed();
        let Some((_, Entry { consume, .. })) = found.filter(takes) else { return false };
        let weight = event.weight();
        drop(consume.lane.push(Claim::new(event, seq, attempt, id, port.clone(), hold), weight));
        true
    }

    /// A claim is being settled: gives it if it is held; from here on it isn't.
    pub(super) fn settle(&mut self, token: Token) -> Option<Held> {
        self.leases.take(token)
    }

    /// The hub has given it away: whoever works on it is told; if nobody does yet, nobody will.
    pub(super) fn lose(&mut self, token: Token) {
        let Some(held) = self.leases.take(token) else { return };
        held.hold.lose();
        if let Some(entry) = self.all.get(&held.key) {
            entry.consume.lane.discard(Claim::is_lost);
        }
    }

    /// The hub is stopping: what nobody has pulled is handed back, and so is what still comes on this link.
    pub(super) fn hold_off(&mut self, port: &Arc<Port>) {
        self.held_off = true;
        self.all.values().for_each(|entry| entry.consume.lane.discard(|claim| claim.is_of(port)));
    }

    /// A claim was settled too late.
    pub(super) fn lost(&mut self) {
        self.lost += 1;
    }

    /// No more claims for it; those that wait are handed back. Gives the number under which the hub is to be
    /// asked to stop it; what the hub doesn't know has stopped.
    pub(super) fn stop(&mut self, key: Key, answer: Option<Answering<()>>) -> Option<Sub> {
        let Some(entry) = self.all.get_mut(&key) else {
            // A caller that has gone away needs no answer.
            let _ = answer.map(|answer| answer.send(Ok(())));
            return None;
        };
        entry.stops.extend(answer);
        if entry.sub.is_none() {
            self.stopped(key);
            return None;
        }
        entry.consume.lane.clear();
        if std::mem::replace(&mut entry.stopping, true) { None } else { entry.sub }
    }

    /// It has stopped.
    pub(super) fn stopped(&mut self, key: Key) {
        if let Some(entry) = self.remove(key) {
            entry.end(None);
        }
    }

    pub(super) fn keys(&self) -> Vec<Key> {
        self.all.keys().copied().collect()
    }

    /// Claims of a lost link are void. Those that nobody has pulled vanish; consumers that were stopping have
    /// stopped.
    pub(super) fn link_down(&mut self) {
        self.numbers.clear();
        self.leases.lose_all();
        self.held_off = false;
        let (stopping, going_on): (BTreeMap<_, _>, _) =
            std::mem::take(&mut self.all).into_iter().partition(|(_, entry)| entry.stopping);
        self.all = going_on;
        stopping.into_values().for_each(|entry| entry.end(None));
        for entry in self.all.values_mut() {
            entry.sub = None;
            entry.begun = false;
            entry.consume.lane.discard(Claim::is_lost);
        }
    }

    pub(super) fn close(&mut self, fault: &Fault) -> usize {
        self.numbers.clear();
        std::mem::take(&mut self.all).into_values().for_each(|entry| entry.end(Some(fault)));
        self.leases.lose_all()
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn held(&self) -> usize {
        self.leases.len()
    }

    pub(super) fn lost_count(&self) -> u64 {
        self.lost
    }

    fn remove(&mut self, key: Key) -> Option<Entry> {
        let entry = self.all.remove(&key)?;
        if let Some(sub) = entry.sub {
            self.numbers.remove(&sub);
        }
        Some(entry)
    }
}
