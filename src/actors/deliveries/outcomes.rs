//! Who waits for the outcome of an event, and what became of those that were deleted.

use actix::{Context, Handler};

use super::{AwaitOutcome, Deleted, Deliveries, ForgetOutcome, effects::Effects};
use crate::{actors::outlet::Owed, event::EventId};

impl Deliveries {
    /// The event has its outcome, or is gone: the store says which.
    pub(super) fn tell(&mut self, event_id: &EventId) {
        for told in self.awaited.take(event_id, |_| true) {
            // Whoever doesn't wait any more has said so, or is about to.
            let _ = told.send(());
        }
    }
}

impl Handler<AwaitOutcome> for Deliveries {
    type Result = ();

    fn handle(&mut self, message: AwaitOutcome, _: &mut Context<Self>) {
        let AwaitOutcome { who, event_id, told, seated } = message;
        self.awaited.add(event_id, who, told);
        // Whoever doesn't hear it is gone, and is about to say so.
        let _ = seated.send(());
    }
}

impl Handler<ForgetOutcome> for Deliveries {
    type Result = ();

    fn handle(&mut self, message: ForgetOutcome, _: &mut Context<Self>) {
        self.awaited.remove(&message.event_id, message.who);
    }
}

impl Handler<Deleted> for Deliveries {
    type Result = ();

    fn handle(&mut self, message: Deleted, ctx: &mut Context<Self>) {
        let mut effects = Effects::default();
        self.group.deleted(&message.gone, &mut effects);
        self.apply(effects, ctx);
        for gone in &message.gone {
            self.tell(&gone.id);
        }
        message.owed.into_iter().for_each(Owed::give);
    }
}
