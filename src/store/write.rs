//! What the Journal writes, and what it gets back.

mod attempt;

use super::{
    adoption::{Adopted, AdoptionWork},
    bindings::KnownBindings,
    deletion::{Delete, Deleted},
    groups::{Letter, Redriven},
    schedules::Due,
    sweep::{Sweep, Swept},
};
use crate::{
    event::{DomainStart, Event, EventId, Expect, Outcome, Pattern, Pid, RecurringName, Uid, has_started},
    wire::{Association, GroupSettings, Made, Published, Recur, RecurChange, Redrive},
};

pub use attempt::AttemptRow;
pub(super) use attempt::ends_of;

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
        /// How the log of its process must end for it to be stored. Of one that is stored nothing is expected.
        expect: Option<Expect>,
    },
    /// Publish several events, or none of them. One may answer another that stands before it.
    Batch {
        /// The events, in their order.
        events: Vec<Placed>,
        /// Who publishes them.
        publisher: Uid,
        /// The hub that dispatches them. Its row in `hub` must exist.
        hub: Uid,
    },
    /// Store an event without giving it to a hub. Answered as a publish with the number 0, unless it is published
    /// already. The log of its process must end as expected, if something is.
    Persist(Event, Option<Expect>),
    /// Record the outcome of an event in a group. Answered by [`Written::Finished`].
    Finish {
        /// Which event.
        event_id: EventId,
        /// Its number: an event that was deleted and published anew has another.
        seq: u64,
        /// How it ended.
        outcome: Outcome,
        /// Who brought it to its end.
        consumer: Uid,
        /// When, in milliseconds since 1970. Of one batch's finishes with the same outcome and consumer,
        /// all get the latest of their times.
        at: i64,
        /// The delivery that failed for good, if it did.
        attempt: Option<AttemptRow>,
        /// The hub that serves the event, and a letter.
        hub: Uid,
        /// In which group; empty is the default one.
        group: String,
        /// In which round; 1 is the first.
        round: u32,
        /// It waited for an attempt: its row in `v1_retry` is to go.
        retried: bool,
        /// What to publish with it, unless an event of that id is there already.
        letter: Option<Box<Letter>>,
    },
    /// Record a delivery that ended without an outcome.
    Attempt(AttemptRow),
    /// Record a delivery that ended without an outcome, and that the event waits for its next attempt. Refused like a
    /// [`Write::Finish`] if the event has the outcome of that round, or is gone.
    Retry {
        /// The delivery: its group, round and number are those of the row in `v1_retry` too.
        attempt: AttemptRow,
        /// The hub that serves the event.
        hub: Uid,
        /// Its number there.
        seq: u64,
        /// Its number on the hub that dispatched it: the same, unless the one that serves it has adopted it.
        original: u64,
        /// Its process.
        pid: Pid,
        /// When it is to be tried again, in milliseconds since 1970.
        due: i64,
    },
    /// Try dead events again, in a new round; those of other hubs are left to them, unless this one has adopted them. An event that an npm spoke claimed
    /// and left is taken back, if it is named. Answered by [`Written::Redriven`].
    Redrive {
        /// Which.
        what: Redrive,
        /// The hub that serves them.
        hub: Uid,
        /// When, in milliseconds since 1970: they are due at once.
        at: i64,
        /// Who wants it, for the `log` table.
        by: Uid,
        /// At most so many in one transaction, the oldest.
        most: usize,
        /// Only those above this number: 0 at first, then [`Redriven::after`]. What died again meanwhile isn't tried
        /// twice.
        after: u64,
        /// The first of `most` numbers of `hub`, for those that another hub has dispatched.
        first: u64,
    },
    /// Go on with a part of the work of a hub that this one has [adopted](super::Store::take_over). Answered by
    /// [`Written::Adopted`].
    Adopt {
        /// Which part.
        work: AdoptionWork,
        /// The hub that goes on with it.
        hub: Uid,
        /// When, in milliseconds since 1970: what nobody had yet is due at once.
        at: i64,
        /// At most so many events in one transaction.
        most: usize,
        /// The first of so many numbers of `hub`.
        first: u64,
    },
    /// Set what a group does with events that fail; makes a group that isn't there.
    SetGroup {
        /// Its name; empty is the default group.
        name: String,
        /// All of its settings, as they are from now on.
        settings: GroupSettings,
        /// When, in milliseconds since 1970.
        at: i64,
    },
    /// Serve again what stands from `start_seq` on, whatever became of it in this named group; pass over what is older.
    /// Answered by [`Written::Sought`].
    Seek {
        /// The group.
        group: String,
        /// From which number on, itself included.
        start_seq: u64,
        /// The hub that was asked, for the `log` table.
        hub: Uid,
        /// When, in milliseconds since 1970.
        at: i64,
        /// Who wants it, for the `log` table.
        by: Uid,
    },
    /// Pass over all that waits in this named group below `start_seq`, also for another attempt. Answered by
    /// [`Written::Purged`].
    Purge {
        /// The group.
        group: String,
        /// From which number on it goes on, itself included.
        start_seq: u64,
        /// The hub that was asked, for the `log` table.
        hub: Uid,
        /// When, in milliseconds since 1970.
        at: i64,
        /// Who wants it, for the `log` table.
        by: Uid,
    },
    /// Remove a named group: bindings, settings, cursors and what waits for an attempt at once, outcomes and attempts
    /// in parts. Answered by [`Written::Removed`]. A group of that name must not be made before the last part.
    RemoveGroup {
        /// The group.
        group: String,
        /// The hub that was asked, for the `log` table.
        hub: Uid,
        /// When, in milliseconds since 1970.
        at: i64,
        /// Who wants it, for the `log` table.
        by: Uid,
        /// At most so many outcomes in one transaction.
        most: usize,
    },
    /// Take an event that an npm spoke has put into the database: by two independent claims, each of which one hub
    /// wins. Answered by [`Written::Taken`] or [`Written::NotTaken`].
    Take {
        /// Which event.
        event_id: EventId,
        /// The hub that wants it. Its row in `hub` must exist.
        hub: Uid,
        /// The number that it gets there, if this hub comes to serve it.
        seq: u64,
        /// When, in milliseconds since 1970.
        at: i64,
    },
    /// Take events that applications have put into the database themselves, by the same claims, and give them to this
    /// hub. Answered by [`Written::Collected`].
    Collect {
        /// The events, each with the number that it gets on `hub`.
        events: Vec<Collecting>,
        /// The hub that dispatches them. Its row in `hub` must exist.
        hub: Uid,
        /// When, in milliseconds since 1970.
        at: i64,
        /// The most bytes that an event's data may have.
        data_bytes: usize,
    },
    /// Claim an event of the default group, which npm spokes may claim too. Answered by [`Written::Claimed`].
    Claim {
        /// Which event.
        event_id: EventId,
        /// For whom.
        consumer: Uid,
        /// When, in milliseconds since 1970.
        at: i64,
    },
    /// Store an event that is to be published at its time. Answered by [`Written::Scheduled`].
    Schedule {
        /// The event; its timestamp is the time of the commit as the caller sees it.
        event: Event,
        /// When, in milliseconds since 1970.
        due: i64,
        /// Who schedules it.
        publisher: Uid,
        /// The scheduled event in whose place it comes: that one is cancelled in the same transaction. If it can't be,
        /// nothing is done, unless this one is scheduled so already.
        replaces: Option<Replaced>,
    },
    /// Remove a schedule that hasn't run, and its event with it. Answered by [`Written::Cancelled`].
    Cancel {
        /// Which event.
        event_id: EventId,
        /// Who wants that, for the `log` table.
        by: Uid,
        /// The hub that was asked.
        hub: Uid,
        /// When, in milliseconds since 1970.
        at: i64,
    },
    /// Publish those of these events whose time has come by the database's clock, unless that was done before.
    /// Answered by [`Written::Ran`].
    RunDue {
        /// The events, each with the place that it gets on `hub`.
        events: Vec<Running>,
        /// The hub that dispatches them. Its row in `hub` must exist.
        hub: Uid,
    },
    /// Make a recurring schedule, or replace one. Answered by [`Written::Recurring`].
    Recur {
        /// What to make.
        recur: Box<Recur>,
        /// Who wants that: the publisher of its events.
        by: Uid,
        /// The hub that was asked, for the `log` table.
        hub: Uid,
        /// When, in milliseconds since 1970.
        at: i64,
    },
    /// Pause, resume or remove a recurring schedule. Answered by [`Written::Changed`].
    RecurChange {
        /// Which one.
        name: RecurringName,
        /// What to do with it.
        change: RecurChange,
        /// Who wants that, for the `log` table.
        by: Uid,
        /// The hub that was asked.
        hub: Uid,
        /// When, in milliseconds since 1970.
        at: i64,
    },
    /// Publish the event of a recurring schedule now, besides its times. Answered by [`Written::RanExtra`].
    RunExtra {
        /// Which schedule.
        name: RecurringName,
        /// The event's id.
        id: EventId,
        /// Its place on `hub`.
        seq: u64,
        /// Its time, in milliseconds since 1970.
        timestamp: i64,
        /// Who publishes it.
        by: Uid,
        /// The hub that dispatches it. Its row in `hub` must exist.
        hub: Uid,
    },
    /// Publish what these recurring schedules are due for by the database's clock, and move each on to its next time.
    /// Answered by [`Written::Recurred`].
    RunRecurring {
        /// Which schedules.
        names: Vec<RecurringName>,
        /// Numbers and times for the events, rising: at least as many as schedules. Those that aren't taken are lost.
        places: Vec<(u64, i64)>,
        /// The hub that dispatches them. Its row in `hub` must exist.
        hub: Uid,
    },
    /// Make a binding, or find the one that already has this group, domain and name. A new one lowers the
    /// group's cursors below its `start_seq`, and makes the row of a named group without settings, if it is missing.
    /// `id` is not looked at.
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
        /// The bindings of the group as far as the hub knows them: if there are others, somebody else has made them and
        /// wants what the hub takes for done. Then the cursor stays where it is. None: whatever there is.
        known: Option<KnownBindings>,
    },
    /// Associate an event with something besides its process; again changes nothing.
    Associate {
        /// Which event.
        event_id: EventId,
        /// With what.
        with: Association,
    },
    /// Take an association back; of what isn't associated nothing changes.
    Dissociate {
        /// Which event.
        event_id: EventId,
        /// From what.
        with: Association,
    },
    /// Delete an event, or a part of a log. A line in the `log` table tells of it.
    Delete(Delete),
    /// Let events expire, and remove what was kept long enough.
    Sweep(Sweep),
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

