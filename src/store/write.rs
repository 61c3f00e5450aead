//! What the Journal writes, and what it gets back.

use crate::{
    event::{Event, EventId, Outcome, Pattern, Uid},
    wire::{Attempt, Published},
};

/// One thing to write. Many of them share a transaction; see [`Store::commit`](super::Store::commit).
#[derive(Debug, Clone)]
pub enum Write {
    /// Store an event and give it to a hub.
    Publish {
        /// The event; its timestamp is the time of the commit as the caller sees it.
        event: Event,
        /// Its sequence number on `hub`.
        seq: u64,
        /// Who publishes it.
        publisher: Uid,
        /// The hub that dispatches it. Its row in `hub` must exist.
        hub: Uid,
    },
    /// Record the outcome of an event for the default group.
    Finish {
        /// Which event.
        event_id: EventId,
        /// How it ended.
        outcome: Outcome,
        /// Who brought it to its end.
        consumer: Uid,
        /// When, in milliseconds since 1970. Of one batch's finishes with the same outcome and consumer,
        /// all get the latest of their times.
        at: i64,
        /// The delivery that failed for good, if it did.
        attempt: Option<AttemptRow>,
    },
    /// Record a delivery that ended without an outcome.
    Attempt(AttemptRow),
    /// Make a binding, or find the one that already has this group, domain and name. A new one lowers the
    /// group's cursors below its `start_seq`. `id` is not looked at.
    Bind(Binding),
    /// Remove a binding.
    Unbind {
        /// Which.
        id: i64,
    },
    /// Save how far a group has come.
    Cursor {
        /// On which hub.
        hub: Uid,
        /// The group; empty is the default one.
        group: String,
        /// Everything up to this sequence number needs no second look.
        seq: u64,
    },
    /// A line for the `log` table. Agent and message are cut to what the table holds.
    Log {
        /// When, in milliseconds since 1970.
        at: i64,
        /// Who says it: the hub's id.
        agent: String,
        /// What happened.
        message: String,
        /// More about it, as a JSON object; `{}` if there is nothing more to say.
        error: String,
    },
}

/// What became of a [`Write`].
#[derive(Debug, Clone, PartialEq)]
pub enum Written {
    /// A publish: with `fresh = false` the time and number of the event that was there before.
    Published(Published),
    /// The outcome is recorded, and it is this one.
    Finished,
    /// The binding as it stands.
    Bound(Binding),
    /// Done.
    Done,
}

/// Wants events for a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// Given by the store.
    pub id: i64,
    /// The group; empty is the default one.
    pub group: String,
    /// Of which domains.
    pub domain: Pattern,
    /// Of which names.
    pub name: Pattern,
    /// From which sequence number on, itself included.
    pub start_seq: u64,
    /// When it was made, in milliseconds since 1970.
    pub created: i64,
}

impl Binding {
    /// Whether it wants an event of this domain and name with this sequence number.
    #[must_use]
    pub fn wants(&self, domain: &str, name: &str, seq: u64) -> bool {
        seq >= self.start_seq && self.domain.matches(domain) && self.name.matches(name)
    }
}

/// A delivery that ended without success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRow {
    /// Of which event.
    pub event_id: EventId,
    /// To which group; empty is the default one.
    pub group: String,
    /// The first round is 1; a redrive begins the next.
    pub round: u32,
    /// Which delivery of the round; the first is 1.
    pub number: u32,
    /// Who had it.
    pub consumer: Uid,
    /// When it was handed out, in milliseconds since 1970.
    pub started: i64,
    /// When it ended, in milliseconds since 1970.
    pub ended: i64,
    /// `nack`, `link lost`, …: at most 64 characters are kept.
    pub reason: String,
    /// What the consumer said about it.
    pub error: String,
}

impl From<AttemptRow> for Attempt {
    /// For people: the error's text is cut to 1 KiB.
    fn from(row: AttemptRow) -> Self {
        Attempt {
            number: row.number,
            group: (!row.group.is_empty()).then(|| crate::event::Group::from_stored(row.group)),
            consumer: row.consumer,
            started: row.started,
            ended: row.ended,
            reason: row.reason,
            error: super::sql::cut(row.error, 1024),
        }
    }
}
