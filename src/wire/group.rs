//! Groups as clients see and change them: settings, where they stand, what waits and what is dead.

use serde::{Deserialize, Deserializer, Serialize};

use super::bounds;
use crate::event::{Domain, EventId, Group, Name, Pattern, Pid, Uid};

/// From where on stored events count: at the making of a named group's binding, and for `seek`.
///
/// JSON: `"all"`, `{"time": ms}` or `{"id": "<event id>"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum StartAt {
    /// All that is stored.
    All,
    /// What was dispatched at this time or later, in milliseconds since 1970.
    Time(i64),
    /// What was dispatched after this event.
    Id(EventId),
}

/// How long a claim is held without a word of its holder, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtendOptions {
    /// From now on, 1 second to 1 hour; none: as long as the consumer asked for when it came.
    #[serde(default, deserialize_with = "bounds::read_lease", skip_serializing_if = "Option::is_none")]
    pub lease: Option<u64>,
}

/// What a group does with events that fail. Of a change, what is none stays as it is; in what a hub tells, nothing is
/// none but `dead_letter`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupSettings {
    /// After so many attempts an event is dead: 1 to 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// How long the first retry waits, in milliseconds; each further one twice as long, give or take a fifth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<u64>,
    /// The longest such wait, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_delay: Option<u64>,
    /// Named groups only: events of one pid are handed out one at a time, in the order of the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_order: Option<bool>,
    /// With `key_order`: a dead event holds back the later ones of its pid, until it is redriven or deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_blocks: Option<bool>,
    /// A dead event is also published as an event of its own, in this domain. An empty text: no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_letter: Option<String>,
}

/// What to do with a group.
///
/// JSON: `{"set": {settings}}`, `{"seek": start}`, `{"purge": {}}`, `{"remove": {}}` or `{"unbind": {"domain": …, "name": …}}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum GroupAction {
    /// Change its settings. Makes a named group that isn't there yet.
    Set(GroupSettings),
    /// Named groups only: serve again what was dispatched from here on, whatever became of it in this group; what is
    /// older and waits is passed over.
    Seek(StartAt),
    /// Named groups only: pass over all that waits. What consumers hold stays theirs.
    Purge {},
    /// Named groups only: the group with its bindings and outcomes.
    Remove {},
    /// Remove one binding: nothing is kept for it any more.
    Unbind {
        /// Of which domains.
        domain: Pattern,
        /// Of which names.
        name: Pattern,
    },
}

/// What a change of a group did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupChanged {
    /// Its settings from now on; none: the group is no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<GroupSettings>,
    /// How many events were passed over, by `purge`.
    #[serde(default)]
    pub events: u64,
}

/// Which groups a look at the backlog is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BacklogQuery {
    /// One group, with its bindings and consumers; an empty text is the default group. None: all, without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// How a group stands. Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backlog {
    /// The group; none is the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Group>,
    /// What it does with events that fail.
    pub settings: GroupSettings,
    /// Events that wait for a consumer, wherever they are; none: not counted yet. Those that wait for a retry aren't in it.
    pub pending: Option<u64>,
    /// Events in consumers' hands.
    pub in_flight: u64,
    /// Events that wait for their next attempt.
    pub retrying: u64,
    /// Events that failed for good and weren't redriven.
    pub dead: u64,
    /// When the oldest event without outcome was dispatched.
    pub oldest: Option<i64>,
    /// How many consumers are connected.
    pub consumers: u64,
    /// The first [`MOST_LISTED`] bindings, if one group was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bindings: Vec<BindingInfo>,
    /// The first [`MOST_LISTED`] consumers, if one group was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connected: Vec<ConsumerInfo>,
}

/// Bindings and consumers that are listed at most.
pub const MOST_LISTED: usize = 1_000;

/// A binding of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BindingInfo {
    /// Of which domains.
    pub domain: Pattern,
    /// Of which names.
    pub name: Pattern,
    /// When it was made.
    pub created: i64,
    /// Its connected consumers.
    pub consumers: u64,
}

/// A connected consumer of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsumerInfo {
    /// Who it is, by its certificate.
    pub uid: Uid,
    /// Of which domains.
    pub domain: Pattern,
    /// Of which names.
    pub name: Pattern,
    /// Events that it may hold at most.
    pub credit: u32,
    /// Events that it holds.
    pub holds: u32,
}

/// Which dead events. What is none doesn't narrow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeadQuery {
    /// Of which group; none is the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Group>,
    /// Of which domains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<Pattern>,
    /// Of which names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Pattern>,
}

/// An event that failed for good in a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dead {
    /// The event.
    pub id: EventId,
    /// Its domain.
    pub domain: Domain,
    /// Its name.
    pub name: Name,
    /// Its process.
    pub pid: Pid,
    /// When it was given up, in milliseconds since 1970.
    pub ended: i64,
    /// Who had it last; none: nobody is known.
    pub consumer: Option<Uid>,
    /// The round: 1 at first, one more after each redrive.
    pub round: u32,
    /// Attempts of this round.
    pub attempts: u32,
    /// Why: `nack`, `given up`, `link lost x5`, …
    pub reason: String,
    /// The last error text; of a long one the first 256 and the last 768 bytes.
    #[serde(default)]
    pub error: String,
}

/// What to redrive: one event, or all dead ones that match. An event that an npm spoke claimed and left is taken back
/// too, if it is named.
///
/// JSON: `id`; or `domain`, `name` or both, where a `*` says all. Whoever says nothing, or null, means nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RedriveFields")]
pub struct Redrive {
    /// In which group; none is the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Group>,
    /// This event; none: all of these domains and names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<EventId>,
    /// Of which domains; none: of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<Pattern>,
    /// Of which names; none: of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Pattern>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RedriveFields {
    #[serde(default)]
    group: Option<Group>,
    #[serde(default, deserialize_with = "given")]
    id: Option<EventId>,
    #[serde(default, deserialize_with = "given")]
    domain: Option<Pattern>,
    #[serde(default, deserialize_with = "given")]
    name: Option<Pattern>,
}

/// What is given has a value: a null may be a slip of whoever meant one event.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

impl TryFrom<RedriveFields> for Redrive {
    type Error = &'static str;

    fn try_from(fields: RedriveFields) -> Result<Self, &'static str> {
        let RedriveFields { group, id, domain, name } = fields;
        match (&id, &domain, &name) {
            (None, None, None) | (Some(_), Some(_), _) | (Some(_), _, Some(_)) => {
                Err("say what to redrive: `id` alone; or `domain`, `name` or both, where \"*\" says all")
            }
            _ => Ok(Self { group, id, domain, name }),
        }
    }
}

/// How an event stands in one group. Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupTrace {
    /// The group; none is the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Group>,
    /// `pending`, `claimed`, `retrying`, `success`, `dead` or `expired`.
    pub state: String,
    /// The round: 1 at first, one more after each redrive.
    pub round: u32,
    /// Attempts of this round that ended without an outcome.
    pub attempts: u32,
    /// Who holds it or brought it to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer: Option<Uid>,
    /// Since when it is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<i64>,
    /// Until when its lease runs, or from when on it is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<i64>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<i64>,
}
