//! Whether a claim is still held: told by the link's task, watched by whoever works on the event.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::Notify;

/// Whether an event is still this consumer's to work on. Cheap to clone; it outlives the claim.
///
/// A claim is lost when the hub gave its event away, since the lease ran out while this program was held up or cut off,
/// when its link ended, or when the event was deleted. Whatever is done to the event from then on, somebody else
/// may do too.
///
/// ```no_run
/// use eventflow::spoke::{Hold, Nack};
///
/// # async fn long_work() {}
/// # async fn example(hold: Hold) -> Result<(), Nack> {
/// tokio::select! {
///     () = long_work() => Ok(()),
///     () = hold.lost() => Err(Nack::new("somebody else has it by now")),
/// }
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Hold(Option<Arc<State>>);

#[derive(Default)]
struct State {
    lost: AtomicBool,
    told: Notify,
}

impl Hold {
    /// Of a new claim.
    pub(super) fn new() -> Self {
        Self(Some(Arc::default()))
    }

    /// The claim is lost: everybody who watches is told.
    pub(super) fn lose(&self) {
        if let Some(state) = &self.0 {
            state.lost.store(true, Ordering::Release);
            state.told.notify_waiters();
        }
    }

    /// Whether it is known that the claim is lost. What a subscriber gets is claimed by nobody and never lost.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.0.as_ref().is_some_and(|state| state.lost.load(Ordering::Acquire))
    }

    /// Waits until the claim is lost; for ever if it is settled before. Safe to cancel.
    pub async fn lost(&self) {
        let Some(state) = &self.0 else { return std::future::pending().await };
        let told = state.told.notified();
        tokio::pin!(told);
        // From here on it is told; what came before is seen.
        told.as_mut().enable();
        if !self.is_lost() {
            told.await;
        }
    }
}

/// Of the same claim.
impl PartialEq for Hold {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        }
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold").field("is_lost", &self.is_lost()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_who_watch_are_told_and_those_who_come_later_see_it() {
        let hold = Hold::new();
        let watching =
            [hold.clone(), hold.clone()].map(|hold| tokio::spawn(async move { hold.lost().await }));
        tokio::task::yield_now().await;
        assert!(!hold.is_lost());
        hold.lose();
        for watching in watching {
            watching.await.unwrap();
        }
        assert!(hold.is_lost());
        hold.lost().await;
        assert!(!Hold::default().is_lost());
    }
}
