//! A committed event on its way to links, encoded once for all of them.

use std::sync::OnceLock;

use bytes::Bytes;

use crate::{event::Event, wire};

/// A committed event with its place in this hub's sequence. Shared by everyone who hands it on.
#[derive(Debug)]
pub struct Dispatched {
    /// The event.
    pub event: Event,
    /// Its sequence number at this hub.
    pub seq: u64,
    /// Its sequence number at the hub that dispatched it: another one if this hub has adopted it.
    pub original: u64,
    /// npm spokes hear of it from another hub, or have heard of it: whoever of ours is to get it claims it in the
    /// database first.
    pub shared: bool,
    tail: OnceLock<Bytes>,
    npm: OnceLock<Bytes>,
}

impl Dispatched {
    /// Takes a committed event.
    #[must_use]
    pub fn new(event: Event, seq: u64) -> Self {
        Self { event, seq, original: seq, shared: false, tail: OnceLock::new(), npm: OnceLock::new() }
    }

    /// The same for one that npm spokes may claim already.
    #[must_use]
    pub fn shared(event: Event, seq: u64) -> Self {
        Self { shared: true, ..Self::new(event, seq) }
    }

    /// The same for one that another hub has dispatched under another number, and that this one has adopted.
    #[must_use]
    pub fn adopted(event: Event, seq: u64, original: u64) -> Self {
        Self { original, ..Self::new(event, seq) }
    }

    /// The units that every v1 delivery of it ends with.
    pub fn tail(&self) -> &Bytes {
        self.tail.get_or_init(|| wire::event_tail(&self.event))
    }

    /// The whole record for npm links.
    pub fn npm(&self) -> &Bytes {
        self.npm.get_or_init(|| wire::npm::publish(&self.event))
    }

    /// What it counts for in windows, credit and queues, in bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.event.weight()
    }
}
