//! What the [`Collector`](super::Collector) receives, and whom it answers.

use crate::{
    actors::{
        mail::mail,
        outlet::{AmendPermit, Outlet},
    },
    event::{EventId, Fault},
    wire::{Answer, Req},
};

/// A link says that there is something to collect. Answered through the outlet.
#[derive(Debug)]
pub struct Nudge {
    /// The link.
    pub outlet: Outlet,
    /// Its request.
    pub req: Req,
    /// Its place among the link's changes.
    pub permit: AmendPermit,
    /// These, whatever their age; none: all that is old enough.
    pub ids: Vec<EventId>,
}
mail!(Nudge => ());

/// Nothing more is collected: the hub is stopping. What is left is found at the next start.
#[derive(Debug)]
pub struct Drain;
mail!(Drain => ());

/// Ends the actor by a panic, to show that nothing is lost by one.
#[derive(Debug)]
pub struct Panic;
mail!(Panic => ());

/// Who is to be answered.
#[derive(Debug)]
pub(super) struct Nudger {
    pub(super) outlet: Outlet,
    pub(super) req: Req,
    /// Freed with the answer.
    pub(super) _permit: AmendPermit,
}

impl Nudger {
    pub(super) fn answer(self, answer: Result<Answer, Fault>) {
        self.outlet.answer(self.req, answer);
    }
}
