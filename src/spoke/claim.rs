//! One claim: an event that this consumer holds, and how that ends.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep_until};

use super::{
    Hold, Nack, SettleError,
    command::{ClaimId, Command, Failure, Port, Remark, Settle, Unanswered},
};
use crate::{
    event::{Event, Fault, Retry, code},
    wire::lease_ms,
};

/// The shortest wait before a hub that couldn't settle a claim is asked again.
const AGAIN: Duration = Duration::from_millis(10);

/// An event that is this consumer's to work on. Dropping it unsettled hands it back to the hub.
///
/// While it is there its lease is extended by itself, at a third of it, by the task that owns the link: work may take
/// hours. If the hub gives the event away all the same, since this program was held up or cut off for longer than the
/// lease, the claim is *lost*: [`Claim::is_lost`] and [`Claim::lost`] tell, and to settle it has no effect.
#[derive(Debug)]
#[must_use = "dropping a claim hands the event back"]
pub struct Claim {
    event: Event,
    seq: u64,
    attempt: u32,
    id: ClaimId,
    port: Arc<Port>,
    hold: Hold,
    settled: bool,
}

impl Claim {
    pub(super) fn new(
        event: Event,
        seq: u64,
        attempt: u32,
        id: ClaimId,
        port: Arc<Port>,
        hold: Hold,
    ) -> Self {
        Self { event, seq, attempt, id, port, hold, settled: false }
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

    /// 1 at the first delivery of this event to the group; after a redrive it is counted anew.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Whether it is known that the claim is lost: somebody else may have the event by now.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.hold.is_lost()
    }

    /// Waits until the claim is lost. Safe to cancel.
    pub async fn lost(&self) {
        self.hold.lost().await;
    }

    /// Whether this link has brought it.
    pub(super) fn is_of(&self, port: &Arc<Port>) -> bool {
        Arc::ptr_eq(&self.port, port)
    }

    /// Tells whether the claim is lost, to whoever works on the event.
    #[must_use]
    pub fn hold(&self) -> Hold {
        self.hold.clone()
    }

    /// Holds the claim for so long from now on, 1 second to 1 hour, even if nothing is heard of this program
    /// meanwhile: before something that blocks its threads, say. Otherwise there is no need to: the lease is extended
    /// by itself, from here on when two thirds of it are left.
    ///
    /// # Errors
    /// [`SettleError::ClaimLost`], [`SettleError::LinkLost`]: it is lost already. [`SettleError::Refused`] if the time is out of
    /// range: the claim is held as before.
    pub async fn extend(&self, time: Duration) -> Result<(), SettleError> {
        let lease = lease_ms(time).map_err(SettleError::Refused)?;
        let claim = self.id;
        Ok(self.port.ask(|answer| Command::Extend { claim, lease, answer }).await?)
    }

    /// Done: the outcome is success, once this returns `Ok`.
    ///
    /// # Errors
    /// [`SettleError`]: the ack has no effect, or none that is known.
    pub async fn ack(self) -> Result<(), SettleError> {
        self.settle(Settle::Ack).await
    }

    /// Failed, and why. The event is tried again as the group's back-off says, or as the [`Nack`] does; after the
    /// group's `max_attempts` it is dead.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use eventflow::spoke::{Claim, Nack};
    ///
    /// # async fn example(one: Claim, two: Claim, three: Claim) -> Result<(), Box<dyn std::error::Error>> {
    /// one.nack("no such article").await?;
    /// two.nack(Nack::new("the bank is busy").after(Duration::from_secs(60))).await?;
    /// three.nack(Nack::new("no such customer").give_up()).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`SettleError`]: the nack has no effect, or none that is known.
    pub async fn nack(self, nack: impl Into<Nack>) -> Result<(), SettleError> {
        let nack = nack.into().into_options();
        self.settle(Settle::Nack(nack)).await
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
        if !self.settled && !self.is_lost() {
            self.port.remark(Remark::Claim(self.id));
        }
    }
}

/// Whether the hub refuses an ack, a nack or a release since there is no such claim, or no such event any more.
pub(super) fn ends_claim(fault: &Fault) -> bool {
    fault.code == code::CLAIM_LOST || fault.code == code::EVENT_NOT_FOUND
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
