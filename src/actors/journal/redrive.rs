//! Dead events that are tried again, of which many take several transactions.

use super::batch::{ReplyTo, Told, mismatch};
use crate::{
    actors::{
        clock::now_millis,
        outlet::{AmendPermit, Outlet},
    },
    event::{Fault, Uid},
    store::{Redriven, StoreError, Write, Written},
    wire::{Answer, Redrive, Req},
};

/// Events that one transaction tries again.
const MOST_REDRIVEN: usize = 1_000;

/// A redrive under way.
#[derive(Debug)]
pub struct Redriving {
    outlet: Outlet,
    req: Req,
    permit: AmendPermit,
    what: Redrive,
    by: Uid,
    hub: Uid,
    /// Events that earlier transactions have taken.
    events: u64,
}

/// Its first transaction.
pub fn first(
    what: Redrive,
    by: Uid,
    hub: Uid,
    (outlet, req, permit): (Outlet, Req, AmendPermit),
) -> (Write, ReplyTo) {
    let redriving = Redriving { outlet, req, permit, what, by, hub, events: 0 };
    (redriving.part(0), ReplyTo::Redriver(redriving))
}

/// Answers a redrive that is at its end; one that isn't goes on. Deliveries hear of each part.
pub fn redriven(mut redriving: Redriving, result: Result<Written, StoreError>, told: &mut Told) {
    match result {
        Ok(Written::Redriven(Redriven { events, more, after })) => {
            redriving.events += events;
            if events > 0 && !told.redriven.contains(&redriving.what.group) {
                told.redriven.push(redriving.what.group.clone());
            }
            if more {
                told.again.push((redriving.part(after), ReplyTo::Redriver(redriving)));
            } else {
                let Redriving { outlet, req, permit, events, .. } = redriving;
                outlet.answer(req, Ok(Answer::Redriven(events)));
                drop(permit);
            }
        }
        Ok(other) => redriving.refuse(mismatch(&other)),
        Err(error) => redriving.refuse(error.into()),
    }
}

impl Redriving {
    fn part(&self, after: u64) -> Write {
        let (what, hub, by) = (self.what.clone(), self.hub.clone(), self.by.clone());
        Write::Redrive { what, hub, at: now_millis(), by, most: MOST_REDRIVEN, after, first: 0 }
    }

    /// It ends here.
    pub fn refuse(self, fault: Fault) {
        let Fault { code, mut message, retry } = fault;
        if self.events > 0 {
            message += &format!(" ({} events are tried again already)", self.events);
        }
        self.outlet.answer(self.req, Err(Fault { code, message, retry }));
    }
}
