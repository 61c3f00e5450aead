//! What is scheduled, as clients list it.

use serde::{Deserialize, Serialize};

use crate::event::{Domain, EventId, Name, Pattern, Pid};

/// Which events that wait for their time. What is none doesn't narrow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchedulesQuery {
    /// Of which domains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<Pattern>,
    /// Of which names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Pattern>,
    /// Due at or after this, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<i64>,
    /// Due before this, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<i64>,
}

/// An event that waits for its time. Its data aren't told: it can be read by its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduledEvent {
    /// The event.
    pub id: EventId,
    /// When it is to be published, in milliseconds since 1970.
    pub due: i64,
    /// Its domain.
    pub domain: Domain,
    /// Its name.
    pub name: Name,
    /// Its process.
    pub pid: Pid,
    /// The event that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rid: Option<EventId>,
}
