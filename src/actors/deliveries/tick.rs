//! What [`Deliveries`] do by the clock.

use actix::Context;

use super::{Deliveries, effects::Effects};
use crate::{
    actors::{
        clock::{Now, now_micros},
        journal::Note,
    },
    event::Group as Name,
    store::Write,
};

/// What waits is counted again each so many ticks, if others may have changed it.
const COUNT_TICKS: u32 = 60;
/// Cursors are saved each so many ticks, if they moved.
const CURSOR_TICKS: u32 = 5;

impl Deliveries {
    pub(super) fn tick(&mut self, ctx: &mut Context<Self>) {
        let mut effects = Effects::default();
        self.look_at_lease(&mut effects);
        self.groups.want_pages(&mut effects);
        let now = self.now();
        self.groups.due(now, &mut effects);
        self.apply(effects, ctx);
        self.look(ctx);
        self.ask_claims(ctx);
        self.look_for_outcomes(ctx);
        self.ticks += 1;
        if self.ticks.is_multiple_of(COUNT_TICKS) {
            self.groups.recount();
        }
        self.count(ctx);
        self.take_census(ctx);
        self.show_oldest();
        if self.ticks.is_multiple_of(CURSOR_TICKS) {
            self.save_cursors();
        }
    }

    /// The present moment, before something is decided. A hub that stood still for long finds here, and not only with its next
    /// tick, that its lease is in doubt.
    pub(super) fn now(&mut self) -> Now {
        if !self.holds && !self.store.is_lease_fresh() {
            self.hold();
        }
        Now::read()
    }

    fn hold(&mut self) {
        self.holds = true;
        tracing::warn!("nothing is handed out until the hub's lease is renewed");
        self.groups.hold_all();
    }

    /// A hub whose lease wasn't renewed for long hands out nothing: another one may be about to take its place.
    fn look_at_lease(&mut self, effects: &mut Effects) {
        let holds = !self.store.is_lease_fresh();
        if holds == self.holds {
            return;
        }
        if holds {
            self.hold();
        } else {
            self.holds = false;
            let changing = &self.changing;
            self.groups.resume_all(|name| changing.contains(name), Now::read(), effects);
        }
    }

    /// What waits for a retry is as old as its event.
    pub(super) fn show_oldest(&self) {
        let oldest = self.groups.oldest().into_iter().chain(self.counted.oldest_retry).min();
        // Numbers are microseconds.
        let age = oldest.map(|seq| now_micros().saturating_sub(seq) / 1_000_000);
        self.metrics.hub().oldest_pending.set_len(usize::try_from(age.unwrap_or(0)).unwrap_or(usize::MAX));
    }

    /// Saves up to where everything has an outcome. Late or lost, it costs only a longer read at the start.
    pub(super) fn save_cursors(&mut self) {
        let (hub, making, changing) = (&self.config.hub, &self.making, &self.changing);
        // What makes a binding, seeks or purges sets the cursor too, and may be on its way: what memory has now would be
        // written behind it.
        let is_changing = |name: &Option<Name>| making.contains_key(name) || changing.contains(name);
        let unsaved = self.groups.unsaved(is_changing).into_iter();
        let cursor = |(group, seq, known)| Write::Cursor { hub: hub.clone(), group, seq, known: Some(known) };
        let cursors: Vec<_> = unsaved.map(cursor).collect();
        if !cursors.is_empty() {
            self.journal.signal(Note(cursors));
        }
    }
}
