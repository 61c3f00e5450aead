//! Recurring schedules: what they are, and how they stand.

use serde::{Deserialize, Serialize};

use crate::event::{Data, Domain, EventId, Name, Pid, RecurringName, Uid};

/// Recurring schedules of a page, at most.
pub const MOST_RECURRING: u32 = 1_000;
/// Runs to come that are shown, at most.
pub const MOST_RUNS: u32 = 100;
/// How old missed runs may be to be made up for, if nothing else is said: a day, in milliseconds.
pub const DEFAULT_WINDOW_MS: u64 = 86_400_000;

/// What becomes of runs that were missed: no hub was up, or it was held up for more than ten seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Missed {
    /// They run once, for the newest of them.
    #[default]
    Once,
    /// Each runs, if it isn't older than the window.
    All,
    /// None of them runs.
    Skip,
}

impl Missed {
    /// The word for people and for JSON: `once`, `all`, `skip`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Missed::Once => "once",
            Missed::All => "all",
            Missed::Skip => "skip",
        }
    }
}

/// What a recurring schedule publishes, and when. The data travel beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recurring {
    /// The domain of its events.
    pub domain: Domain,
    /// Their name.
    pub event: Name,
    /// Their process; none: each has one of its own, named as its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<Pid>,
    /// When: five fields of cron, six with the second before them, `@daily` and the like, or `@every 90s`.
    pub rule: String,
    /// The time zone of the rule, by its IANA name.
    #[serde(default = "utc")]
    pub zone: String,
    /// What becomes of runs that were missed.
    #[serde(default)]
    pub missed: Missed,
    /// How old they may be to run, if all do, in milliseconds.
    #[serde(default = "default_window")]
    pub window_ms: u64,
    /// Not before this, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<i64>,
    /// Not after this, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<i64>,
    /// It doesn't run until it is resumed. Not part of the content by which schedules are compared.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

fn utc() -> String {
    "UTC".to_owned()
}

fn default_window() -> u64 {
    DEFAULT_WINDOW_MS
}

impl Recurring {
    /// Events of this domain and name, by this rule, with the defaults for the rest.
    #[must_use]
    pub fn new(domain: Domain, event: Name, rule: String) -> Self {
        Self {
            domain,
            event,
            pid: None,
            rule,
            zone: utc(),
            missed: Missed::default(),
            window_ms: DEFAULT_WINDOW_MS,
            start: None,
            end: None,
            paused: false,
        }
    }
}

/// A recurring schedule that is to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct Recur {
    /// Its name.
    pub name: RecurringName,
    /// One of this name with other content is replaced; else that is a conflict.
    pub replace: bool,
    /// What it publishes, and when.
    pub what: Recurring,
    /// The data of its events.
    pub data: Data,
}

/// What became of a [`Recur`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// There was none of this name.
    New,
    /// It stood with this content already.
    Duplicate,
    /// It stood with other content, which is gone.
    Replaced,
}

impl Made {
    /// The word for people, and on the wire: `new`, `duplicate`, `replaced`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Made::New => "new",
            Made::Duplicate => "duplicate",
            Made::Replaced => "replaced",
        }
    }
}

/// A change to a recurring schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecurChange {
    /// It doesn't run until it is resumed.
    Pause,
    /// It runs again, from now on: what it missed is skipped.
    Resume,
    /// It goes; what it has published stays.
    Remove,
}

impl RecurChange {
    pub(super) fn verb(self) -> &'static str {
        match self {
            RecurChange::Pause => "recur-pause",
            RecurChange::Resume => "recur-resume",
            RecurChange::Remove => "recur-remove",
        }
    }
}

/// How a recurring schedule stands. Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecurringState {
    /// Its name.
    pub name: RecurringName,
    /// What it publishes, and when.
    #[serde(flatten)]
    pub what: Recurring,
    /// When it runs next. None: it is paused, or there is nothing more to come.
    pub next: Option<i64>,
    /// The time of its rule for which it ran last.
    pub last: Option<i64>,
    /// How often it ran, `run now` included.
    pub ran: u64,
    /// Times of its rule that were missed and left out: at least so many.
    pub left_out: u64,
    /// Who made it, or replaced it last: the publisher of its events.
    pub publisher: Uid,
    /// When that was.
    pub made: i64,
}

/// One run to come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// When, in milliseconds since 1970.
    pub due: i64,
    /// The same in UTC, as RFC 3339 has it.
    pub utc: String,
    /// And as clocks in the schedule's zone show it.
    pub local: String,
    /// The id that the event will have.
    pub id: EventId,
}

/// A recurring schedule and what it will do. The data of its events travel beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecurringShown {
    /// How it stands.
    #[serde(flatten)]
    pub state: RecurringState,
    /// Its next runs, as if it weren't paused.
    pub runs: Vec<Run>,
}
