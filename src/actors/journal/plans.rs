//! What the [`Journal`] is asked about schedules.

use actix::Handler;
use tokio::sync::oneshot;

use super::{
    Journal,
    batch::{self, ReplyTo},
};
use crate::{
    actors::{
        clock::now_millis,
        mail::mail,
        outlet::{Outlet, WindowPermit},
    },
    event::{Event, EventId, Fault, NewEvent, Uid},
    metrics::Refusal,
    store::{Due, Write},
    wire::Req,
};

/// What is wanted of a schedule.
#[derive(Debug)]
pub enum Wanted {
    /// Publish an event at its time, in milliseconds since 1970.
    Schedule(i64, NewEvent),
    /// Remove an event whose time hasn't come.
    Cancel(EventId),
}

/// One request of a link.
#[derive(Debug)]
pub struct Planning {
    /// Its number.
    pub req: Req,
    /// What it wants.
    pub wanted: Wanted,
    /// Its place in the link's window.
    pub permit: WindowPermit,
}

/// What a link scheduled and cancelled with one read, in order. Each is answered through the outlet.
#[derive(Debug)]
pub struct Plan {
    /// The link.
    pub outlet: Outlet,
    /// Who it is, by its certificate.
    pub uid: Uid,
    /// The requests.
    pub plans: Vec<Planning>,
}
mail!(Plan => ());

/// Publishes what is due, once. One at a time.
#[derive(Debug)]
pub struct RunDue {
    /// The events, in the order in which they are to run.
    pub due: Vec<Due>,
    /// Gets the number of those that ran.
    pub done: oneshot::Sender<Result<usize, Fault>>,
}
mail!(RunDue => ());

impl Handler<Plan> for Journal {
    type Result = ();

    fn handle(&mut self, message: Plan, ctx: &mut Self::Context) {
        let Plan { outlet, uid, plans } = message;
        if let Some(fault) = self.refusal() {
            self.metrics.hub().refused.of(Refusal::of(&fault.code)).add(plans.len() as u64);
            let refused = plans.into_iter().map(|plan| (plan.req, plan.permit));
            batch::refuse(&outlet, refused, &fault);
            return;
        }
        for Planning { req, wanted, permit } in plans {
            let outlet = outlet.clone();
            match wanted {
                Wanted::Schedule(due, event) => {
                    let weight = event.weight();
                    let NewEvent { id, domain, name, pid, rid, data } = event;
                    // Its time comes with its transaction.
                    let event = Event { id, timestamp: 0, domain, name, pid, rid, data };
                    let write = Write::Schedule { event, due, publisher: uid.clone() };
                    self.enqueue(write, weight, ReplyTo::Publisher { outlet, req, permit });
                }
                Wanted::Cancel(event_id) => {
                    let hub = self.config.hub.clone();
                    let write = Write::Cancel { event_id, by: uid.clone(), hub, at: now_millis() };
                    self.enqueue(write, 0, ReplyTo::Canceller { outlet, req, permit });
                }
            }
        }
        self.pump(ctx);
    }
}

impl Handler<RunDue> for Journal {
    type Result = ();

    fn handle(&mut self, message: RunDue, ctx: &mut Self::Context) {
        let RunDue { due, done } = message;
        let bytes = due.iter().map(|due| due.bytes).sum();
        let events = due.into_iter().map(|due| (due.id, 0)).collect();
        let write = Write::RunDue { events, hub: self.config.hub.clone() };
        self.enqueue(write, bytes, ReplyTo::Scheduler(done));
        self.pump(ctx);
    }
}
