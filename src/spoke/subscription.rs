//! Subscriptions: every subscriber gets the event, live.

use std::sync::Arc;

use super::{
    SubscribeError,
    command::{Command, Failure, Key, Port, Remark, Unanswered},
    lane::{Lane, Taken},
};
use crate::event::{Event, Fault};

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
    /// subscription lagged. Equal: nothing was missed. There is no replay of all that a hub took; what is
    /// missing can be read process by process, by [`Spoke::log`](super::Spoke::log).
    Gap {
        /// The last event that was yielded, or where the subscription began.
        from: u64,
        /// Where the subscription goes on, never below `from`.
        to: u64,
    },
}

/// A live subscription, restored after each lost link. Dropping it unsubscribes.
///
/// It holds at most [`subscription_events`](super::SpokeConfig::subscription_events) and
/// [`subscription_bytes`](super::SpokeConfig::subscription_bytes) for a slow reader. When that is full it is
/// taken off the hub, so that no other use of the link has to wait for this reader; after what is held it
/// yields [`Delivery::Lagged`], subscribes again and yields a [`Delivery::Gap`].
#[derive(Debug)]
#[must_use = "dropping a subscription ends it"]
pub struct Subscription {
    key: Key,
    lane: Arc<Lane<Delivery>>,
    port: Arc<Port>,
    closed: bool,
}

impl Subscription {
    pub(super) fn new(key: Key, lane: Arc<Lane<Delivery>>, port: Arc<Port>) -> Self {
        Self { key, lane, port, closed: false }
    }

    /// Waits for the next event or gap. None: the subscription has ended, [`Subscription::fault`] says why.
    ///
    /// Safe to cancel: nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<Delivery> {
        match self.lane.take().await {
            Taken::Item(delivery) => Some(delivery),
            Taken::Lagged => {
                self.port.remark(Remark::Drained(self.key));
                Some(Delivery::Lagged)
            }
            Taken::Closed => None,
        }
    }

    /// Why it ended by itself, if it did: the hub refused to restore it, or the spoke was closed.
    #[must_use]
    pub fn fault(&self) -> Option<Fault> {
        self.lane.fault()
    }

    /// Unsubscribes and waits for the hub's word.
    ///
    /// # Errors
    /// If the hub doesn't answer in time. Nothing is delivered any more in any case.
    pub async fn close(mut self) -> Result<(), SubscribeError> {
        self.closed = true;
        let key = self.key;
        match self.port.ask(|answer| Command::Unsubscribe { key, answer }).await {
            Ok(()) | Err(Unanswered::Failed(Failure::Closed(_) | Failure::LinkLost(_))) => Ok(()),
            Err(unanswered) => Err(unanswered.into()),
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if !self.closed {
            self.port.remark(Remark::Subscription(self.key));
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
