//! Subscriptions: every subscriber gets the event, live.

use std::sync::Arc;

use super::{
    Handlers, SubscribeError, Subscriber,
    command::{Failure, Key, Remark, Unanswered},
    fleet::Fleet,
    lane::{Lane, Taken},
};
use crate::event::{Event, Fault, Position, Uid};

/// What a subscription yields.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Delivery {
    /// An event.
    Event {
        /// The event.
        event: Event,
        /// The hub's sequence number.
        seq: u64,
    },
    /// The reader was too slow and its queue was full: what came after the last event was left out. The
    /// subscription goes on; a [`Delivery::Gap`] follows.
    Lagged,
    /// Events with a sequence number above `from` and up to `to` may be missing: the link was lost, or the
    /// subscription lagged. Equal: nothing was missed. A subscription that was made by
    /// [`Spoke::subscribe_from`](super::Spoke::subscribe_from) has no such gaps: it goes on where it ended.
    Gap {
        /// The last event that was yielded, or where the subscription began.
        from: u64,
        /// Where the subscription goes on, never below `from`.
        to: u64,
    },
    /// Events that the subscription asked for, by where it begins, are gone: the hub's retention removed them. Comes
    /// before the events that are left; again if the subscription is restored within that range.
    Removed {
        /// The sequence number of the first that is gone.
        from: u64,
        /// That of the last. Between them may be others that are still there, and follow.
        to: u64,
        /// How many are gone, of any name in the domains of the subscription; a subscription that begins within a batch of
        /// them may have had some of these.
        events: u64,
    },
}

/// A delivery on its way to the reader.
#[derive(Debug)]
pub(super) struct Arrival {
    /// None: only where the reader stands changes.
    pub(super) delivery: Option<Delivery>,
    /// Whose it is.
    pub(super) hub: Option<Uid>,
    /// Where the reader stands there once it has it.
    pub(super) seq: Option<u64>,
}

/// A subscription, restored after each lost link. Dropping it unsubscribes.
///
/// It holds at most [`subscription_events`](super::SpokeConfig::subscription_events) and
/// [`subscription_bytes`](super::SpokeConfig::subscription_bytes) for a slow reader. When that is full it is
/// taken off the hub, so that no other use of the link has to wait for this reader; after what is held a live one
/// yields [`Delivery::Lagged`], subscribes again and yields a [`Delivery::Gap`]. One that was made by
/// [`Spoke::subscribe_from`](super::Spoke::subscribe_from) goes on behind what it holds: after a lost link and for a slow
/// reader it yields each event once all the same.
#[derive(Debug)]
#[must_use = "dropping a subscription ends it"]
pub struct Subscription {
    key: Key,
    lane: Arc<Lane<Arrival>>,
    fleet: Arc<Fleet>,
    /// It began at a point of its own, and goes on where it ended.
    replays: bool,
    position: Position,
    /// Where the last delivery came from.
    hub: Option<Uid>,
    closed: bool,
}

impl Subscription {
    pub(super) fn new(key: Key, lane: Arc<Lane<Arrival>>, fleet: Arc<Fleet>, replays: bool) -> Self {
        Self { key, lane, fleet, replays, position: Position::default(), hub: None, closed: false }
    }

    /// The hubs have confirmed it, from here on.
    pub(super) fn begins(&mut self, position: Position) {
        self.position = position;
    }

    /// Where the reader stands: behind what [`Subscription::next`] gave last, or where the subscription began. Another one
    /// that is made [from](super::Spoke::subscribe_from) here, by whatever program, goes on behind it.
    #[must_use]
    pub fn position(&self) -> &Position {
        &self.position
    }

    /// The hub that gave what [`Subscription::next`] returned last: the numbers of an event, of a gap and of removed events
    /// are that hub's. None before the first of them, and after [`Delivery::Lagged`].
    #[must_use]
    pub fn hub(&self) -> Option<&str> {
        self.hub.as_deref()
    }

    /// Handles what comes by handlers, as [`Spoke::subscribe_with`](super::Spoke::subscribe_with) does.
    pub fn handle(self, handlers: Handlers) -> Subscriber {
        Subscriber::start(self, handlers)
    }

    /// Waits for the next event or gap. None: the subscription has ended, [`Subscription::fault`] says why.
    ///
    /// Safe to cancel: nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<Delivery> {
        loop {
            match self.lane.take().await {
                Taken::Item(Arrival { delivery, hub, seq }) => {
                    if let (Some(hub), Some(seq)) = (&hub, seq) {
                        self.position.reach(hub, seq);
                    }
                    if let Some(delivery) = delivery {
                        self.hub = hub;
                        return Some(delivery);
                    }
                }
                Taken::Lagged => {
                    self.fleet.remark(Remark::Drained(self.key));
                    if !self.replays {
                        self.hub = None;
                        return Some(Delivery::Lagged);
                    }
                }
                Taken::Closed => return None,
            }
        }
    }

    /// Why it ended by itself, if it did: the hub refused to restore it, or the spoke was closed.
    #[must_use]
    pub fn fault(&self) -> Option<Fault> {
        self.lane.fault()
    }

    /// Unsubscribes and waits for the word of all hubs.
    ///
    /// # Errors
    /// If a hub doesn't answer in time. Nothing is delivered any more in any case.
    pub async fn close(mut self) -> Result<(), SubscribeError> {
        self.closed = true;
        match self.fleet.unsubscribe(self.key).await {
            Ok(()) | Err(Unanswered::Failed(Failure::Closed(_) | Failure::LinkLost(_))) => Ok(()),
            Err(unanswered) => Err(unanswered.into()),
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if !self.closed {
            self.lane.close(None);
            self.fleet.remark(Remark::Subscription(self.key));
        }
    }
}

impl From<Unanswered> for SubscribeError {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::TimedOut(waited) => SubscribeError::TimedOut { waited },
            Unanswered::Failed(Failure::Refused(fault)) => SubscribeError::Refused(fault),
            Unanswered::Failed(Failure::Closed(fault)) => SubscribeError::Closed(fault),
            Unanswered::Failed(Failure::LinkLost(fault)) => SubscribeError::Refused(fault),
        }
    }
}
