//! What [`Deliveries`] answer about how groups stand, and who holds what.

use actix::Handler;

use super::{
    Deliveries,
    message::{GroupStanding, Holder, Holders, Standings},
};
use crate::actors::clock::Now;

impl Handler<Holders> for Deliveries {
    type Result = Vec<Holder>;

    fn handle(&mut self, message: Holders, _: &mut Self::Context) -> Self::Result {
        self.groups.holders(message.0, Now::read())
    }
}

impl Handler<Standings> for Deliveries {
    type Result = Vec<GroupStanding>;

    fn handle(&mut self, message: Standings, _: &mut Self::Context) -> Self::Result {
        self.groups.standings(message.group.as_deref())
    }
}
