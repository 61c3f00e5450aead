//! What retention asks, and tells.

use actix::{Context, Handler};

use super::{Deliveries, Expired, HeldOf, HeldSeqs};

impl Handler<HeldOf> for Deliveries {
    type Result = HeldSeqs;

    fn handle(&mut self, message: HeldOf, _: &mut Context<Self>) -> Self::Result {
        let taken = |seq: &u64| self.groups.iter().any(|group| group.is_taken(*seq));
        HeldSeqs(message.0.into_iter().filter(taken).collect())
    }
}

impl Handler<Expired> for Deliveries {
    type Result = ();

    fn handle(&mut self, message: Expired, _: &mut Context<Self>) {
        for id in &message.0 {
            self.tell(id);
        }
    }
}