impl Write {
    /// The events that it stores, in their order.
    pub(super) fn stores(&self) -> impl Iterator<Item = &Event> {
        let (one, several) = match self {
            Self::Publish { event, .. } | Self::Persist(event, _) | Self::Schedule { event, .. } => {
                (Some(event), &[][..])
            }
            Self::Batch { events, .. } => (None, &events[..]),
            _ => (None, &[][..]),
        };
        one.into_iter().chain(several.iter().map(|placed| &placed.event))
    }

    /// The events that it stores only if their log ends as expected.
    pub(super) fn expecting(&self) -> impl Iterator<Item = (&Event, &Expect)> {
        let (one, several) = match self {
            Self::Publish { event, expect: Some(expect), .. } | Self::Persist(event, Some(expect)) => {
                (Some((event, expect)), &[][..])
            }
            Self::Batch { events, .. } => (None, &events[..]),
            _ => (None, &[][..]),
        };
        let several = several.iter().filter_map(|placed| Some((&placed.event, placed.expect.as_ref()?)));
        one.into_iter().chain(several)
    }
}

/// A scheduled event that another one takes the place of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// Which.
    pub event_id: EventId,
    /// The hub that does it, for the `log` table.
    pub hub: Uid,
}

/// An event with its place in the sequence of its hub.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    /// The event; its timestamp is the time of the commit as the caller sees it.
    pub event: Event,
    /// Its number.
    pub seq: u64,
    /// How the log of its process must end for it to be stored, where the events before it count.
    pub expect: Option<Expect>,
}

