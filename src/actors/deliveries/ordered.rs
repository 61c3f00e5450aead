//! What groups that keep the order of keys read from the database.

use std::sync::Arc;

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};

use super::{
    Deliveries, PAGE_BYTES,
    binding::Waiting,
    effects::Effects,
    groups::GroupNo,
    order::{HeldWanted, LanePage, LaneWanted},
};
use crate::{actors::dispatched::Dispatched, event::Pid};

impl Deliveries {
    /// What waits for a time and, if they block, the dead: nothing is handed out before these are known.
    pub(super) fn read_held_back(&mut self, no: GroupNo, page: HeldWanted, ctx: &mut Context<Self>) {
        let Some(group) = self.groups.get(no) else { return };
        let of = group.identity().clone();
        let (store, hub) = (self.store.clone(), self.config.hub.clone());
        let HeldWanted { ticket, after, with_dead, limit } = page;
        let read = async move { store.retrying_pids(&hub, of.key(), with_dead, after.as_ref(), limit).await };
        ctx.spawn(read.into_actor(self).map(move |result, deliveries, ctx| {
            if let Err(error) = &result {
                // The next tick asks again.
                tracing::warn!(%error, "what holds back events of its process can't be read; trying again");
            }
            let mut effects = Effects::default();
            let now = deliveries.now();
            deliveries.groups.held_back(no, ticket, result.ok(), now, &mut effects);
            deliveries.apply(effects, ctx);
        }));
    }

    /// Events of one process for which memory had no room.
    pub(super) fn read_lane(&mut self, no: GroupNo, page: LaneWanted, ctx: &mut Context<Self>) {
        let Some(group) = self.groups.get(no) else { return };
        let of = group.identity().clone();
        let (store, hub) = (self.store.clone(), self.config.hub.clone());
        let LaneWanted { ticket, pid, after, upto, limit } = page;
        let read = async move {
            let pid = Pid::from_stored(pid);
            store.open_of_pid(&hub, of.key(), &pid, (after, upto), limit, PAGE_BYTES).await
        };
        ctx.spawn(read.into_actor(self).map(move |result, deliveries, ctx| match result {
            Ok(page) => {
                let rows = page.events.into_iter().map(|open| Waiting {
                    event: Arc::new(Dispatched::new(open.event, open.seq)),
                    attempts: open.attempts,
                    round: open.round,
                    due: None,
                });
                let page = LanePage { ticket, rows: rows.collect(), scanned: page.scanned };
                let mut effects = Effects::default();
                let now = deliveries.now();
                deliveries.groups.lane_page(no, page, now, &mut effects);
                deliveries.apply(effects, ctx);
            }
            Err(error) => {
                // The next tick asks again.
                tracing::warn!(%error, "the events of a process can't be read; trying again");
                deliveries.groups.lane_failed(no, ticket);
            }
        }));
    }
}
