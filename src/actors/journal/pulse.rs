//! The pulse of a hub whose database is on a server: its lease is renewed, and a server that is away is noticed even if
//! nobody writes.

use std::time::Duration;

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};

use super::Journal;
use crate::store::StoreError;

/// From the end of one beat to the next.
const INTERVAL: Duration = Duration::from_secs(2);
/// How long the database may take for one.
const PATIENCE: Duration = Duration::from_secs(2);

impl Journal {
    /// One beat after the other, for as long as the journal lives.
    pub(super) fn beat(&mut self, ctx: &mut Context<Self>) {
        if self.halting {
            return;
        }
        let (store, hub, epoch) = (self.store.clone(), self.config.hub.clone(), self.config.epoch);
        let renewal = async move {
            let renewed = tokio::time::timeout(PATIENCE, store.renew_lease(&hub, epoch)).await;
            renewed.unwrap_or_else(|_| Err(StoreError::silent(PATIENCE)))
        };
        ctx.spawn(renewal.into_actor(self).map(|renewed, journal, ctx| {
            if let Err(error) = renewed {
                // A write that goes through, by itself or by `try_again`, says that it is over.
                journal.report(&[Err(error)], ctx);
            }
            ctx.run_later(INTERVAL, Self::beat);
        }));
    }
}
