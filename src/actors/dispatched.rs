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
    tail: OnceLock<Bytes>,
    npm: OnceLock<Bytes>,
}

impl Dispatched {
    /// Takes a committed event.
    #[must_use]
    pub fn new(event: Event, seq: u64) -> Self {
        Self { event, seq, tail: OnceLock::new(), npm: OnceLock::new() }
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
