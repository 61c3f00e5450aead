//! Consuming by a handler: claims are pulled, handlers run as tasks, their results settle the claims.

use std::{
    fmt::Display,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::{
    sync::{Semaphore, oneshot},
    task::{JoinHandle, JoinSet},
};
use tracing::Instrument as _;

use super::{
    Claim, Claims, ConsumeError, SettleError,
    caught::{Caught, Panic, call, words},
};

/// What a consumer has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConsumerCounts {
    /// Handlers that succeeded and whose ack the hub confirmed.
    pub acked: u64,
    /// Handlers that failed or panicked and whose nack the hub confirmed.
    pub nacked: u64,
    /// Claims whose end had no effect: lost, void with their link, refused or unconfirmed. The hub offers
    /// these events again unless they have their outcome.
    pub lost: u64,
}

#[derive(Debug, Default)]
struct Counters {
    acked: AtomicU64,
    nacked: AtomicU64,
    lost: AtomicU64,
}

impl Counters {
    fn read(&self) -> ConsumerCounts {
        ConsumerCounts {
            acked: self.acked.load(Ordering::Relaxed),
            nacked: self.nacked.load(Ordering::Relaxed),
            lost: self.lost.load(Ordering::Relaxed),
        }
    }
}

/// A running consumer. Dropping it stops it in the background; [`Consumer::stop`] waits for the end.
#[derive(Debug)]
#[must_use = "dropping a consumer stops it"]
pub struct Consumer {
    stop: Option<oneshot::Sender<()>>,
    /// None once its end was seen.
    running: Option<JoinHandle<Result<(), ConsumeError>>>,
    counters: Arc<Counters>,
}

impl Consumer {
    pub(super) fn start<H, F, E>(claims: Claims, handlers: usize, handler: H) -> Self
    where
        H: FnMut(&Claim) -> F + Send + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Display + Send + 'static,
    {
        let (stop, stopped) = oneshot::channel();
        let counters = Arc::new(Counters::default());
        let running = tokio::spawn(run(claims, handlers, handler, stopped, counters.clone()));
        Self { stop: Some(stop), running: Some(running), counters }
    }

    /// What it has done so far.
    #[must_use]
    pub fn counts(&self) -> ConsumerCounts {
        self.counters.read()
    }

    /// Stops: no more events come, unstarted ones are handed back, running handlers end and their results are
    /// confirmed. Waits for all of that, however long the handlers take.
    ///
    /// # Errors
    /// If the hub doesn't confirm the stop in time; what came before is settled all the same.
    pub async fn stop(mut self) -> Result<ConsumerCounts, ConsumeError> {
        drop(self.stop.take());
        self.end().await?;
        Ok(self.counters.read())
    }

    /// Waits until it ends by itself: the hub refused to restore it, or the spoke was closed. Safe to cancel.
    pub async fn ended(&mut self) {
        // By itself it ends without an error.
        let _ = self.end().await;
    }

    async fn end(&mut self) -> Result<(), ConsumeError> {
        let Some(running) = &mut self.running else { return Ok(()) };
        let ended = running.await;
        self.running = None;
        ended.unwrap_or_else(|error| {
            // Only the end of the runtime cancels it, and its own code doesn't panic.
            tracing::error!(%error, "a consumer's task ended before its time");
            Ok(())
        })
    }
}

async fn run<H, F, E>(
    mut claims: Claims,
    handlers: usize,
    mut handler: H,
    mut stopped: oneshot::Receiver<()>,
    counters: Arc<Counters>,
) -> Result<(), ConsumeError>
where
    H: FnMut(&Claim) -> F + Send + 'static,
    F: Future<Output = Result<(), E>> + Send + 'static,
    E: Display + Send + 'static,
{
    let free = Arc::new(Semaphore::new(handlers));
    // Holds handlers, at most `handlers`, and settled claims that await the hub's word, at most the credit.
    let mut tasks = JoinSet::new();
    let mut result = Ok(());
    loop {
        let next = async {
            let permit = free.clone().acquire_owned().await.ok()?;
            Some((claims.next().await?, permit))
        };
        tokio::select! {
            biased;
            _ = &mut stopped => {
                result = claims.stop().await;
                break;
            }
            Some(_) = tasks.join_next() => {}
            next = next => {
                let Some((claim, permit)) = next else { break };
                // Called here, so that handlers begin in the order in which claims came.
                let event = claim.event();
                let span = tracing::debug_span!("claim", event.id = %event.id, domain = %event.domain);
                let begun = span.in_scope(|| call(|| handler(&claim)));
                let counters = counters.clone();
                let work = async move {
                    let ended = match begun {
                        Ok(future) => Caught::new(future).await,
                        Err(panic) => Err(panic),
                    };
                    drop(permit);
                    settle(claim, ended, &counters).await;
                };
                tasks.spawn(work.instrument(span));
            }
        }
    }
    while tasks.join_next().await.is_some() {}
    result
}

async fn settle<E: Display>(claim: Claim, ended: Result<Result<(), E>, Panic>, counters: &Counters) {
    let id = claim.event().id.clone();
    let (settled, counter) = match ended {
        Ok(Ok(())) => (claim.ack().await, &counters.acked),
        Ok(Err(error)) => (claim.nack(error.to_string()).await, &counters.nacked),
        Err(panic) => {
            let reason = format!("the handler panicked: {}", words(&*panic));
            tracing::error!(event.id = %id, reason, "a consumer's handler panicked");
            (claim.nack(reason).await, &counters.nacked)
        }
    };
    match settled {
        Ok(()) => counter.fetch_add(1, Ordering::Relaxed),
        Err(error) => {
            let known =
                matches!(error, SettleError::ClaimLost | SettleError::EventDeleted | SettleError::LinkLost);
            if known {
                tracing::info!(event.id = %id, code = error.code(), "a claim was lost before its end: {error}");
            } else {
                tracing::warn!(event.id = %id, code = error.code(), "a claim could not be settled: {error}");
            }
            counters.lost.fetch_add(1, Ordering::Relaxed)
        }
    };
}
