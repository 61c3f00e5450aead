//! What [`Deliveries`] do by the clock.

use actix::Context;

use super::{Deliveries, effects::Effects};
use crate::{
    actors::{clock::Now, journal::Note},
    store::Write,
};

/// What waits is counted again each so many ticks, if others may have changed it.
const COUNT_TICKS: u32 = 60;
/// Cursors are saved each so many ticks, if they moved.
const CURSOR_TICKS: u32 = 5;

impl Deliveries {
    pub(super) fn tick(&mut self, ctx: &mut Context<Self>) {
        let mut effects = Effects::default();
        self.group.want_pages(&mut effects);
        self.group.due(Now::read(), &mut effects);
        self.apply(effects, ctx);
        self.look(ctx);
        self.ask_claims(ctx);
        self.look_for_outcomes(ctx);
        self.ticks += 1;
        if self.ticks.is_multiple_of(COUNT_TICKS) {
            self.group.recount();
        }
        self.count(ctx);
        if self.ticks.is_multiple_of(CURSOR_TICKS) {
            self.save_cursor();
        }
    }

    /// Saves up to where everything has an outcome. Late or lost, it costs only a longer read at the start.
    pub(super) fn save_cursor(&mut self) {
        if self.making > 0 {
            return;
        }
        if let Some(floor) = self.group.floor().filter(|floor| *floor > self.saved) {
            self.saved = floor;
            let cursor = Write::Cursor { hub: self.config.hub.clone(), group: String::new(), seq: floor };
            self.journal.signal(Note(vec![cursor]));
        }
    }
}
