//! What a [`Registry`] tells about itself.

use actix::{AsyncContext, Handler, fut::wrap_future};

use super::{Registry, Wanted, Wanting};
use crate::actors::snapshot::{Snapshot, Stall, State};

impl Handler<Snapshot> for Registry {
    type Result = State;

    fn handle(&mut self, _: Snapshot, _: &mut Self::Context) -> Self::Result {
        State::of(&self.routes.state())
    }
}

impl Handler<Wanting> for Registry {
    type Result = Wanted;

    fn handle(&mut self, message: Wanting, _: &mut Self::Context) -> Self::Result {
        Wanted(message.0.iter().map(|link| (*link, self.routes.wishes_of(*link))).collect())
    }
}

impl Handler<Stall> for Registry {
    type Result = ();

    fn handle(&mut self, message: Stall, ctx: &mut Self::Context) {
        ctx.wait(wrap_future::<_, Self>(tokio::time::sleep(message.0)));
    }
}
