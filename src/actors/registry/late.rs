//! Events that matched no link when they were dispatched, kept for a moment for a subscriber that comes late.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use serde::Serialize;

use crate::{
    actors::{dispatched::Dispatched, outlet::LinkId},
    event::Pattern,
};

/// The bounds of the late subscribers' ring.
#[derive(Debug, Clone, Copy)]
pub struct RingLimits {
    /// How long an event stays.
    pub window: Duration,
    /// How many stay at most; then the oldest goes.
    pub events: usize,
    /// How many bytes.
    pub bytes: usize,
}

/// The late subscribers' ring.
#[derive(Debug)]
pub struct Ring {
    limits: RingLimits,
    entries: VecDeque<Entry>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    at: Instant,
    event: Arc<Dispatched>,
    /// Links that have it already.
    given: HashSet<LinkId>,
}

/// How full the ring is.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct RingState {
    /// Events in it; those beyond the window go when the next one comes.
    pub events: usize,
    /// What they count for, in bytes.
    pub bytes: usize,
}

impl Ring {
    /// An empty ring.
    #[must_use]
    pub fn new(limits: RingLimits) -> Self {
        Self { limits, entries: VecDeque::new(), bytes: 0 }
    }

    /// Keeps an event that nobody saw.
    pub fn keep(&mut self, event: Arc<Dispatched>, now: Instant) {
        self.bytes += event.weight();
        self.entries.push_back(Entry { at: now, event, given: HashSet::new() });
        self.trim(now);
    }

    /// The events that a new subscription of `link` still gets, oldest first; each once per link.
    pub fn claim(
        &mut self,
        link: LinkId,
        domain: &Pattern,
        name: &Pattern,
        now: Instant,
    ) -> Vec<Arc<Dispatched>> {
        self.trim(now);
        self.entries
            .iter_mut()
            .filter(|entry| {
                domain.matches(&entry.event.event.domain) && name.matches(&entry.event.event.name)
            })
            .filter_map(|entry| entry.given.insert(link).then(|| entry.event.clone()))
            .collect()
    }

    /// How full it is.
    #[must_use]
    pub fn state(&self) -> RingState {
        RingState { events: self.entries.len(), bytes: self.bytes }
    }

    /// These sequence numbers are deleted.
    pub fn forget(&mut self, seqs: &HashSet<u64>) {
        let bytes = &mut self.bytes;
        self.entries.retain(|entry| {
            let stays = !seqs.contains(&entry.event.seq);
            if !stays {
                *bytes -= entry.event.weight();
            }
            stays
        });
    }

    fn trim(&mut self, now: Instant) {
        let too_old = |entry: &Entry| now.duration_since(entry.at) > self.limits.window;
        while self.entries.front().is_some_and(|entry| {
            too_old(entry) || self.entries.len() > self.limits.events || self.bytes > self.limits.bytes
        }) {
            if let Some(entry) = self.entries.pop_front() {
                self.bytes -= entry.event.weight();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Data, Domain, Event, EventId, Name, Pid};

    fn event(id: &str) -> Arc<Dispatched> {
        let event = Event {
            id: EventId::parse(id.to_owned()).unwrap(),
            timestamp: 0,
            domain: Domain::parse("d").unwrap(),
            name: Name::parse("n").unwrap(),
            pid: Pid::parse("p").unwrap(),
            rid: None,
            data: Data::parse("{}").unwrap(),
        };
        Arc::new(Dispatched::new(event, 1))
    }

    fn ids(events: &[Arc<Dispatched>]) -> Vec<&str> {
        events.iter().map(|event| event.event.id.as_str()).collect()
    }

    #[test]
    fn a_late_link_gets_what_is_young_enough_once() {
        let window = Duration::from_secs(5);
        let mut ring = Ring::new(RingLimits { window, events: 2, bytes: 1_000 });
        let start = Instant::now();
        let any = Pattern::any();
        ring.keep(event("a"), start);
        ring.keep(event("b"), start + window / 2);
        assert_eq!(ids(&ring.claim(LinkId(1), &any, &any, start + window)), ["a", "b"]);
        assert!(ring.claim(LinkId(1), &any, &any, start + window).is_empty(), "once per link");
        let other = Pattern::parse("x").unwrap();
        assert!(ring.claim(LinkId(2), &other, &any, start + window).is_empty());
        assert_eq!(ids(&ring.claim(LinkId(2), &any, &any, start + window * 5 / 4)), ["b"]);
        ring.keep(event("c"), start + window);
        ring.keep(event("d"), start + window);
        assert_eq!(ids(&ring.claim(LinkId(3), &any, &any, start + window)), ["c", "d"], "two at most");
        ring.forget(&HashSet::from([1]));
        assert!(ring.claim(LinkId(4), &any, &any, start + window).is_empty(), "deleted");
        assert_eq!(ring.bytes, 0);
    }
}
