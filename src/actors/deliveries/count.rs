//! Counting what waits: in the background, page by page, whenever there is reason to.

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};

use super::{Deliveries, groups::GroupNo, pending::MarksWanted};

/// Events of one page: quick to read, so that other readers have their turn.
pub(super) const PAGE_MARKS: usize = if cfg!(test) { 4 } else { 4_096 };

impl Deliveries {
    /// Begins to count, if that is wanted and not under way: one group after the other.
    pub(super) fn count(&mut self, ctx: &mut Context<Self>) {
        if self.counting {
            return;
        }
        match self.groups.want_marks() {
            Some((no, marks)) => self.read_marks(no, marks, ctx),
            // It may have become known without a look into the database.
            None => self.show_pending(),
        }
    }

    /// Until it is known the gauge stays as it is: after a restart of the core at the last number.
    pub(super) fn show_pending(&self) {
        if let Some(pending) = self.groups.pending() {
            self.metrics.hub().pending.set_len(usize::try_from(pending).unwrap_or(usize::MAX));
        }
    }

    fn read_marks(&mut self, no: GroupNo, wanted: MarksWanted, ctx: &mut Context<Self>) {
        let (store, hub) = (self.store.clone(), self.config.hub.clone());
        let MarksWanted { after, until } = wanted;
        let Some(group) = self.groups.get(no).map(|group| group.identity().clone()) else { return };
        self.counting = true;
        let read = async move { store.open_marks(&hub, group.key(), after, until, PAGE_MARKS).await };
        ctx.spawn(read.into_actor(self).map(move |read, deliveries, ctx| {
            deliveries.counting = false;
            match read {
                Ok(page) => {
                    match deliveries.groups.marks(no, &page.marks, page.more.then_some(page.scanned)) {
                        Some(next) => deliveries.read_marks(no, next, ctx),
                        None => deliveries.count(ctx),
                    }
                }
                Err(error) => {
                    // The next tick asks again.
                    tracing::warn!(%error, "what waits can't be counted");
                    deliveries.groups.marks_failed(no);
                }
            }
        }));
    }
}