impl Placed {
    /// An event at its place, whatever its log ends with.
    #[must_use]
    pub fn new(event: Event, seq: u64) -> Self {
        Self { event, seq, expect: None }
    }
}

/// What became of a [`Write`].
#[derive(Debug, Clone, PartialEq)]
pub enum Written {
    /// A publish: with `fresh = false` the time and number of the event that was there before.
    Published(Published),
    /// The same for each event of a batch.
    Batch(Vec<Published>),
    /// What is gone, and what is left to do.
    Deleted(Deleted),
    /// What has expired, and what was removed.
    Swept(Swept),
    /// The outcome is recorded, and it is this one.
    Finished {
        /// The letter was published with it, and is to be dispatched; false: there was none, or its id was there.
        letter: bool,
    },
    /// Events are tried again.
    Redriven(Redriven),
    /// Work of another hub is this one's now.
    Adopted(Adopted),
    /// The group goes on elsewhere.
    Sought {
        /// Its base round from now on.
        round: u32,
    },
    /// What waited is passed over.
    Purged {
        /// How many events waited for an attempt.
        retrying: u64,
    },
    /// The group is no more.
    Removed {
        /// Outcomes are left: write the same again.
        more: bool,
    },
    /// The binding as it stands.
    Bound(Binding),
    /// An event of an npm spoke, and which of its claims were won.
    Taken(Box<Taken>),
    /// No hub is to take this event now.
    NotTaken(NotTaken),
    /// What became of each event that was to be collected, in their order.
    Collected(Vec<Collected>),
    /// Whether the claim is ours; else somebody else has the event, or it has its outcome.
    Claimed(bool),
    /// The event is scheduled.
    Scheduled {
        /// When it runs or ran, in milliseconds since 1970.
        due: i64,
        /// False: it was scheduled so already.
        fresh: bool,
        /// Another one has gone for it.
        replaced: bool,
    },
    /// The schedule is gone, and its event with it.
    Cancelled,
    /// What ran, in the order of its sequence.
    Ran(Vec<Ran>),
    /// The recurring schedule stands.
    Recurring {
        /// When it runs next; none: it is paused.
        next: Option<Due<RecurringName>>,
        /// What became of it.
        made: Made,
    },
    /// The recurring schedule is changed; when it runs next, if it does.
    Changed(Option<Due<RecurringName>>),
    /// A run of a recurring schedule by itself; its event, if it was published just now.
    RanExtra(Option<Box<Event>>, Published),
    /// What recurring schedules have published, those that were due.
    Recurred(Vec<Recurred>),
    /// Done.
    Done,
}

