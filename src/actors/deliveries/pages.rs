//! Pages of what the database holds for a binding.

use std::sync::Arc;

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};

use super::{
    Deliveries, PAGE_EVENTS,
    binding::{Page, PageWanted, Waiting},
    effects::Effects,
};
use crate::{
    actors::dispatched::Dispatched,
    store::{OpenPage, StoreError},
};

impl Deliveries {
    pub(super) fn read_page(&mut self, id: i64, page: PageWanted, ctx: &mut Context<Self>) {
        let Some((group, domain, name)) = self.groups.patterns(id) else { return };
        let group = group.identity().clone();
        let (store, hub) = (self.store.clone(), self.config.hub.clone());
        let read = async move {
            let patterns = (&domain, &name);
            store.open_page(&hub, group.key(), page.after, patterns, PAGE_EVENTS, page.bytes).await
        };
        ctx.spawn(read.into_actor(self).map(move |result, deliveries, ctx| {
            deliveries.page(id, page, result, ctx);
        }));
    }

    fn page(
        &mut self,
        id: i64,
        page: PageWanted,
        result: Result<OpenPage, StoreError>,
        ctx: &mut Context<Self>,
    ) {
        match result {
            Ok(OpenPage { events, scanned, more }) => {
                let rows = events
                    .into_iter()
                    .map(|open| Waiting {
                        event: Arc::new(Dispatched::new(open.event, open.seq)),
                        attempts: open.attempts,
                        round: open.round,
                        due: None,
                    })
                    .collect();
                let mut effects = Effects::default();
                let page = Page { ticket: page.ticket, rows, scanned, more };
                let now = self.now();
                self.groups.page(id, page, now, &mut effects);
                self.apply(effects, ctx);
            }
            Err(error) => {
                // The next tick asks again.
                tracing::warn!(%error, "pending events can't be read");
                self.groups.page_failed(id, page.ticket);
            }
        }
    }
}
