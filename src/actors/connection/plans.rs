//! Schedules of a v1 link, and their cancellation. They stand in the same window as its publishes, and keep their order
//! among them.

use super::{Connection, v1::Gathered};
use crate::{
    actors::journal::{Plan, Planning, Wanted},
    event::{EventId, Fault, NewEvent, code},
    wire::Req,
};

impl Connection {
    /// An event to be published at its time.
    pub(super) fn schedule(&mut self, req: Req, due: i64, event: NewEvent, gathered: &mut Gathered) {
        let weight = event.weight();
        self.plan(req, weight, Wanted::Schedule(due, event), gathered);
    }

    /// A schedule that is to go.
    pub(super) fn cancel_schedule(&mut self, req: Req, id: EventId, gathered: &mut Gathered) {
        if self.config.may_delete {
            self.plan(req, id.len(), Wanted::Cancel(id), gathered);
        } else {
            self.outlet.answer(req, Err(not_allowed()));
        }
    }

    fn plan(&mut self, req: Req, weight: usize, wanted: Wanted, gathered: &mut Gathered) {
        self.send_publishes(gathered);
        if let Some(permit) = self.permit(weight) {
            gathered.plans.push(Planning { req, wanted, permit });
        }
    }

    /// Sends on what was planned so far.
    pub(super) fn send_plans(&mut self, gathered: &mut Gathered) {
        let plans = std::mem::take(&mut gathered.plans);
        if !plans.is_empty() {
            let reqs = plans.iter().map(|plan| plan.req).collect();
            let plan = Plan { outlet: self.outlet.clone(), uid: self.uid.clone(), plans };
            let sent = self.core.journal.offer(plan);
            self.refuse_all(reqs, sent);
        }
    }
}

fn not_allowed() -> Fault {
    Fault::refused(
        code::NOT_ALLOWED,
        "this hub lets no spoke delete or cancel (`spokes.may_delete = false`): ask its operator",
    )
}
