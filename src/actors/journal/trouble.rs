//! The database in trouble: said by the readiness, looked after until it is over.

use std::time::Duration;

use actix::{ActorContext, ActorFutureExt, AsyncContext, Context, WrapFuture};
use tokio::sync::watch;

use super::{Journal, ReplyTo};
use crate::{
    actors::clock::now_millis,
    metrics::{Metrics, Readiness},
    store::{Store, StoreError, Write, Written},
};

/// How often it is tried whether the trouble is over; tests shouldn't wait that long.
const PAUSE: Duration = Duration::from_millis(if cfg!(test) { 50 } else { 3_000 });
/// A full database has room again if it takes so many bytes: more than most events.
const ROOM: u64 = 256 << 10;

impl Journal {
    /// Keeps the readiness true: a database that refuses everything is told, one that works again too. A full one
    /// still takes outcomes: only an event shows that there is room again, or a look at its size and its disk.
    pub(super) fn report(&mut self, results: &[Result<Written, StoreError>], ctx: &mut Context<Self>) {
        let refused =
            results.iter().filter_map(|result| result.as_ref().err()).find(|error| error.is_retryable());
        if let Some(StoreError::Fenced) = refused {
            // Nothing that this core knows holds any more: the next one registers the hub anew.
            tracing::error!("another hub has taken this hub's place");
            ctx.stop();
        }
        if let Some(error) = refused {
            self.full = matches!(error, StoreError::Full { .. });
        }
        let trouble = refused.map(|error| Readiness::Degraded { reason: error.to_string() });
        let wrote = results.iter().flatten().any(|written| !self.full || has_stored(written));
        self.readiness.send_if_modified(|readiness| match (readiness.clone(), trouble) {
            (Readiness::Ready, Some(trouble)) => {
                tracing::error!(reason = trouble.reason(), "the database refuses writes");
                *readiness = trouble;
                true
            }
            (Readiness::Degraded { .. }, None) if wrote => {
                tracing::info!("the database takes writes again");
                *readiness = Readiness::Ready;
                true
            }
            _ => false,
        });
        let readiness = self.readiness.borrow().clone();
        self.metrics.set_readiness(&readiness);
        if matches!(readiness, Readiness::Degraded { .. }) {
            self.try_again(ctx);
        }
    }

    /// Tries in a while whether the trouble is over: a hub that says it isn't ready may be given no event that would
    /// show it. One try at a time.
    fn try_again(&mut self, ctx: &mut Context<Self>) {
        if std::mem::replace(&mut self.trying, true) {
            return;
        }
        let (store, full) = (self.store.clone(), self.full);
        let room = async move {
            tokio::time::sleep(PAUSE).await;
            if full { store.room().await } else { Ok(u64::MAX) }
        };
        ctx.spawn(room.into_actor(self).map(|room, journal, ctx| {
            journal.trying = false;
            if !matches!(*journal.readiness.borrow(), Readiness::Degraded { .. }) {
                return;
            }
            if journal.full && !room.is_ok_and(|room| room >= ROOM) {
                journal.try_again(ctx);
                return;
            }
            // A real write has the last word, by `report`.
            journal.full = false;
            let line = Write::Log {
                at: now_millis(),
                agent: journal.config.hub.to_string(),
                message: "The database takes writes again".to_owned(),
                error: "{}".to_owned(),
            };
            journal.enqueue(line, 0, ReplyTo::Nobody);
            journal.pump(ctx);
        }));
    }
}

/// Says that the file is damaged, once that is known, whatever else makes the hub ready.
pub(super) async fn tell_damage(store: Store, readiness: watch::Sender<Readiness>, metrics: Metrics) {
    let reason = store.damaged().await.to_string();
    let mut seen = readiness.subscribe();
    while seen.wait_for(Readiness::is_ready).await.is_ok() {
        readiness.send_if_modified(|readiness| {
            let ready = readiness.is_ready();
            if ready {
                *readiness = Readiness::Degraded { reason: reason.clone() };
            }
            ready
        });
        metrics.set_readiness(&readiness.borrow());
    }
}

/// Whether it found room for an event.
fn has_stored(written: &Written) -> bool {
    match written {
        Written::Published(published) => published.fresh,
        Written::Scheduled { fresh, .. } => *fresh,
        Written::Batch(all) => all.iter().any(|published| published.fresh),
        _ => false,
    }
}
