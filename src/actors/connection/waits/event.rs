//! Waiting for an event: first look out for it, then look back, then wait.

use std::sync::Arc;

use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};

use super::{Around, not_seated};
use crate::{
    actors::{
        connection::restart,
        dispatched::Dispatched,
        registry::{AwaitEvent, Awaited, ForgetEvent},
        waiters::WaitKey,
    },
    event::{Event, EventId, Fault, code},
    store::StoreError,
    wire::{After, Wait, WaitFor},
};

/// Waits for the first event that is asked for, stored or to come.
///
/// # Errors
/// It didn't come in time, or can't be waited for.
pub async fn wait(around: &Around, who: WaitKey, wait: Wait) -> Result<Event, Fault> {
    let deadline = Instant::now() + wait.timeout;
    let text = text(&wait);
    let what = around.awaited(wait.wanted).await?;
    if wait.timeout.is_zero() {
        return around.look_back(&what).await?.ok_or_else(|| timed_out(&text));
    }
    let (_seat, found) = Seat::take(around, who, what.clone()).await?;
    // All that was dispatched before the seat was taken is in the store, and what comes after it is told, in order: if
    // the store has nothing, the first that is told is the first there is.
    if let Some(event) = around.look_back(&what).await? {
        return Ok(event);
    }
    match timeout_at(deadline, found).await {
        Ok(Ok(dispatched)) => Ok(dispatched.event.clone()),
        Ok(Err(_)) => Err(restart()),
        Err(_) => Err(timed_out(&text)),
    }
}

impl Around {
    /// What the registry looks out for: after an event means above its position.
    async fn awaited(&self, wanted: WaitFor) -> Result<Awaited, Fault> {
        Ok(match wanted {
            WaitFor::Answer { rid } => Awaited::Answer { rid },
            WaitFor::Process { domain, pid, names, after } => {
                let above = match after {
                    After::Start => 0,
                    After::Time(ms) => end_of(ms),
                    After::Event(id) => {
                        let _turn = self.turn().await;
                        self.store.position(&id).await?.ok_or_else(|| not_dispatched(&id))?
                    }
                };
                Awaited::Process { domain, pid, names, above }
            }
        })
    }

    async fn look_back(&self, what: &Awaited) -> Result<Option<Event>, StoreError> {
        let _turn = self.turn().await;
        match what {
            Awaited::Process { domain, pid, names, above } => {
                self.store.first_of_process(domain, pid, names, *above).await
            }
            Awaited::Answer { rid } => self.store.first_answer(rid).await,
        }
    }
}

/// The last position of a millisecond.
fn end_of(ms: i64) -> u64 {
    u64::try_from(ms).map_or(0, |ms| ms.saturating_mul(1_000).saturating_add(999))
}

/// A place with the registry, given back however the wait ends.
struct Seat<'a> {
    around: &'a Around,
    who: WaitKey,
    what: Awaited,
}

impl<'a> Seat<'a> {
    /// Takes a place; the receiver gets the event.
    async fn take(
        around: &'a Around,
        who: WaitKey,
        what: Awaited,
    ) -> Result<(Self, oneshot::Receiver<Arc<Dispatched>>), Fault> {
        let ((seated, taken), (found, told)) = (oneshot::channel(), oneshot::channel());
        let wait = AwaitEvent { who, what: what.clone(), found, seated };
        around.core.registry.offer(wait).map_err(not_seated)?;
        let seat = Self { around, who, what };
        taken.await.map_err(|_| restart())?;
        Ok((seat, told))
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        // One per wait.
        self.around.core.registry.signal(ForgetEvent { who: self.who, what: self.what.clone() });
    }
}

/// What is waited for, and for how long, for people.
fn text(wait: &Wait) -> String {
    format!("no {} came within {:?}", wait.wanted, wait.timeout)
}

fn timed_out(text: &str) -> Fault {
    Fault::refused(code::WAIT_TIMEOUT, format!("{text}: wait again, or for longer"))
}

fn not_dispatched(id: &EventId) -> Fault {
    Fault::refused(
        code::EVENT_NOT_FOUND,
        format!("the event {id:?} is stored but not published yet: nothing comes after it until it is"),
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_time_out_says_what_was_waited_for_and_how_long() {
        let wanted = WaitFor::Answer { rid: EventId::parse("e").unwrap() };
        let text = text(&Wait { wanted, timeout: Duration::from_millis(1_500) });
        assert_eq!(text, r#"no answer to the event "e" came within 1.5s"#);
    }

    #[test]
    fn after_a_millisecond_is_above_its_last_position() {
        assert_eq!((end_of(5), end_of(0), end_of(-1)), (5_999, 999, 0));
        assert_eq!(end_of(i64::MAX), u64::MAX);
    }
}
