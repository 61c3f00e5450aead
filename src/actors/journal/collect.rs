//! Events that applications have put into the database: what the journal makes of those that the collector found.

use std::sync::Arc;

use actix::Handler;
use tokio::sync::oneshot;

use super::{
    Journal,
    batch::{ReplyTo, Told, mismatch},
    sequence::Sequence,
};
use crate::{
    actors::{clock::now_millis, dispatched::Dispatched, mail::mail},
    event::{EventId, Fault},
    metrics::HubMetrics,
    store::{Collected, CollectedAs, Collecting, NotTaken, StoreError, Taken, Write, Written},
};

/// Takes events that nobody has, in one transaction. One at a time.
#[derive(Debug)]
pub struct Collect {
    /// The events, in the order in which they are to be dispatched.
    pub events: Vec<EventId>,
    /// Their data, in bytes.
    pub bytes: usize,
    /// The most bytes that the data of one may have.
    pub data_bytes: usize,
    /// Gets what became of each, in their order.
    pub done: oneshot::Sender<Result<Vec<(EventId, Fate)>, Fault>>,
}
mail!(Collect => ());

/// What became of an event that was to be collected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// This hub has it, and dispatches it.
    Taken,
    /// A hub had it before.
    Before,
    /// Nobody is to have it now.
    NotTaken(NotTaken),
    /// It breaks the rules for events.
    Invalid(String),
}

impl Fate {
    /// The word for it on the wire.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Before => "published",
            Self::NotTaken(NotTaken::Unknown) => "unknown",
            Self::NotTaken(NotTaken::Unpublished) => "unpublished",
            Self::NotTaken(NotTaken::Scheduled) => "scheduled",
            Self::Invalid(_) => "invalid",
        }
    }
}

impl Handler<Collect> for Journal {
    type Result = ();

    fn handle(&mut self, message: Collect, ctx: &mut Self::Context) {
        let Collect { events, bytes, data_bytes, done } = message;
        if let Some(fault) = self.refusal() {
            // A collector that is gone is part of a core that restarts.
            let _ = done.send(Err(fault));
            return;
        }
        let events = events.into_iter().map(|id| Collecting { id, seq: 0 }).collect();
        let write = Write::Collect { events, hub: self.config.hub.clone(), at: now_millis(), data_bytes };
        self.enqueue(write, bytes, ReplyTo::Collector(done));
        self.pump(ctx);
    }
}

/// Gives places to what is collected, in its order; those that aren't taken leave holes.
pub(super) fn place(events: &mut [Collecting], sequence: &mut Sequence, now: u64) {
    for collecting in events {
        collecting.seq = sequence.next(now).seq;
    }
}

/// What is taken is dispatched as what npm spokes publish.
pub(super) fn collected(
    result: Result<Written, StoreError>,
    told: &mut Told,
    metrics: &HubMetrics,
) -> Result<Vec<(EventId, Fate)>, Fault> {
    let all = match result {
        Ok(Written::Collected(all)) => all,
        Ok(other) => return Err(mismatch(&other)),
        Err(error) => return Err(error.into()),
    };
    let fate = |Collected { id, seq, what }| {
        let fate = match what {
            CollectedAs::Taken(taken) => {
                // Here, since a collector that restarts meanwhile doesn't hear of it.
                metrics.collected.inc();
                dispatch(*taken, seq, told, metrics);
                Fate::Taken
            }
            CollectedAs::Before => Fate::Before,
            CollectedAs::NotTaken(why) => Fate::NotTaken(why),
            CollectedAs::Invalid(reason) => Fate::Invalid(reason),
        };
        (id, fate)
    };
    Ok(all.into_iter().map(fate).collect())
}

/// Hands on what was taken, as far as this hub has it.
pub(super) fn dispatch(taken: Taken, seq: u64, told: &mut Told, metrics: &HubMetrics) {
    let Taken { event, broadcasts, serves, claimed } = taken;
    if broadcasts && (claimed || !serves) {
        told.npm.push(Arc::new(Dispatched::new(event.clone(), seq)));
    }
    if serves {
        metrics.published.inc();
        let shared = claimed || !broadcasts;
        let dispatched = if shared { Dispatched::shared(event, seq) } else { Dispatched::new(event, seq) };
        told.committed.push(Arc::new(dispatched));
    }
}
