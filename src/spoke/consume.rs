//! Consuming: one consumer of a group gets the event, and settles its claim.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep_until};

use super::{
    ConsumeError, SettleError,
    command::{ClaimId, Command, ConsumeCommand, Failure, Key, Port, Remark, Settle, Unanswered},
    lane::{Lane, Taken},
};
use crate::{
    event::{Event, Fault, Group, Pattern, Retry, code},
    wire::ConsumeOptions,
};

/// The shortest wait before a hub that couldn't settle a claim is asked again.
const AGAIN: Duration = Duration::from_millis(10);
/// The most bytes of a nack's reason that are sent.
pub(super) const MAX_REASON: usize = 8 << 10;

/// What to consume and how much at once.
///
/// ```
/// use eventflow::spoke::Consume;
///
/// let consume = Consume::new("orders", "created").concurrency(4).credit(64);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "consuming begins with `Spoke::consume` or `Spoke::claims`"]
pub struct Consume {
    group: Option<String>,
    domain: String,
    name: String,
    credit: u32,
    concurrency: u32,
}

impl Consume {
    /// Events whose domain and name match these patterns, in the default group, one handler at a time. The
    /// patterns are checked when consuming begins.
    pub fn new(domain: impl Into<String>, name: impl Into<String>) -> Self {
        Self { group: None, domain: domain.into(), name: name.into(), credit: 64, concurrency: 1 }
    }

    /// Shares the work with this group rather than with the default one.
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

    pub(super) fn handlers(&self) -> usize {
        self.concurrency as usize
    }

    pub(super) fn check(self, port: Arc<Port>) -> Result<ConsumeCommand, ConsumeError> {
        let credit = self.credit.max(self.concurrency);
        Ok(ConsumeCommand {
            group: self.group.map(Group::parse).transpose()?,
            domain: Pattern::parse(self.domain)?,
            name: Pattern::parse(self.name)?,
            options: ConsumeOptions::new(credit, self.concurrency),
            // The hub keeps to the credit, in events and in bytes.
            lane: Arc::new(Lane::new(credit as usize, usize::MAX)),
            port,
        })
    }
}

/// The claims of one consumer, to be pulled and settled one by one.
///
/// Begin work in the order in which they come, on no more at once than the
/// [`concurrency`](Consume::concurrency) that was asked. Claims of a lost link that were not pulled yet
/// vanish: the hub offers them again. Dropping it ends the consumer and hands back what was not pulled.
#[derive(Debug)]
#[must_use = "dropping it ends the consumer"]
pub struct Claims {
    key: Key,
    lane: Arc<Lane<Claim>>,
    port: Arc<Port>,
}

impl Claims {
    pub(super) fn new(key: Key, lane: Arc<Lane<Claim>>, port: Arc<Port>) -> Self {
        Self { key, lane, port }
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
        let key = self.key;
        match self.port.ask(|answer| Command::Stop { key, answer }).await {
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
        self.port.remark(Remark::Consumer(self.key));
    }
}

/// An event that is this consumer's to work on. Dropping it unsettled hands it back to the hub.
#[derive(Debug)]
#[must_use = "dropping a claim hands the event back"]
pub struct Claim {
    event: Event,
    seq: u64,
    attempt: u32,
    id: ClaimId,
    port: Arc<Port>,
    settled: bool,
}

impl Claim {
    pub(super) fn new(event: Event, seq: u64, attempt: u32, id: ClaimId, port: Arc<Port>) -> Self {
        Self { event, seq, attempt, id, port, settled: false }
    }

    /// The event.
    #[must_use]
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// The hub's sequence number.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// 1 at the first delivery of this event to the group.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Done: the outcome is success, once this returns `Ok`.
    ///
    /// # Errors
    /// [`SettleError`]: the ack has no effect, or none that is known.
    pub async fn ack(self) -> Result<(), SettleError> {
        self.settle(Settle::Ack).await
    }

    /// Failed, and why; the reason is cut at 8 KiB.
    ///
    /// # Errors
    /// [`SettleError`]: the nack has no effect, or none that is known.
    pub async fn nack(self, reason: impl Into<String>) -> Result<(), SettleError> {
        let reason = cut(reason.into());
        self.settle(Settle::Nack { reason }).await
    }

    /// Hands the event back unstarted: this counts as no attempt.
    ///
    /// # Errors
    /// [`SettleError`]: the hub offers the event again in any case.
    pub async fn release(self) -> Result<(), SettleError> {
        self.settle(Settle::Release).await
    }

    /// A hub that is busy, or whose disk is full, is asked again for as long as a request may take. If that doesn't
    /// help, the claim is handed back: somebody has to get the event once the hub can take an outcome again.
    pub(super) async fn settle(mut self, how: Settle) -> Result<(), SettleError> {
        let Self { id, port, settled, .. } = &mut self;
        let by = Instant::now() + port.deadline;
        loop {
            let how = how.clone();
            let settling = port.ask(|answer| {
                // From here on it is on its way; cancelled before, it is handed back.
                *settled = true;
                Command::Settle { claim: *id, how, answer }
            });
            match settling.await {
                Err(Unanswered::Failed(Failure::Refused(fault))) if !ends_claim(&fault) => {
                    *settled = false;
                    let again = match fault.retry {
                        Retry::After(wait) => Instant::now() + wait.max(AGAIN),
                        Retry::Never => by,
                    };
                    if again >= by {
                        return Err(SettleError::Refused(fault));
                    }
                    sleep_until(again).await;
                }
                settled => return settled.map_err(Into::into),
            }
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.settled {
            self.port.remark(Remark::Claim(self.id));
        }
    }
}

/// Whether the hub refuses an ack, a nack or a release since there is no such claim, or no such event any more.
pub(super) fn ends_claim(fault: &Fault) -> bool {
    fault.code == code::CLAIM_LOST || fault.code == code::EVENT_NOT_FOUND
}

fn cut(mut reason: String) -> String {
    reason.truncate(reason.floor_char_boundary(MAX_REASON));
    reason
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

impl From<Unanswered> for SettleError {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::TimedOut(waited) => SettleError::TimedOut { waited },
            Unanswered::Failed(Failure::Closed(fault)) => SettleError::Closed(fault),
            Unanswered::Failed(Failure::LinkLost(_)) => SettleError::LinkLost,
            Unanswered::Failed(Failure::Refused(fault)) if fault.code == code::CLAIM_LOST => {
                SettleError::ClaimLost
            }
            Unanswered::Failed(Failure::Refused(fault)) if ends_claim(&fault) => SettleError::EventDeleted,
            Unanswered::Failed(Failure::Refused(fault)) => SettleError::Refused(fault),
        }
    }
}
