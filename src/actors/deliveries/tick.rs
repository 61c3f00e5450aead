//! What [`Deliveries`] do by the clock.

use actix::Context;

use super::{Deliveries, effects::Effects, group::Group};
use crate::{
    actors::{clock::now_millis as now, journal::Note},
    store::Write,
};

/// What waits is counted again each so many ticks, if others may have changed it.
const COUNT_TICKS: u32 = 60;
/// Cursors are saved each so many ticks, if they moved.
const CURSOR_TICKS: u32 = 5;

impl Deliveries {
    pub(super) fn tick(&mut self, ctx: &mut Context<Self>) {
        let mut effects = Effects::default();
        self.groups.want_pages(&mut effects);
        self.groups.due(now(), &mut effects);
        self.apply(effects, ctx);
        self.look(ctx);
        self.ask_claims(ctx);
        self.look_for_outcomes(ctx);
        self.ticks += 1;
        if self.ticks.is_multiple_of(COUNT_TICKS) {
            self.groups.recount();
        }
        self.count(ctx);
        if self.ticks.is_multiple_of(CURSOR_TICKS) {
            self.save_cursors();
        }
    }

    /// Saves up to where everything has an outcome. Late or lost, it costs only a longer read at the start.
    pub(super) fn save_cursors(&mut self) {
        let hub = &self.config.hub;
        let save = |group: &mut Group| {
            let seq = group.unsaved()?;
            let group = group.identity().name.as_ref().map(ToString::to_string).unwrap_or_default();
            Some(Write::Cursor { hub: hub.clone(), group, seq })
        };
        let cursors: Vec<_> = self.groups.iter_mut().filter_map(save).collect();
        if !cursors.is_empty() {
            self.journal.signal(Note(cursors));
        }
    }
}
