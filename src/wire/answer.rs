//! What answers carry: what became of publishes, renewals and events.

use serde::{Deserialize, Serialize};

use super::{Association, GroupTrace};
use crate::event::{EventId, Group, RecurringName, Uid};

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
    /// How the event stands, if it was there already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<PublishState>,
}

impl Published {
    /// An event that wasn't there before.
    #[must_use]
    pub fn fresh(timestamp: i64, seq: u64) -> Self {
        Self { fresh: true, timestamp, seq, state: None }
    }
}

/// How an event stands that is published again, for the default group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum PublishState {
    /// It is stored and not published.
    Persisted,
    /// It is published at its time.
    Scheduled,
    /// It is published and has no outcome yet.
    Pending,
    /// An npm spoke has it.
    Claimed,
    /// A consumer has done it.
    Success,
    /// It failed for good.
    Dead,
    /// Nobody wanted it in time.
    Expired,
}

impl PublishState {
    const ALL: [Self; 7] = [
        Self::Persisted,
        Self::Scheduled,
        Self::Pending,
        Self::Claimed,
        Self::Success,
        Self::Dead,
        Self::Expired,
    ];

    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Persisted => "persisted",
            Self::Scheduled => "scheduled",
            Self::Pending => "pending",
            Self::Claimed => "claimed",
            Self::Success => "success",
            Self::Dead => "dead",
            Self::Expired => "expired",
        }
    }

    /// The state of this word.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

/// What a nudge found of an event that it named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nudged {
    /// The event.
    pub id: EventId,
    /// `taken`: it is published by this nudge. `published`: it was before. `unknown`: no such event is committed;
    /// `unpublished`: it has no row in `event_published`; `scheduled`: it waits for its time; `invalid`: it breaks the
    /// rules for events.
    pub state: String,
    /// What is wrong with it, if it is invalid.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
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
    /// Deliveries that ended without success, oldest first: at most the last 100; of more each group's last ones.
    pub attempts: Vec<Attempt>,
    /// How it stands in each group that wants it, the default one first; at most the first 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupTrace>,
    /// How earlier rounds ended, after which it was redriven: by group and round, at most the first 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redriven: Vec<RoundTrace>,
    /// What it belongs to besides its process: at most the first 100 child processes and as many entities.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub associations: Vec<Association>,
}

/// How a round of an event ended that was redriven since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundTrace {
    /// The group; none is the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Group>,
    /// 1 is the first.
    pub round: u32,
    /// `dead`, or how else it ended.
    pub state: String,
    /// Who had it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer: Option<Uid>,
    /// When it ended, in milliseconds since 1970.
    pub ended: i64,
}

fn first() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_first(round: &u32) -> bool {
    *round == 1
}

/// A delivery that ended without success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// 1 is the first of its round.
    pub number: u32,
    /// 1 at first, one more after each redrive.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub round: u32,
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
    /// The error text that the consumer gave. Where several make more than 128 KiB together: of a long one the first 256
    /// and the last 768 bytes.
    #[serde(default)]
    pub error: String,
}
