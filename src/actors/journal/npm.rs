//! Events that npm spokes have put into the database: what the journal makes of the claims.

use std::time::Duration;

use actix::{AsyncContext, Context};

use super::{
    Journal, Take,
    batch::{ReplyTo, Told},
    collect::dispatch,
};
use crate::{
    actors::{
        clock::now_millis,
        npm::ignored,
        outlet::{Outlet, WindowPermit},
    },
    event::{EventId, Uid},
    metrics::HubMetrics,
    store::{StoreError, Write, Written},
};

/// When a take is tried again that the database refuses for now: npm has no answers, so its spoke won't.
const AGAIN: Duration = Duration::from_secs(1);

/// A publish of an npm link. It holds its place in the link's window until it is settled.
#[derive(Debug)]
pub struct NpmPublish {
    /// The event.
    pub id: EventId,
    /// The link.
    pub outlet: Outlet,
    /// Who it is, by its certificate.
    pub uid: Uid,
    /// Its place in the link's window.
    pub _permit: WindowPermit,
}

impl Journal {
    /// Takes what an npm link has published.
    pub(super) fn take(&mut self, message: Take) {
        let Take { outlet, uid, events } = message;
        for (id, permit) in events {
            self.take_one(NpmPublish { id, outlet: outlet.clone(), uid: uid.clone(), _permit: permit });
        }
    }

    fn take_one(&mut self, publish: NpmPublish) {
        if self.closed {
            let NpmPublish { id, outlet, uid, .. } = publish;
            let what = format!("publish of {id:?}: the hub is stopping");
            ignored(self.metrics.hub(), &outlet, &uid, &what);
            return;
        }
        let take = Write::Take {
            event_id: publish.id.clone(),
            hub: self.config.hub.clone(),
            seq: 0,
            at: now_millis(),
        };
        self.enqueue(take, 0, ReplyTo::Npm(publish));
    }

    /// Tries again what the database refused for now.
    pub(super) fn take_again(&mut self, again: Vec<NpmPublish>, ctx: &mut Context<Self>) {
        if again.is_empty() {
            return;
        }
        ctx.run_later(AGAIN, |journal, ctx| {
            for publish in again {
                journal.take_one(publish);
            }
            journal.pump(ctx);
        });
    }
}

/// What the rest of the core hears of a take.
pub fn taken(
    publish: NpmPublish,
    seq: u64,
    result: Result<Written, StoreError>,
    metrics: &HubMetrics,
    told: &mut Told,
) {
    let ignore = |why: &str| {
        let NpmPublish { id, outlet, uid, .. } = &publish;
        ignored(metrics, outlet, uid, &format!("publish of {id:?}: {why}"));
    };
    match result {
        Ok(Written::Taken(taken)) => {
            if !taken.broadcasts && !taken.serves {
                metrics.duplicates.inc();
            }
            dispatch(*taken, seq, told, metrics);
        }
        Ok(Written::NotTaken(why)) => ignore(&why.to_string()),
        Ok(other) => ignore(&format!("the store answered {other:?}: report this fault")),
        Err(error) if error.is_retryable() => told.refused.push(publish),
        Err(error) => ignore(&error.to_string()),
    }
}
