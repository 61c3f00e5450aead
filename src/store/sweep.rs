//! What retention asks the journal to do, and what came of it.

use std::sync::Arc;

use super::Gone;
use crate::event::{Domain, EventId, Kept, Policies, Uid};

/// Events of one domain that are to expire, or to go, if that still holds when it is written.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// The hub that does it.
    pub hub: Uid,
    /// The domain of all of them.
    pub domain: Domain,
    /// Which.
    pub ids: Vec<EventId>,
    /// What is wanted of each domain.
    pub policies: Arc<Policies>,
    /// When, in milliseconds since 1970.
    pub at: i64,
}

/// What a [`Sweep`] did. What isn't in it stays as it was: it has changed meanwhile, or an event that stays answers it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swept {
    /// Events that have expired.
    pub expired: Vec<EventId>,
    /// Events that are gone, and how each stood.
    pub removed: Vec<(Kept, Gone)>,
}