/// A recurring schedule that was due, and was moved on.
#[derive(Debug, Clone, PartialEq)]
pub struct Recurred {
    /// Which one.
    pub name: RecurringName,
    /// What it published, in sequence.
    pub ran: Vec<Ran>,
    /// How many of them were missed.
    pub late: u64,
    /// Times that were missed and left out.
    pub left_out: u64,
    /// When it runs next; none: that was its last time.
    pub next: Option<Due<RecurringName>>,
    /// Why it can't run any more: somebody else has put a rule into the database that is none.
    pub broken: Option<String>,
}

/// An event that an npm spoke has published. None of its claims won: it was taken before.
#[derive(Debug, Clone, PartialEq)]
pub struct Taken {
    /// The event as it stands in the database.
    pub event: Event,
    /// `consumed_hub` is ours: this hub tells npm spokes of it, and no other does.
    pub broadcasts: bool,
    /// `v1_hub` is ours: this hub serves links of our own dialect with it.
    pub serves: bool,
    /// A spoke has claimed it already.
    pub claimed: bool,
}

/// An event that is to be collected, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collecting {
    /// The event.
    pub id: EventId,
    /// Its sequence number.
    pub seq: u64,
}

/// What became of an event that was to be collected.
#[derive(Debug, Clone, PartialEq)]
pub struct Collected {
    /// The event.
    pub id: EventId,
    /// The number that was meant for it.
    pub seq: u64,
    /// What became of it.
    pub what: CollectedAs,
}

/// See [`Collected`].
#[derive(Debug, Clone, PartialEq)]
pub enum CollectedAs {
    /// This hub serves it now, from the number that was given.
    Taken(Box<Taken>),
    /// A hub had it before, or it has its outcome.
    Before,
    /// No hub is to take it now.
    NotTaken(NotTaken),
    /// It breaks the rules for events: what is wrong, and what would be right.
    Invalid(String),
}

/// Why an event isn't taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotTaken {
    /// There is no such event.
    #[error("no event of this id is in the database")]
    Unknown,
    /// There is no row in `event_published`.
    #[error("the event isn't published: it has no row in `event_published`")]
    Unpublished,
    /// Its row in `event_scheduled` wasn't executed yet.
    #[error("the event is scheduled and not due")]
    Scheduled,
}

/// A schedule that is to run, and the place that its event gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// The event.
    pub id: EventId,
    /// Its sequence number.
    pub seq: u64,
    /// Its time from now on, in milliseconds since 1970: an event that was scheduled has happened when it is dispatched.
    pub timestamp: i64,
}

/// A scheduled event that was published now, by this write and no other.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    /// The event as it was stored.
    pub event: Event,
    /// Its sequence number.
    pub seq: u64,
    /// When it was due, in milliseconds since 1970.
    pub due: i64,
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
    /// In some domains from a later number on: of those that match the first holds. Empty: everywhere the same.
    pub starts: Vec<DomainStart>,
    /// When it was made, in milliseconds since 1970.
    pub created: i64,
}

impl Binding {
    /// Whether it wants an event of this domain and name with this sequence number.
    #[must_use]
    pub fn wants(&self, domain: &str, name: &str, seq: u64) -> bool {
        seq >= self.start_seq
            && self.domain.matches(domain)
            && self.name.matches(name)
            && has_started(&self.starts, domain, seq)
    }
}
