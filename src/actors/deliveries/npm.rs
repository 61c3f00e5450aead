//! npm links: what they are told of events, and of those that they missed.

use std::{collections::BTreeMap, sync::Arc};

use actix::{ActorFutureExt, AsyncContext, Context, Handler, WrapFuture};

use super::{
    Deliveries, NpmCame, NpmLeft, PAGE_BYTES, PAGE_EVENTS,
    effects::Effects,
    feeds::{Feeds, HUNDRED, Look, Question, Telling, Ticket},
};
use crate::{
    actors::{
        clock::now_millis as now,
        dispatched::Dispatched,
        outlet::{Frame, LinkId, Outlet},
    },
    store::{GroupKey, OpenEvent, OpenPage, Store, StoreError},
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
        let now = self.now();
        self.groups.default_mut().npm_came();
        let mut effects = Effects::default();
        let given = late.iter().map(|event| event.seq).collect();
        for event in late {
            self.groups.default_mut().tell_late(event, outlet.clone(), now, &mut effects);
        }
        let after = self.config.policies.start(&domain, now.wall).seq.saturating_sub(1);
        self.feeds.begin(outlet, (domain, name), (after, self.groups.default_group().head()), given);
        self.apply(effects, ctx);
        self.look(ctx);
    }

    /// Reads the pages that the feeds want now.
    pub(super) fn look(&mut self, ctx: &mut Context<Self>) {
        for Look { ticket, after, domain, name } in self.feeds.looks(now()) {
            let (store, hub) = (self.store.clone(), self.config.hub.clone());
            let read = async move {
                store
                    .open_page(&hub, GroupKey::DEFAULT, after, (&domain, &name), PAGE_EVENTS, PAGE_BYTES)
                    .await
            };
            ctx.spawn(read.into_actor(self).map(move |result, deliveries, ctx| {
                deliveries.past(ticket, after, result, ctx);
                // Its place is free for another one's.
                deliveries.look(ctx);
            }));
        }
    }

    /// Looks whether links have claimed what they were told of.
    pub(super) fn ask_claims(&mut self, ctx: &mut Context<Self>) {
        let questions = self.feeds.questions(now());
        if !questions.is_empty() {
            let claimed = all_claimed(self.store.clone(), questions);
            ctx.spawn(claimed.into_actor(self).map(|claimed, deliveries, ctx| {
                deliveries.feeds.claimed(claimed);
                deliveries.look(ctx);
            }));
        }
    }

    /// A page of what the past has for an npm link.
    fn past(
        &mut self,
        ticket: Ticket,
        after: u64,
        result: Result<OpenPage, StoreError>,
        ctx: &mut Context<Self>,
    ) {
        let Some(Telling { outlet, upto, given }) = self.feeds.page(ticket) else { return };
        let now = self.now();
        let OpenPage { events, scanned: looked, more } = match result {
            Ok(page) => page,
            Err(error) => {
                cannot_read(&error);
                self.feeds.told(ticket, Vec::new(), Some((after, Feeds::until(now.wall))));
                return;
            }
        };
        let mut effects = Effects::default();
        let mut ids = Vec::new();
        // A page may be empty and yet have more after it.
        let mut next = (more && looked < upto).then_some((looked, 0));
        let mut scanned = after;
        for OpenEvent { event, seq, claimed, .. } in events {
            let event = Arc::new(Dispatched::new(event, seq));
            if seq > upto || ids.len() >= HUNDRED {
                next = (seq <= upto).then(|| (scanned, Feeds::until(now.wall)));
                break;
            }
            let skip = claimed || given.contains(&seq);
            match self.groups.default_group().is_free(&event, now) {
                _ if skip => {}
                Ok(()) => {
                    ids.push(event.event.id.clone());
                    self.groups.default_mut().tell_late(event, outlet.clone(), now, &mut effects);
                }
                // Others were told of it a moment ago, and have their time.
                Err(Some(until)) => {
                    next = Some((scanned, until));
                    break;
                }
                Err(None) => {}
            }
            scanned = seq;
            next = more.then(|| (scanned, if ids.is_empty() { 0 } else { Feeds::until(now.wall) }));
        }
        self.feeds.told(ticket, ids, next);
        self.apply(effects, ctx);
    }
}

impl Handler<NpmCame> for Deliveries {
    type Result = ();

    fn handle(&mut self, message: NpmCame, ctx: &mut Self::Context) {
        self.npm_came(message, ctx);
    }
}

impl Handler<NpmLeft> for Deliveries {
    type Result = ();

    fn handle(&mut self, message: NpmLeft, _: &mut Self::Context) {
        self.feeds.end(message.link, &message.domain, &message.name);
    }
}

/// Whose events are all claimed: one question after the other, on one reader.
async fn all_claimed(store: Store, questions: Vec<Question>) -> Vec<Ticket> {
    let mut claimed = Vec::new();
    for (ticket, ids) in questions {
        if store.any_unclaimed(&ids).await.inspect_err(cannot_read).is_ok_and(|any| !any) {
            claimed.push(ticket);
        }
    }
    claimed
}

fn cannot_read(error: &StoreError) {
    tracing::warn!(%error, "what npm links missed can't be read");
}
