//! npm links: what they are told of events, and of those that they missed.

use std::{collections::BTreeMap, sync::Arc};

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};

use super::{
    Deliveries, NpmCame, PAGE_BYTES, PAGE_EVENTS,
    effects::Effects,
    feeds::{Feeds, HUNDRED, Look, Telling, Ticket, What},
};
use crate::{
    actors::{
        clock::now_millis as now,
        dispatched::Dispatched,
        outlet::{Frame, LinkId, Outlet},
    },
    store::{OpenEvent, StoreError},
};

impl Deliveries {
    /// Tells npm links of events: each link in one frame.
    pub(super) fn tell_npm(&self, told: Vec<(Arc<Dispatched>, Vec<Outlet>)>) {
        let mut frames: BTreeMap<LinkId, (Outlet, Vec<Arc<Dispatched>>)> = BTreeMap::new();
        for (event, links) in told {
            for outlet in links {
                let frame = frames.entry(outlet.id()).or_insert_with(|| (outlet, Vec::new()));
                frame.1.push(event.clone());
            }
        }
        for (outlet, events) in frames.into_values() {
            self.metrics.hub().delivered.add(events.len() as u64);
            // A link that is cut reports its end.
            outlet.send(Frame::Npm(events));
        }
    }

    /// An npm link subscribes: it gets what nobody saw, then what nobody wanted.
    pub(super) fn npm_came(&mut self, message: NpmCame, ctx: &mut Context<Self>) {
        let NpmCame { outlet, domain, name, late } = message;
        let now = now();
        self.group.npm_came();
        let mut effects = Effects::default();
        let given = late.iter().map(|event| event.seq).collect();
        for event in late {
            self.group.tell_late(event, outlet.clone(), now, &mut effects);
        }
        let after = self.start_seq(now).saturating_sub(1);
        self.feeds.begin(outlet, (domain, name), (after, self.group.head()), given);
        self.apply(effects, ctx);
        self.look(ctx);
    }

    /// Starts the looks into the database that the feeds want now.
    pub(super) fn look(&mut self, ctx: &mut Context<Self>) {
        for Look { ticket, what } in self.feeds.looks(now()) {
            let (store, hub) = (self.store.clone(), self.config.hub.clone());
            match what {
                What::Page { after, domain, name } => {
                    let read = async move {
                        store.open_page(&hub, after, (&domain, &name), PAGE_EVENTS, PAGE_BYTES).await
                    };
                    ctx.spawn(read.into_actor(self).map(move |result, deliveries, ctx| {
                        deliveries.past(ticket, after, result, ctx);
                    }));
                }
                What::Unclaimed(ids) => {
                    let read = async move { store.any_unclaimed(&ids).await };
                    ctx.spawn(read.into_actor(self).map(move |result, deliveries, ctx| {
                        let unclaimed = result.inspect_err(cannot_read).ok();
                        deliveries.feeds.looked(ticket, unclaimed);
                        if unclaimed == Some(false) {
                            deliveries.look(ctx);
                        }
                    }));
                }
            }
        }
    }

    /// A page of what the past has for an npm link.
    fn past(
        &mut self,
        ticket: Ticket,
        after: u64,
        result: Result<(Vec<OpenEvent>, bool), StoreError>,
        ctx: &mut Context<Self>,
    ) {
        let Some(Telling { outlet, upto, given }) = self.feeds.page(ticket) else { return };
        let now = now();
        let (events, more) = match result {
            Ok(page) => page,
            Err(error) => {
                cannot_read(&error);
                self.feeds.told(ticket, Vec::new(), Some((after, Feeds::until(now))));
                return;
            }
        };
        let mut effects = Effects::default();
        let mut ids = Vec::new();
        let mut next = None;
        let mut scanned = after;
        for OpenEvent { event, seq, claimed, .. } in events {
            let event = Arc::new(Dispatched::new(event, seq));
            if seq > upto || ids.len() >= HUNDRED {
                next = (seq <= upto).then(|| (scanned, Feeds::until(now)));
                break;
            }
            let skip = claimed || given.contains(&seq);
            match self.group.is_free(&event, now) {
                _ if skip => {}
                Ok(()) => {
                    ids.push(event.event.id.clone());
                    self.group.tell_late(event, outlet.clone(), now, &mut effects);
                }
                // Others were told of it a moment ago, and have their time.
                Err(Some(until)) => {
                    next = Some((scanned, until));
                    break;
                }
                Err(None) => {}
            }
            scanned = seq;
            next = more.then(|| (scanned, if ids.is_empty() { 0 } else { Feeds::until(now) }));
        }
        let go_on = ids.is_empty() && next.is_some_and(|(_, until)| until <= now);
        self.feeds.told(ticket, ids, next);
        self.apply(effects, ctx);
        if go_on {
            self.look(ctx);
        }
    }
}

fn cannot_read(error: &StoreError) {
    tracing::warn!(%error, "what npm links missed can't be read");
}
