//! Consuming by a handler: claims are pulled, handlers run as tasks, their results settle the claims.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Semaphore, oneshot},
    task::{JoinHandle, JoinSet},
    time::timeout,
};
use tracing::Instrument as _;

use super::{
    BoxError, Claim, Claims, ConsumeError, Nack, SettleError,
    caught::{Caught, Panic, call, words},
    consume::Manner,
};

/// What a consumer has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConsumerCounts {
    /// Handlers that succeeded and whose ack the hub confirmed.
    pub acked: u64,
    /// Handlers that failed, panicked or took too long, and whose nack the hub confirmed.
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
    pub(super) fn start<H, F, E>(claims: Claims, manner: Manner, handler: H) -> Self
    where
        H: FnMut(&Claim) -> F + Send + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError> + Send + 'static,
    {
        let (stop, stopped) = oneshot::channel();
        let counters = Arc::new(Counters::default());
        let running = tokio::spawn(run(claims, manner, handler, stopped, counters.clone()));
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
    manner: Manner,
    mut handler: H,
    mut stopped: oneshot::Receiver<()>,
    counters: Arc<Counters>,
) -> Result<(), ConsumeError>
where
    H: FnMut(&Claim) -> F + Send + 'static,
    F: Future<Output = Result<(), E>> + Send + 'static,
    E: Into<BoxError> + Send + 'static,
{
    let free = Arc::new(Semaphore::new(manner.at_once));
    // Holds handlers, at most `at_once`, and settled claims that await the hub's word, at most the credit.
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
                        Ok(future) => end(future, manner.timeout).await,
                        Err(panic) => Err(panicked(&panic)),
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

/// Runs a handler to its end, or until its time is over.
async fn end<F, E>(future: F, limit: Option<Duration>) -> Result<(), Nack>
where
    F: Future<Output = Result<(), E>>,
    E: Into<BoxError>,
{
    let handled = Caught::new(future);
    let ended = match limit {
        // Dropped with its time.
        Some(limit) => timeout(limit, handled).await.map_err(|_| {
            Nack::new(format!("the handler didn't end within {limit:?}: it was ended by its handler_timeout"))
        })?,
        None => handled.await,
    };
    match ended {
        Ok(result) => result.map_err(|error| Nack::from(error.into())),
        Err(panic) => Err(panicked(&panic)),
    }
}

fn panicked(panic: &Panic) -> Nack {
    let reason = format!("the handler panicked: {}", words(&**panic));
    tracing::error!(reason, "a consumer's handler panicked");
    Nack::new(reason)
}

async fn settle(claim: Claim, ended: Result<(), Nack>, counters: &Counters) {
    let id = claim.event().id.clone();
    let (settled, counter) = match ended {
        Ok(()) => (claim.ack().await, &counters.acked),
        Err(nack) => (claim.nack(nack).await, &counters.nacked),
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
