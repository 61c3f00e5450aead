//! What a [`Group`] shows of itself.

use std::{cmp::Reverse, collections::HashMap};

use serde::Serialize;

use super::{Binding, Consumer, ConsumerKey, Group, LinkId};
use crate::actors::snapshot::MOST_ROWS;

/// A group in numbers, with the busiest of its bindings and consumers.
#[derive(Debug, Serialize)]
pub struct GroupState {
    /// Events that wait for a consumer; null until they were counted.
    pub pending: Option<u64>,
    /// Those of them that wait in memory, once for each binding that has them.
    pub in_memory: usize,
    /// Claims in somebody's hands or on their way to the database.
    pub in_flight: usize,
    /// The last sequence number that was dispatched.
    pub head: u64,
    /// Bindings there are.
    pub bindings: usize,
    /// Those with most in memory and in flight.
    pub busiest_bindings: Vec<BindingState>,
    /// Consumers there are.
    pub consumers: usize,
    /// Those that hold most.
    pub busiest_consumers: Vec<ConsumerState>,
}

/// One binding.
#[derive(Debug, Serialize)]
pub struct BindingState {
    domain: String,
    name: String,
    /// `idle` (no consumer), `live` (served from memory) or `lagging` (the database holds more).
    mode: &'static str,
    /// Events that wait in memory.
    in_memory: usize,
    #[serde(flatten)]
    load: Load,
}

/// What the consumers of one binding have together.
#[derive(Debug, Default, Clone, Copy, Serialize)]
struct Load {
    /// Consumers that take events.
    consumers: usize,
    /// Events that they hold un-acked.
    in_flight: usize,
    /// Events that they may hold un-acked.
    credit: usize,
}

/// One consumer.
#[derive(Debug, Serialize)]
pub struct ConsumerState {
    link: u64,
    sub: u32,
    uid: String,
    /// Events that it holds un-acked.
    in_flight: usize,
    /// What they count for, in bytes.
    in_flight_bytes: usize,
    /// Events that it may hold un-acked.
    credit: usize,
    /// Handlers that run at once at the client.
    concurrency: usize,
    /// Outcomes that are being recorded.
    unrecorded: usize,
    /// It gets no more events.
    stopped: bool,
}

impl Group {
    /// How it stands.
    #[must_use]
    pub fn state(&self) -> GroupState {
        GroupState {
            pending: self.pending(),
            in_memory: self.waiting(),
            in_flight: self.in_flight(),
            head: self.head,
            bindings: self.bindings.len(),
            busiest_bindings: self.busiest_bindings(),
            consumers: self.consumers.len(),
            busiest_consumers: self.busiest_consumers(),
        }
    }

    /// Events that the consumers of a link hold un-acked.
    #[must_use]
    pub fn held_by(&self, link: LinkId) -> usize {
        let consumers = self.keys_of(link).into_iter().filter_map(|key| self.consumers.get(&key));
        consumers.map(|consumer| consumer.held().count()).sum()
    }

    fn busiest_bindings(&self) -> Vec<BindingState> {
        let mut loads: HashMap<i64, Load> = HashMap::new();
        for consumer in self.consumers.values() {
            let load = loads.entry(consumer.binding).or_default();
            load.in_flight += consumer.held().count();
            if !consumer.stopped {
                load.consumers += 1;
                load.credit += consumer.credit();
            }
        }
        let load = |id: &i64| loads.get(id).copied().unwrap_or_default();
        let mut bindings: Vec<(&i64, &Binding)> = self.bindings.iter().collect();
        let busy = |(id, binding): &(&i64, &Binding)| binding.waiting() + load(id).in_flight;
        bindings.sort_unstable_by_key(|each| (Reverse(busy(each)), *each.0));
        bindings.truncate(MOST_ROWS);
        let state = |(id, binding): (&i64, &Binding)| BindingState {
            domain: binding.domain.as_str().to_owned(),
            name: binding.name.as_str().to_owned(),
            mode: binding.mode(),
            in_memory: binding.waiting(),
            load: load(id),
        };
        bindings.into_iter().map(state).collect()
    }

    fn busiest_consumers(&self) -> Vec<ConsumerState> {
        let mut consumers: Vec<(&ConsumerKey, &Consumer)> = self.consumers.iter().collect();
        consumers.sort_unstable_by_key(|(key, consumer)| (Reverse(consumer.held().count()), **key));
        consumers.truncate(MOST_ROWS);
        let state = |(key, consumer): (&ConsumerKey, &Consumer)| ConsumerState {
            link: key.link.0,
            sub: key.sub,
            uid: consumer.uid.to_string(),
            in_flight: consumer.held().count(),
            in_flight_bytes: consumer.held_bytes(),
            credit: consumer.credit(),
            concurrency: consumer.concurrency,
            unrecorded: consumer.unrecorded(),
            stopped: consumer.stopped,
        };
        consumers.into_iter().map(state).collect()
    }
}
