//! What is due by the clock to the millisecond: leases that end, and retries, which are read from the database.

use std::{sync::Arc, time::Duration};

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};

use super::{
    Deliveries, PAGE_BYTES, TICK,
    binding::Waiting,
    effects::Effects,
    groups::GroupNo,
    retries::{RetriesPage, RetriesWanted},
};
use crate::{
    actors::{clock::Now, dispatched::Dispatched},
    store::{RetryEvent, RetryPage, StoreError},
};

impl Deliveries {
    /// Sets the timer for what is due before the next tick, unless it runs out before that anyway.
    pub(super) fn set_timer(&mut self, ctx: &mut Context<Self>) {
        let now = Now::read();
        let Some(wait) = self.groups.next().wait(now).map(Duration::from_millis).filter(|wait| *wait < TICK)
        else {
            return;
        };
        let at = now.steady + u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        if self.timer.is_some_and(|(_, set)| set <= at) {
            return;
        }
        if let Some((later, _)) = self.timer.take() {
            ctx.cancel_future(later);
        }
        let timer = ctx.run_later(wait, |deliveries, ctx| {
            deliveries.timer = None;
            let mut effects = Effects::default();
            let now = deliveries.now();
            deliveries.groups.due(now, &mut effects);
            deliveries.apply(effects, ctx);
        });
        self.timer = Some((timer, at));
    }

    pub(super) fn read_retries(&mut self, no: GroupNo, page: RetriesWanted, ctx: &mut Context<Self>) {
        let Some(group) = self.groups.get(no) else { return };
        let name = group.identity().name.as_ref().map(ToString::to_string).unwrap_or_default();
        let (store, hub) = (self.store.clone(), self.config.hub.clone());
        let RetriesWanted { ticket, after, until, limit } = page;
        let read = async move { store.retry_page(&hub, &name, after, until, limit, PAGE_BYTES).await };
        ctx.spawn(read.into_actor(self).map(move |result, deliveries, ctx| {
            deliveries.retries_read(no, ticket, result, ctx);
        }));
    }

    fn retries_read(
        &mut self,
        no: GroupNo,
        ticket: u64,
        result: Result<RetryPage, StoreError>,
        ctx: &mut Context<Self>,
    ) {
        let now = self.now();
        let mut effects = Effects::default();
        match result {
            Ok(RetryPage { events, next }) => {
                let rows = events.into_iter().map(waiting).collect();
                self.groups.retries_page(no, RetriesPage { ticket, rows, next }, now, &mut effects);
            }
            Err(error) => {
                tracing::warn!(%error, "what is due for a retry can't be read; trying again");
                self.groups.retries_failed(no, ticket, now);
            }
        }
        self.apply(effects, ctx);
    }
}

fn waiting(RetryEvent { open, due, original }: RetryEvent) -> Waiting {
    Waiting {
        event: Arc::new(Dispatched::adopted(open.event, open.seq, original)),
        attempts: open.attempts,
        round: open.round,
        due: Some(due),
    }
}
