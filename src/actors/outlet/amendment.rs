//! What bounds the changes to stored events that a link has under way, and how the last of them is answered.

use std::sync::{Arc, atomic::Ordering};

use super::{LinkGauge, Outlet};
use crate::wire::{Answer, Req};

/// Changes to stored events that a link may have under way.
pub const MOST_AMENDMENTS: usize = 256;

/// A place among the changes to stored events that a link has under way; freed when dropped.
#[derive(Debug)]
pub struct AmendPermit(Arc<LinkGauge>);

impl Drop for AmendPermit {
    fn drop(&mut self) {
        self.0.amendments.fetch_sub(1, Ordering::AcqRel);
        self.0.drained.notify_waiters();
    }
}

/// An answer that whoever comes last gives, once all have done their part.
#[derive(Debug)]
pub struct Owed {
    /// The link.
    pub outlet: Outlet,
    /// Its request.
    pub req: Req,
    /// What is to be said.
    pub answer: Answer,
    /// Its place among the link's changes.
    pub permit: AmendPermit,
}

impl Owed {
    /// Says it.
    pub fn give(self) {
        self.outlet.answer(self.req, Ok(self.answer));
    }
}

impl Outlet {
    /// A place for a change to stored events; none if [`MOST_AMENDMENTS`] are under way.
    #[must_use]
    pub fn amendment(&self) -> Option<AmendPermit> {
        let open = self.gauge.amendments.fetch_add(1, Ordering::AcqRel);
        let permit = AmendPermit(self.gauge.clone());
        (open < MOST_AMENDMENTS).then_some(permit)
    }
}
