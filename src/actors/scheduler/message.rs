//! What the [`Scheduler`](super::Scheduler) receives.

use crate::{actors::mail::mail, event::RecurringName, store::Due};

/// Events were scheduled, and committed.
#[derive(Debug)]
pub struct Scheduled(pub Vec<Due>);
mail!(Scheduled => ());

/// Recurring schedules were made, changed or run: when they are due next.
#[derive(Debug)]
pub struct Advanced(pub Vec<Due<RecurringName>>);
mail!(Advanced => ());

/// Nothing more is run: the hub is stopping. What is due meanwhile runs at the next start.
#[derive(Debug)]
pub struct Drain;
mail!(Drain => ());

/// Ends the actor by a panic, to show that nothing is lost by one.
#[derive(Debug)]
pub struct Panic;
mail!(Panic => ());
