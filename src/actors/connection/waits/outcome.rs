//! Waiting for the outcome of an event.

use std::time::Duration;

use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};

use super::{Around, not_seated};
use crate::{
    actors::{
        connection::restart,
        deliveries::{AwaitOutcome, ForgetOutcome},
        waiters::WaitKey,
    },
    event::{EventId, Fault, Group, code},
    store::Standing,
    wire::{Answer, OutcomeOptions},
};

/// Waits for the outcome of an event, recorded or to come.
///
/// # Errors
/// It didn't come in time, or there is no such event.
pub async fn wait(
    around: &Around,
    who: WaitKey,
    id: EventId,
    options: OutcomeOptions,
) -> Result<Answer, Fault> {
    let group = options.group;
    if options.timeout_ms == 0 {
        return Ok(match around.standing(&id, group.as_ref()).await? {
            Standing::Ended(ended) => Answer::Outcome(Some(Box::new(ended))),
            Standing::Open => Answer::Outcome(None),
        });
    }
    let timeout = Duration::from_millis(options.timeout_ms);
    let deadline = Instant::now() + timeout;
    loop {
        let (_seat, told) = Seat::take(around, who, id.clone(), group.clone()).await?;
        if let Standing::Ended(ended) = around.standing(&id, group.as_ref()).await? {
            return Ok(Answer::Outcome(Some(Box::new(ended))));
        }
        match timeout_at(deadline, told).await {
            // There is something to see now.
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Err(restart()),
            Err(_) => return Err(timed_out(&id, timeout)),
        }
    }
}

impl Around {
    async fn standing(&self, id: &EventId, group: Option<&Group>) -> Result<Standing, Fault> {
        let _turn = self.turn().await;
        Ok(self.store.standing_in(id, group.map(Group::as_str).unwrap_or_default()).await?)
    }
}

/// A place with deliveries, given back however the wait ends.
struct Seat<'a> {
    around: &'a Around,
    who: WaitKey,
    event_id: EventId,
    group: Option<Group>,
}

impl<'a> Seat<'a> {
    /// Takes a place; the receiver hears that there is something to see.
    async fn take(
        around: &'a Around,
        who: WaitKey,
        event_id: EventId,
        group: Option<Group>,
    ) -> Result<(Self, oneshot::Receiver<()>), Fault> {
        let ((seated, taken), (told, hears)) = (oneshot::channel(), oneshot::channel());
        let wait = AwaitOutcome { who, event_id: event_id.clone(), group: group.clone(), told, seated };
        around.core.deliveries.offer(wait).map_err(not_seated)?;
        let seat = Self { around, who, event_id, group };
        taken.await.map_err(|_| restart())?;
        Ok((seat, hears))
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        // One per wait.
        let forget =
            ForgetOutcome { who: self.who, event_id: self.event_id.clone(), group: self.group.clone() };
        self.around.core.deliveries.signal(forget);
    }
}

fn timed_out(id: &EventId, timeout: Duration) -> Fault {
    Fault::refused(
        code::WAIT_TIMEOUT,
        format!("the event {id:?} got no outcome within {timeout:?}: wait again, or for longer"),
    )
}
