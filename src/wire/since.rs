//! From where on a subscription is served, and what it is told that it can't be served.

use serde::{Deserialize, Serialize};

use crate::event::{EventId, Position};

/// From where on a subscription gets events: those that are stored first, then live ones. JSON: `"all"`, `{"time":ms}`,
/// `{"id":id}` or `{"position":token}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Since {
    /// Everything that the hub has dispatched and still keeps.
    All,
    /// What was dispatched at or after this time, in milliseconds since 1970. One that lies ahead is now.
    Time(i64),
    /// What was dispatched after this event, itself excluded.
    Id(EventId),
    /// What was dispatched after this position: a reader goes on where it ended.
    Position(Position),
}

/// How a subscription wants its events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubscribeOptions {
    /// From where on; none: live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Since>,
}

/// What a subscription asked for and retention has removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedEvents {
    /// The sequence number of the first event that is gone.
    pub from: u64,
    /// That of the last. Between them may be others that are still there.
    pub to: u64,
    /// How many events are gone.
    pub events: u64,
}
