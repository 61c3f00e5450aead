//! Going on with the work of hubs whose leases are over: found with a look every few seconds, taken over part by part, between the
//! transactions of everybody else. What is left to be done stands in the database alone.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};

use super::{Journal, ReplyTo, batch::mismatch};
use crate::{
    actors::{clock::now_millis, deliveries::Redriven},
    event::{Fault, Group},
    metrics::HubMetrics,
    store::{Adopted, AdoptionWork, StoreError, TakenOver, Write, Written},
};

/// From the end of one look to the next.
const INTERVAL: Duration = Duration::from_secs(2);
/// How long the database may take for one.
const PATIENCE: Duration = Duration::from_secs(20);
/// Events that one transaction takes over.
const MOST_ADOPTED: usize = 1_000;
/// While parts follow each other deliveries are told to look at most so often: each time they look from the start.
const TELL: Duration = Duration::from_secs(1);

/// What is under way.
#[derive(Debug, Default)]
pub(super) struct Adoption {
    /// Groups that have more to serve, of which deliveries haven't heard.
    untold: BTreeSet<String>,
    told: Option<Instant>,
    /// Events that were taken over since there was nothing to do, once for each group.
    events: u64,
}

/// A part that is under way.
#[derive(Debug)]
pub struct Adopting(AdoptionWork);

/// What came of it.
#[derive(Debug)]
pub struct Part {
    work: AdoptionWork,
    done: Result<Adopted, Fault>,
}

/// Reads the store's answer.
pub fn part(adopting: Adopting, result: Result<Written, StoreError>, metrics: &HubMetrics) -> Part {
    let done = match result {
        Ok(Written::Adopted(adopted)) => {
            metrics.adopted.add(adopted.events);
            Ok(adopted)
        }
        Ok(other) => Err(mismatch(&other)),
        Err(error) => Err(error.into()),
    };
    Part { work: adopting.0, done }
}

impl Journal {
    /// One look after the other, for as long as the journal lives; none while a part is under way.
    pub(super) fn look_for_dead(&mut self, ctx: &mut Context<Self>) {
        if self.closed || self.halting {
            return;
        }
        // A hub whose own lease is in doubt takes nobody's place.
        if !self.store.is_lease_fresh() {
            ctx.run_later(INTERVAL, Self::look_for_dead);
            return;
        }
        let (store, hub) = (self.store.clone(), self.config.hub.clone());
        let look = async move {
            let looked = tokio::time::timeout(PATIENCE, store.take_over(&hub)).await;
            looked.unwrap_or_else(|_| Err(StoreError::silent(PATIENCE)))
        };
        ctx.spawn(look.into_actor(self).map(|looked, journal, ctx| match looked {
            Ok(taken) => journal.took_over(taken, ctx),
            Err(error) => {
                // The beat says what is wrong with the database, or with this hub's place.
                tracing::warn!(%error, "can't look for hubs whose leases are over; looking again");
                ctx.run_later(INTERVAL, Self::look_for_dead);
            }
        }));
    }

    fn took_over(&mut self, taken: TakenOver, ctx: &mut Context<Self>) {
        let TakenOver { hubs, work, adopted } = taken;
        for dead in &hubs {
            tracing::warn!(%dead, "the lease of a hub is over: this one goes on with its work");
        }
        self.metrics.hub().adopted_hubs.set_len(usize::try_from(adopted).unwrap_or(usize::MAX));
        match work {
            Some(work) => {
                self.adopt(work);
                self.pump(ctx);
            }
            None => {
                self.tell_adopted(true);
                let events = std::mem::take(&mut self.adoption.events);
                if events > 0 {
                    tracing::info!(events, "the work of hubs whose leases are over is taken over");
                }
                ctx.run_later(INTERVAL, Self::look_for_dead);
            }
        }
    }

    fn adopt(&mut self, work: AdoptionWork) {
        let (hub, at) = (self.config.hub.clone(), now_millis());
        let write = Write::Adopt { work: work.clone(), hub, at, most: MOST_ADOPTED, first: 0 };
        // Behind what waits: a long adoption holds nobody up.
        self.enqueue(write, super::amend::WEIGHT, ReplyTo::Adopter(Adopting(work)));
    }

    /// A part is done, well or not: the next one follows, whichever it is by then.
    pub(super) fn adopted(&mut self, part: Part, ctx: &mut Context<Self>) {
        let Part { work, done } = part;
        match done {
            Ok(Adopted { events, groups, more }) => {
                tracing::debug!(dead = %work.from, group = ?work.group, events, more, "took a part of its work over");
                self.adoption.events += events;
                self.adoption.untold.extend(groups);
                self.tell_adopted(false);
                if more && !self.closed {
                    self.adopt(work);
                } else {
                    self.look_for_dead(ctx);
                }
            }
            Err(error) => {
                tracing::warn!(dead = %work.from, group = ?work.group, %error, "its work can't be taken over; trying again");
                self.tell_adopted(true);
                ctx.run_later(INTERVAL, Self::look_for_dead);
            }
        }
    }

    /// Has deliveries look at what they have to serve besides.
    fn tell_adopted(&mut self, now: bool) {
        let Some(peers) = &self.peers else { return };
        let Adoption { untold, told, .. } = &mut self.adoption;
        if untold.is_empty() || !(now || told.is_none_or(|told| told.elapsed() >= TELL)) {
            return;
        }
        *told = Some(Instant::now());
        for name in std::mem::take(untold) {
            let group = (!name.is_empty()).then(|| Group::from_stored(name));
            peers.deliveries.signal(Redriven { group });
        }
    }
}
