//! What [`Deliveries`] do by the clock.

use actix::Context;

use super::{Deliveries, effects::Effects, group::Group};
use crate::{
    actors::{
        clock::{Now, now_micros},
        journal::Note,
    },
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
        self.groups.due(Now::read(), &mut effects);
        self.apply(effects, ctx);
        self.look(ctx);
        self.ask_claims(ctx);
        self.look_for_outcomes(ctx);
        self.ticks += 1;
        if self.ticks.is_multiple_of(COUNT_TICKS) {
            self.groups.recount();
        }
        self.count(ctx);
        self.show_oldest();
        if self.ticks.is_multiple_of(CURSOR_TICKS) {
            self.save_cursors();
        }
    }

    fn show_oldest(&self) {
        // Numbers are microseconds.
        let age = self.groups.oldest().map(|seq| now_micros().saturating_sub(seq) / 1_000_000);
        self.metrics.hub().oldest_pending.set_len(usize::try_from(age.unwrap_or(0)).unwrap_or(usize::MAX));
    }

    /// Saves up to where everything has an outcome. Late or lost, it costs only a longer read at the start.
    pub(super) fn save_cursors(&mut self) {
        let hub = &self.config.hub;
        let making = &self.making;
        let save = |group: &mut Group| {
            if making.contains_key(&group.identity().name) {
                return None;
            }
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
