//! Changes to events that are stored: associations, and deletions, of which a long one takes many transactions.

use std::time::Duration;

use super::{
    batch::{Job, ReplyTo, Told, mismatch},
    message::{Amending, Amendment},
    redrive,
    sequence::Sequence,
};
use crate::{
    actors::{
        clock::now_millis,
        outlet::{AmendPermit, Outlet, Owed},
    },
    event::{Fault, Uid, code},
    metrics::HubMetrics,
    store::{Delete, Deleted, StoreError, Write, Written},
    wire::{Answer, Req},
};

/// Events that one transaction deletes: it is over in well under the time that a publisher minds.
const MOST_DELETED: usize = 1_000;
/// What a change counts for in the queue, in bytes.
pub const WEIGHT: usize = 512;

/// A deletion under way.
#[derive(Debug)]
pub struct Deleting {
    outlet: Outlet,
    req: Req,
    permit: AmendPermit,
    /// Events that earlier transactions have deleted.
    gone: u64,
}

/// A change as a job for the queue.
pub fn job(outlet: &Outlet, by: &Uid, hub: &Uid, change: Amending) -> Job {
    let Amending { req, what, permit } = change;
    let outlet = outlet.clone();
    let mut weight = WEIGHT;
    let (by, hub) = (by.clone(), hub.clone());
    let (write, reply) = match what {
        Amendment::Recur(recur) => {
            weight += recur.data.len();
            (Write::Recur { recur, by, hub, at: now_millis() }, ReplyTo::Amender { outlet, req, permit })
        }
        Amendment::RecurChange(name, change) => (
            Write::RecurChange { name, change, by, hub, at: now_millis() },
            ReplyTo::Amender { outlet, req, permit },
        ),
        Amendment::RunExtra(name, id) => (
            Write::RunExtra { name, id, seq: 0, timestamp: 0, by, hub },
            ReplyTo::Amender { outlet, req, permit },
        ),
        Amendment::Associate(event_id, with) => {
            (Write::Associate { event_id, with }, ReplyTo::Amender { outlet, req, permit })
        }
        Amendment::Dissociate(event_id, with) => {
            (Write::Dissociate { event_id, with }, ReplyTo::Amender { outlet, req, permit })
        }
        Amendment::Cancel(event_id) => {
            (Write::Cancel { event_id, by, hub, at: now_millis() }, ReplyTo::Amender { outlet, req, permit })
        }
        Amendment::Delete(what) => {
            let delete = Delete { what, before: None, most: MOST_DELETED, by, hub, at: now_millis() };
            (Write::Delete(delete), ReplyTo::Deleter(Deleting { outlet, req, permit, gone: 0 }))
        }
        Amendment::Redrive(what) => redrive::first(what, by, hub, (outlet, req, permit)),
    };
    Job { write, weight, reply }
}

/// Refuses changes that never reach the queue.
pub fn refuse(outlet: &Outlet, changes: Vec<Amending>, fault: &Fault) {
    for Amending { req, permit, .. } in changes {
        outlet.answer(req, Err(fault.clone()));
        drop(permit);
    }
}

/// With its first transaction a deletion gets its place among what is stored: what comes later stays.
pub fn place(delete: &mut Delete, sequence: &mut Sequence, now: u64) {
    delete.before.get_or_insert_with(|| sequence.part(now));
}

/// Answers a deletion that is at its end; one that isn't goes on.
pub fn deleted(
    mut deleting: Deleting,
    result: Result<Written, StoreError>,
    told: &mut Told,
    metrics: &HubMetrics,
) {
    match result {
        Ok(Written::Deleted(Deleted { gone, rest })) => {
            deleting.gone += gone.len() as u64;
            metrics.deleted.add(gone.len() as u64);
            let waited = gone.iter().filter(|gone| gone.scheduled).count();
            metrics.schedules_waiting.add(-i64::try_from(waited).unwrap_or(0));
            told.gone.extend(gone);
            match rest {
                Some(rest) => told.again.push((Write::Delete(rest), ReplyTo::Deleter(deleting))),
                None => {
                    let Deleting { outlet, req, permit, gone } = deleting;
                    told.owed.push(Owed { outlet, req, answer: Answer::Deleted(gone), permit });
                }
            }
        }
        Ok(other) => refused(deleting, mismatch(&other)),
        Err(error) => refused(deleting, error.into()),
    }
}

/// The hub is stopping: who asked for it asks again for the rest.
pub fn interrupt(reply: ReplyTo) {
    let fault = |message| Fault::retryable(code::HUB_DRAINING, message, Duration::from_secs(1));
    match reply {
        ReplyTo::Deleter(deleting) => {
            let message = "the hub is stopping and deletes no more: delete the log again once it is back";
            refused(deleting, fault(message));
        }
        ReplyTo::Redriver(redriving) => {
            let message = "the hub is stopping and redrives no more: redrive the rest once it is back";
            redriving.refuse(fault(message));
        }
        _ => {}
    }
}

fn refused(deleting: Deleting, fault: Fault) {
    let Deleting { outlet, req, permit, gone } = deleting;
    let Fault { code, mut message, retry } = fault;
    if gone > 0 {
        message += &format!(" ({gone} events of the log are gone already)");
    }
    outlet.answer(req, Err(Fault { code, message, retry }));
    drop(permit);
}
