//! What a v1 link writes: publishes within its window, and changes to what is stored.

use std::time::Duration;

use super::{
    Connection,
    v1::{FULL_WAIT, Gathered},
};
use crate::{
    actors::{
        collector::Nudge,
        journal::{Amend, Amending, Amendment, Publish, Publishing, Storing},
        outlet::MOST_AMENDMENTS,
    },
    event::{EventId, Fault, code},
    metrics::CutReason,
    wire::{RecurChange, Req},
};

impl Connection {
    /// Takes a schedule; one that takes another's place also takes that away.
    pub(super) fn schedule(&mut self, req: Req, what: Storing, gathered: &mut Gathered) {
        if matches!(what, Storing::Schedule { replaces: Some(_), .. }) && !self.config.may_delete {
            self.outlet.answer(req, Err(not_allowed()));
        } else {
            self.publish(req, what, gathered);
        }
    }

    /// Takes a publish, a batch, a persist or a schedule into the window; a link that goes beyond it is cut.
    pub(super) fn publish(&mut self, req: Req, what: Storing, gathered: &mut Gathered) {
        // The journal gets what the link sent in its order: the changes before it first.
        self.send_changes(std::mem::take(&mut gathered.changes));
        let weight = match &what {
            Storing::Publish(append) | Storing::Persist(append) => append.event.weight(),
            Storing::Schedule { event, .. } => event.weight(),
            Storing::Batch(events) => events.iter().map(|append| append.event.weight()).sum(),
        };
        let welcome = &self.config.welcome.limits;
        let (requests, bytes) = (welcome.window_requests as usize, welcome.window_bytes);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        match self.outlet.window(weight, requests, bytes) {
            Some(permit) => gathered.publishes.push(Publishing { req, what, permit }),
            None => self.outlet.cut(
                CutReason::WindowExceeded,
                Fault::retryable(
                    code::WINDOW_EXCEEDED,
                    format!(
                        "this link published more than its window of {requests} requests or {bytes} bytes: wait \
                         for answers before you send on"
                    ),
                    Duration::from_secs(1),
                ),
            ),
        }
    }

    /// Takes a change to what is stored; beyond what a link may have under way it is refused for now.
    pub(super) fn amend(&mut self, req: Req, what: Amendment, gathered: &mut Gathered) {
        self.send_publishes(std::mem::take(&mut gathered.publishes));
        if takes_away(&what) && !self.config.may_delete {
            self.outlet.answer(req, Err(not_allowed()));
            return;
        }
        match self.outlet.amendment() {
            Some(permit) => gathered.changes.push(Amending { req, what, permit }),
            None => {
                self.outlet.answer(req, Err(too_many()));
            }
        }
    }

    /// Hands a nudge to the collector, behind the publishes before it; its place is among the link's changes.
    pub(super) fn nudge(&mut self, req: Req, ids: Vec<EventId>, gathered: &mut Gathered) {
        self.send_publishes(std::mem::take(&mut gathered.publishes));
        let Some(permit) = self.outlet.amendment() else {
            self.outlet.answer(req, Err(too_many()));
            return;
        };
        let sent = self.core.collector.offer(Nudge { outlet: self.outlet.clone(), req, permit, ids });
        self.refuse_all(vec![req], sent);
    }

    pub(super) fn send_publishes(&mut self, events: Vec<Publishing>) {
        if events.is_empty() {
            return;
        }
        let reqs: Vec<Req> = events.iter().map(|publish| publish.req).collect();
        let publish = Publish { outlet: self.outlet.clone(), publisher: self.uid.clone(), events };
        let sent = self.core.journal.offer(publish);
        self.refuse_all(reqs, sent);
    }

    pub(super) fn send_changes(&mut self, changes: Vec<Amending>) {
        if changes.is_empty() {
            return;
        }
        let reqs: Vec<Req> = changes.iter().map(|change| change.req).collect();
        let amend = Amend { outlet: self.outlet.clone(), by: self.uid.clone(), changes };
        let sent = self.core.journal.offer(amend);
        self.refuse_all(reqs, sent);
    }
}

fn not_allowed() -> Fault {
    let text = "this hub lets no spoke delete, cancel, replace or redrive anything: its operator may set \
                `spokes.may_delete`";
    Fault::refused(code::NOT_ALLOWED, text)
}

fn too_many() -> Fault {
    let text = format!(
        "this link has {MOST_AMENDMENTS} associations, cancels, deletions, nudges and changes of recurring schedules \
         waiting: wait for their answers"
    );
    Fault::retryable(code::HUB_BUSY, text, FULL_WAIT)
}

/// Whether something that stands is gone afterwards, or begins anew.
fn takes_away(what: &Amendment) -> bool {
    match what {
        Amendment::Delete(_)
        | Amendment::Cancel(_)
        | Amendment::Redrive(_)
        | Amendment::RecurChange(_, RecurChange::Remove) => true,
        Amendment::Recur(recur) => recur.replace,
        _ => false,
    }
}
