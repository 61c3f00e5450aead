//! Consuming: one consumer of a group gets the event.

use std::{sync::Arc, time::Duration};

use super::{
    Claim, ConsumeError,
    command::{ConsumeCommand, Failure, Key, Remark, Unanswered},
    fleet::Fleet,
    lane::{Lane, Taken},
};
use crate::{
    event::{Fault, Group, Pattern},
    wire::{ConsumeOptions, StartAt, lease_ms},
};

/// What to consume and how much at once.
///
/// ```
/// use std::time::Duration;
/// use eventflow::spoke::{Consume, StartAt};
///
/// let consume = Consume::new("orders", "created").concurrency(4).credit(64);
/// let billing = Consume::new("orders", "*").group("billing").from(StartAt::All).lease(Duration::from_secs(60));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "consuming begins with `Spoke::consume` or `Spoke::claims`"]
pub struct Consume {
    group: Option<String>,
    domain: String,
    name: String,
    credit: u32,
    concurrency: u32,
    from: Option<StartAt>,
    lease: Option<Duration>,
    handler_timeout: Option<Duration>,
}

impl Consume {
    /// Events whose domain and name match these patterns, in the default group, one handler at a time. The
    /// patterns are checked when consuming begins.
    pub fn new(domain: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            group: None,
            domain: domain.into(),
            name: name.into(),
            credit: 64,
            concurrency: 1,
            from: None,
            lease: None,
            handler_timeout: None,
        }
    }

    /// Shares the work with this group rather than with the default one. The first consumer with a group's name makes
    /// it; each group has an outcome of its own for every event.
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// How many events may be under way at once, at least 1 (default). Of what a lost link returns, the hub
    /// counts as many as failed attempts.
    pub fn concurrency(mut self, handlers: u32) -> Self {
        self.concurrency = handlers.max(1);
        self
    }

    /// How many events the hub hands out un-acked, waiting ones included: at least the concurrency, at most
    /// what the hub allows. Default 64.
    pub fn credit(mut self, events: u32) -> Self {
        self.credit = events.max(1);
        self
    }

    /// Where a named group starts in what is stored (all, a [`Timestamp`](super::Timestamp), or after an event), if no consumer of it asked for these events before; by default
    /// with what comes from now on. A binding that exists stays as it is.
    pub fn from(mut self, start: impl Into<StartAt>) -> Self {
        self.from = Some(start.into());
        self
    }

    /// How long the hub lets a claim without a word of this program be, 1 second to 1 hour (else the consumer is refused), before it offers the
    /// event to somebody else; by default as the hub says. It bounds how long an event waits whose consumer hangs, not
    /// how long a handler may take: the lease is extended by itself for as long as this program lives.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// How long a handler may take. After that its future is dropped and the event has failed, with a reason that says
    /// so. By default as long as it likes. Of no effect on [`Spoke::claims`](super::Spoke::claims).
    pub fn handler_timeout(mut self, timeout: Duration) -> Self {
        self.handler_timeout = Some(timeout);
        self
    }

    /// How the handlers are run.
    pub(super) fn manner(&self) -> Manner {
        Manner { at_once: self.concurrency as usize, timeout: self.handler_timeout }
    }

    pub(super) fn check(self) -> Result<ConsumeCommand, ConsumeError> {
        let credit = self.credit.max(self.concurrency);
        Ok(ConsumeCommand {
            group: self.group.map(Group::parse).transpose()?,
            domain: Pattern::parse(self.domain)?,
            name: Pattern::parse(self.name)?,
            options: ConsumeOptions {
                lease: self.lease.map(lease_ms).transpose().map_err(ConsumeError::Refused)?,
                from: self.from,
                ..ConsumeOptions::new(credit, self.concurrency)
            },
            // Each hub keeps to the credit, in events and in bytes; there is room for each.
            lane: Arc::new(Lane::new(credit as usize, usize::MAX)),
        })
    }
}

/// How handlers are run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Manner {
    pub(super) at_once: usize,
    pub(super) timeout: Option<Duration>,
}

/// The claims of one consumer, to be pulled and settled one by one.
///
/// Begin work in the order in which they come, on no more at once than the
/// [`concurrency`](Consume::concurrency) that was asked. Claims of a lost link that were not pulled yet
/// vanish: the hub offers them again, and so do those that the hub gave away. Dropping it ends the consumer and hands back what was not pulled.
#[derive(Debug)]
#[must_use = "dropping it ends the consumer"]
pub struct Claims {
    key: Key,
    lane: Arc<Lane<Claim>>,
    fleet: Arc<Fleet>,
}

impl Claims {
    pub(super) fn new(key: Key, lane: Arc<Lane<Claim>>, fleet: Arc<Fleet>) -> Self {
        Self { key, lane, fleet }
    }

    /// Waits for the next claim. None: the consumer was stopped or has ended, [`Claims::fault`] says why.
    ///
    /// Safe to cancel: nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<Claim> {
        match self.lane.take().await {
            Taken::Item(claim) => Some(claim),
            Taken::Lagged | Taken::Closed => None,
        }
    }

    /// Stops the consumer: the hub sends no more, claims that were not pulled are handed back, and
    /// [`Claims::next`] ends. Pulled ones are still to be settled.
    ///
    /// # Errors
    /// If the hub doesn't answer in time.
    pub async fn stop(&self) -> Result<(), ConsumeError> {
        match self.fleet.stop(self.key).await {
            Ok(()) | Err(Unanswered::Failed(Failure::Closed(_) | Failure::LinkLost(_))) => Ok(()),
            Err(unanswered) => Err(unanswered.into()),
        }
    }

    /// Why it ended by itself, if it did: the hub refused to restore it, or the spoke was closed.
    #[must_use]
    pub fn fault(&self) -> Option<Fault> {
        self.lane.fault()
    }
}

impl Drop for Claims {
    fn drop(&mut self) {
        self.lane.close(None);
        self.lane.clear();
        self.fleet.remark(Remark::Consumer(self.key));
    }
}

impl From<Unanswered> for ConsumeError {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::TimedOut(waited) => ConsumeError::TimedOut { waited },
            Unanswered::Failed(Failure::Closed(fault)) => ConsumeError::Closed(fault),
            Unanswered::Failed(Failure::Refused(fault) | Failure::LinkLost(fault)) => {
                ConsumeError::Refused(fault)
            }
        }
    }
}
