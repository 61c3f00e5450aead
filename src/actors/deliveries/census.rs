//! What waits for a retry, what is dead and what is an orphan: counted now and then from the database, for the metrics.

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};

use super::{Deliveries, count::PAGE_MARKS};
use crate::{
    metrics::GroupKind,
    store::{Census, GroupKey, OpenMarks, Retrying},
};

/// The first two are counted each so many ticks.
const CENSUS_TICKS: u32 = 5;
/// Orphans, which take more reading, each so many.
const ORPHAN_TICKS: u32 = 60;
/// So many events without outcome are looked at for orphans, the oldest ones.
const MOST_LOOKED: usize = 50_000;

/// What is known of them.
#[derive(Debug, Default)]
pub(super) struct Counted {
    /// The oldest event that waits for a retry, by its number.
    pub(super) oldest_retry: Option<u64>,
    counting: bool,
    looking: bool,
}

/// A look for orphans, page by page.
#[derive(Debug, Default)]
struct Look {
    after: u64,
    looked: usize,
    orphans: usize,
}

impl Deliveries {
    /// By the clock: counts what it is time for, unless that is under way still.
    pub(super) fn take_census(&mut self, ctx: &mut Context<Self>) {
        // The first of each soon after the start.
        let is_time = |every: u32| self.ticks % every == 1;
        let (census, orphans) = (is_time(CENSUS_TICKS), is_time(ORPHAN_TICKS));
        if census && !std::mem::replace(&mut self.counted.counting, true) {
            let (store, hub) = (self.store.clone(), self.config.hub.clone());
            let count = async move { store.census(&hub).await };
            ctx.spawn(count.into_actor(self).map(|census, deliveries, _| {
                deliveries.counted.counting = false;
                match census {
                    Ok(census) => deliveries.show_census(census),
                    // The next one is soon.
                    Err(error) => tracing::warn!(%error, "retrying and dead events can't be counted"),
                }
            }));
        }
        if orphans && !std::mem::replace(&mut self.counted.looking, true) {
            self.look_for_orphans(Look::default(), ctx);
        }
    }

    fn show_census(&mut self, census: Census) {
        let Census { retrying, retrying_named, dead, dead_named } = census;
        let hub = self.metrics.hub();
        let oldest = |retrying: Retrying| retrying.oldest;
        self.counted.oldest_retry = oldest(retrying).into_iter().chain(oldest(retrying_named)).min();
        for (kind, retrying, dead) in
            [(GroupKind::Default, retrying, dead), (GroupKind::Named, retrying_named, dead_named)]
        {
            hub.retrying.of(kind).set_len(len(retrying.events));
            hub.dead.of(kind).set_len(len(dead));
        }
        self.show_oldest();
    }

    /// Orphans are known by no row of their own: whether a binding wants an event only its patterns say.
    fn look_for_orphans(&mut self, look: Look, ctx: &mut Context<Self>) {
        let (store, hub, head) = (self.store.clone(), self.config.hub.clone(), self.groups.head());
        let round = self.groups.default_group().identity().round;
        let read = async move {
            store.open_marks(&hub, GroupKey { name: "", round }, look.after, head, PAGE_MARKS).await
        };
        ctx.spawn(read.into_actor(self).map(move |page, deliveries, ctx| match page {
            Ok(page) => deliveries.looked_for_orphans(look, &page, ctx),
            Err(error) => {
                deliveries.counted.looking = false;
                tracing::warn!(%error, "orphans can't be counted");
            }
        }));
    }

    fn looked_for_orphans(&mut self, look: Look, page: &OpenMarks, ctx: &mut Context<Self>) {
        let group = self.groups.default_group();
        let look = Look {
            after: page.scanned,
            looked: look.looked + page.marks.len(),
            orphans: look.orphans + page.marks.iter().filter(|mark| !group.wants(mark)).count(),
        };
        if page.more && look.looked < MOST_LOOKED {
            self.look_for_orphans(look, ctx);
        } else {
            self.counted.looking = false;
            self.metrics.hub().orphans_waiting.set_len(look.orphans);
        }
    }
}

fn len(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
