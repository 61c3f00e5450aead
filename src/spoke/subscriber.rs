//! Subscribing by handlers: a task that takes the deliveries of a subscription and runs them.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use tokio::{sync::oneshot, task::JoinHandle};

use super::{
    Delivery, Handlers, Hold, Received, Subscription,
    caught::{Caught, call, words},
};
use crate::event::{Fault, Position};

/// What a subscriber has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubscriberCounts {
    /// Events whose handler, or the error handler after it, succeeded.
    pub handled: u64,
    /// Events whose handler failed or panicked.
    pub failed: u64,
    /// Events without a handler.
    pub passed: u64,
    /// Times that events may have been missed: the link was lost, the handlers were too slow, or retention had removed
    /// what was asked for.
    pub gaps: u64,
}

#[derive(Debug, Default)]
struct Counters {
    handled: AtomicU64,
    failed: AtomicU64,
    passed: AtomicU64,
    gaps: AtomicU64,
}

/// Handlers at work on a subscription, one event at a time. Dropping it unsubscribes once the handler that runs has
/// ended; [`Subscriber::stop`] waits for that.
#[derive(Debug)]
#[must_use = "dropping a subscriber stops it"]
pub struct Subscriber {
    stop: Option<oneshot::Sender<()>>,
    /// None once its end was seen.
    running: Option<JoinHandle<Option<Fault>>>,
    counters: Arc<Counters>,
    reached: Arc<Mutex<Position>>,
}

impl Subscriber {
    pub(super) fn start(subscription: Subscription, handlers: Handlers) -> Self {
        let (stop, stopped) = oneshot::channel();
        let counters = Arc::new(Counters::default());
        let reached = Arc::new(Mutex::new(subscription.position().clone()));
        let work = run(subscription, handlers, stopped, counters.clone(), reached.clone());
        Self { stop: Some(stop), running: Some(tokio::spawn(work)), counters, reached }
    }

    /// Where it stands: all events up to here were handled. Another one that is made
    /// [from](super::Spoke::subscribe_from) here, by whatever program, goes on behind it.
    #[must_use]
    pub fn position(&self) -> Position {
        lock(&self.reached).clone()
    }

    /// What it has done so far.
    #[must_use]
    pub fn counts(&self) -> SubscriberCounts {
        SubscriberCounts {
            handled: self.counters.handled.load(Ordering::Relaxed),
            failed: self.counters.failed.load(Ordering::Relaxed),
            passed: self.counters.passed.load(Ordering::Relaxed),
            gaps: self.counters.gaps.load(Ordering::Relaxed),
        }
    }

    /// Stops: no more events are begun. Waits for the handler that runs.
    pub async fn stop(mut self) -> SubscriberCounts {
        drop(self.stop.take());
        self.ended().await;
        self.counts()
    }

    /// Waits until it ends by itself, and says why if there was a reason: the hub refused to restore it, or the spoke
    /// was closed. Safe to cancel.
    pub async fn ended(&mut self) -> Option<Fault> {
        let ended = self.running.as_mut()?.await;
        self.running = None;
        ended.unwrap_or_else(|error| {
            // Only the end of the runtime cancels it, and its own code doesn't panic.
            tracing::error!(%error, "a subscriber's task ended before its time");
            None
        })
    }
}

async fn run(
    mut subscription: Subscription,
    handlers: Handlers,
    mut stopped: oneshot::Receiver<()>,
    counters: Arc<Counters>,
    reached: Arc<Mutex<Position>>,
) -> Option<Fault> {
    loop {
        let delivery = tokio::select! {
            biased;
            _ = &mut stopped => return None,
            delivery = subscription.next() => delivery,
        };
        let counter = match delivery {
            Some(Delivery::Event { event, seq }) => {
                let received = Received { event, seq, attempt: 1, hold: Hold::default() };
                if handlers.handle(&received) {
                    handle(&handlers, received, &counters).await
                } else {
                    &counters.passed
                }
            }
            Some(Delivery::Gap { from, to }) if from < to => {
                tracing::warn!(from, to, "events in between may have been missed by a subscriber");
                &counters.gaps
            }
            Some(Delivery::Removed { from, to, events }) => {
                tracing::warn!(from, to, events, "retention has removed events that a subscriber asked for");
                &counters.gaps
            }
            // A gap follows.
            Some(Delivery::Lagged | Delivery::Gap { .. }) => continue,
            None => return subscription.fault(),
        };
        counter.fetch_add(1, Ordering::Relaxed);
        lock(&reached).clone_from(subscription.position());
    }
}

fn lock(reached: &Mutex<Position>) -> MutexGuard<'_, Position> {
    // No code that can panic runs under the lock.
    reached.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Handles one event; gives the counter that it belongs to.
async fn handle<'a>(handlers: &Handlers, received: Received, counters: &'a Counters) -> &'a AtomicU64 {
    let id = received.event.id.clone();
    let ended = match call(|| handlers.begin(received)) {
        Ok(handled) => Caught::new(handled).await,
        Err(panic) => Err(panic),
    };
    match ended {
        Ok(Ok(())) => &counters.handled,
        Ok(Err(error)) => {
            tracing::warn!(event.id = %id, %error, "a subscriber's handler failed");
            &counters.failed
        }
        Err(panic) => {
            tracing::error!(event.id = %id, reason = words(&*panic), "a subscriber's handler panicked");
            &counters.failed
        }
    }
}
