//! Ids, names, patterns, events and outcomes. To parse is to validate: a value of one of these types
//! needs no second look.
//!
//! Nothing here does I/O, and every other module may use it.

mod data;
mod expect;
mod fault;
mod index;
mod pattern;
mod policy;
mod position;
mod state;
mod text;

pub use data::{Data, InvalidData, MAX_DEPTH};
pub use expect::{Append, Expect, LogConflict};
pub use fault::{Fault, Retry, code};
pub use index::PatternIndex;
pub use pattern::{InvalidPattern, Pattern};
pub use policy::{DomainStart, Keep, Kept, Policies, Policy, Start, has_started};
pub use position::{InvalidPosition, Position};
pub use state::{State, compose};
pub use text::{Domain, Eid, EventId, Group, InvalidText, MAX_TEXT, Name, Pid, RecurringName, Uid};

/// What a publisher hands in: an event before the store gives it its time.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct NewEvent {
    /// Chosen by the publisher; publishing the same id and content again is the same publish.
    pub id: EventId,
    /// The domain, for example `orders`.
    pub domain: Domain,
    /// What happened, for example `created`.
    pub name: Name,
    /// The process whose event log this belongs to: an order, a user.
    pub pid: Pid,
    /// The event that this one answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rid: Option<EventId>,
    /// The payload, JSON.
    pub data: Data,
}

impl NewEvent {
    /// The bytes that this event counts for in windows and limits: its texts and its data.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.id.len()
            + self.domain.len()
            + self.name.len()
            + self.pid.len()
            + self.rid.as_ref().map_or(0, |rid| rid.len())
            + self.data.len()
    }

    /// The first field in which `self` and `other` differ, if they do. JSON compares as a value: key
    /// order doesn't matter, numbers compare by value.
    #[must_use]
    pub fn differs_from(&self, other: &NewEvent) -> Option<&'static str> {
        if self.domain != other.domain {
            Some("domain")
        } else if self.name != other.name {
            Some("name")
        } else if self.pid != other.pid {
            Some("pid")
        } else if self.rid != other.rid {
            Some("rid")
        } else if !self.data.same_value(&other.data) {
            Some("data")
        } else {
            None
        }
    }
}

/// A stored event. Serialized, it is the JSON object that people and programs see.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Event {
    /// Its id, unique in the store.
    pub id: EventId,
    /// When the store took it, or, if it was scheduled, when it ran; in milliseconds since 1970 (UTC).
    pub timestamp: i64,
    /// The domain.
    pub domain: Domain,
    /// What happened.
    pub name: Name,
    /// The process whose log it belongs to.
    pub pid: Pid,
    /// The event that it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rid: Option<EventId>,
    /// The payload, JSON.
    pub data: Data,
}

impl Event {
    /// The bytes that this event counts for in windows and limits: its texts and its data.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.id.len()
            + self.domain.len()
            + self.name.len()
            + self.pid.len()
            + self.rid.as_ref().map_or(0, |rid| rid.len())
            + self.data.len()
    }
}

/// How the work on one event ended, for one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// A consumer acknowledged it.
    Success,
    /// It failed for good.
    Dead,
    /// Nobody wanted it in time.
    Expired,
}

impl Outcome {
    /// The word for people and for JSON: `success`, `dead`, `expired`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Success => "success",
            Outcome::Dead => "dead",
            Outcome::Expired => "expired",
        }
    }
}
