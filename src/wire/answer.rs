//! What answers carry: what became of publishes, renewals and events.

use serde::{Deserialize, Serialize};

use crate::event::{Group, RecurringName, Uid};

/// Events of a batch, and of a page, at most.
pub const MOST_EVENTS: usize = 1_000;

/// A renewed leaf.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renewed {
    /// PEM: the leaf, then its intermediate.
    pub cert: String,
    /// PEM: the root; it may be another one than before.
    pub root: String,
    /// When the leaf ends to hold, in milliseconds since 1970.
    pub not_after: i64,
}

/// What became of a publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    /// False: an event of this id and content was there already, nothing was dispatched anew.
    pub fresh: bool,
    /// Milliseconds since 1970, given by the store.
    pub timestamp: i64,
    /// The hub's sequence number; 0 if the event isn't dispatched yet.
    pub seq: u64,
}

/// The life of an event: published by whom and when, claimed by whom, attempts with errors, outcome.
/// Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// Who published it, if it is published.
    pub publisher: Option<Uid>,
    /// When it was published.
    pub published: Option<i64>,
    /// The hub that serves it.
    pub hub: Option<Uid>,
    /// Its sequence number there.
    pub seq: Option<u64>,
    /// When it is or was due, if it was scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled: Option<i64>,
    /// The recurring schedule that published it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recurring: Option<RecurringName>,
    /// `persisted`, `scheduled`, `pending`, `orphan`, `claimed`, `success`, `dead` or `expired`, for the default group.
    pub state: String,
    /// Who holds it or brought it to its end.
    pub consumer: Option<Uid>,
    /// When it ended.
    pub ended: Option<i64>,
    /// Deliveries that ended without success, oldest first; at most the last 20.
    pub attempts: Vec<Attempt>,
}

/// A delivery that ended without success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// 1 is the first.
    pub number: u32,
    /// The group; none is the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Group>,
    /// Who had it.
    pub consumer: Uid,
    /// When it was handed out.
    pub started: i64,
    /// When it ended.
    pub ended: i64,
    /// `nack`, `link lost`, …
    pub reason: String,
    /// The error text that the consumer gave; of a long one the first 256 and the last 768 bytes.
    #[serde(default)]
    pub error: String,
}
