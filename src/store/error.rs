//! What can go wrong between us and the database.

use std::{io, path::PathBuf, time::Duration};

use sea_orm::DbErr;

use super::time;
use crate::{
    event::{EventId, Fault, LogConflict, RecurringName, code},
    recurrence::RuleError,
};

/// How long a publisher waits before it tries again on a full or absent database.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// An error of the store. Cloneable, since one failed transaction answers many writers.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// An event of this id but other content is stored.
    #[error("the event {id:?} is already stored with {}: publish new content under a new id", other(field))]
    EventConflict {
        /// The id that both have.
        id: EventId,
        /// The first field that differs.
        field: &'static str,
    },
    /// A log doesn't end as a publisher expects.
    #[error("{0}")]
    LogConflict(Box<LogConflict>),
    /// `rid` names no event.
    #[error(
        "the event {id:?} answers {rid:?}, which is not stored: publish that one first, or leave `rid` out"
    )]
    RidNotFound {
        /// The event that was to be published.
        id: EventId,
        /// What it names.
        rid: EventId,
    },
    /// No event has this id.
    #[error("no event has the id {id:?}: it was never stored here, or it was deleted")]
    EventNotFound {
        /// The id.
        id: EventId,
    },
    /// The event is scheduled for another time.
    #[error(
        "the event {id:?} is already scheduled for {}: cancel it first, or schedule under a new id", time::utc(*due)
    )]
    ScheduledOtherwise {
        /// The event.
        id: EventId,
        /// When it is or was due, in milliseconds since 1970.
        due: i64,
    },
    /// The event was published, not scheduled.
    #[error("the event {id:?} was published already, without a schedule: schedule under a new id")]
    PublishedBefore {
        /// The event.
        id: EventId,
    },
    /// The time to publish an event at is over, or beyond the calendar.
    #[error(
        "the event {id:?} can't be scheduled for {}, since it is now {}: name a time to come, up to the end of the \
         year 9999", time::utc(*due), time::utc(*now)
    )]
    InvalidDue {
        /// The event.
        id: EventId,
        /// When it was to be published, in milliseconds since 1970.
        due: i64,
        /// When that was asked, in milliseconds since 1970.
        now: i64,
    },
    /// No event of this id is scheduled.
    #[error("no event of the id {id:?} is scheduled: it was never, or it was cancelled or deleted")]
    ScheduleNotFound {
        /// The id.
        id: EventId,
    },
    /// The schedule ran.
    #[error("the schedule of the event {id:?} ran already: what is published can't be cancelled")]
    ScheduleExecuted {
        /// The event.
        id: EventId,
    },
    /// The rule of a recurring schedule isn't taken.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// No recurring schedule has this name.
    #[error("no recurring schedule has the name {name:?}: it was never made, or it was removed")]
    RecurringNotFound {
        /// The name.
        name: RecurringName,
    },
    /// A recurring schedule of this name has other content.
    #[error(
        "the recurring schedule {name:?} stands already with {}: say that it is to be replaced, or choose another name",
        other(field)
    )]
    RecurringConflict {
        /// The name that both have.
        name: RecurringName,
        /// The first field that differs.
        field: &'static str,
    },
    /// There are as many recurring schedules as may be.
    #[error(
        "the recurring schedule {name:?} can't be made, since there are {} already: remove some, or let one publish for \
         several",
        super::MOST_SCHEDULES
    )]
    TooManyRecurring {
        /// The one that was to be made.
        name: RecurringName,
    },
    /// The event has its outcome already.
    #[error("the outcome of the event {id:?} is already recorded: this claim came too late, drop its result")]
    ClaimLost {
        /// The event.
        id: EventId,
    },
    /// The event isn't dead in this group.
    #[error(
        "the event {id:?} is not dead in {}: only what failed for good can be redriven, look at it with `show`",
        group_text(group)
    )]
    NotDead {
        /// The event.
        id: EventId,
        /// The group; empty is the default one.
        group: String,
    },
    /// Another hub serves the event, or none does.
    #[error("the event {id:?} is not served by this hub but by {}: redrive it there", hub.as_deref().unwrap_or("none"))]
    ElsewhereServed {
        /// The event.
        id: EventId,
        /// Which hub serves it.
        hub: Option<String>,
    },
    /// No group has this name.
    #[error("no group has the name {group:?}: it was never made, or it was removed")]
    GroupNotFound {
        /// The name.
        group: String,
    },
    /// A page token of another query, or a damaged one.
    #[error("the page token belongs to another query or is damaged: start again without one")]
    InvalidPage,
    /// No room on the disk, or the size limit is reached.
    #[error("the database is full ({source}): free disk space or raise `store.max_bytes`, then try again")]
    Full {
        /// The database's words.
        source: DbErr,
    },
    /// The database is locked by somebody else, read-only, or its file can't be read or written.
    #[error(
        "the database can't take this now ({source}): look for a program that locks it, and at its disk; on a server, \
         whether that runs"
    )]
    Unavailable {
        /// The database's words.
        source: DbErr,
    },
    /// The file doesn't hold what was written into it: the disk is broken, or somebody else wrote there.
    #[error(
        "the database's file is damaged ({source}): nothing is written to it any more; stop the hub, look at the disk, \
         and restore a backup"
    )]
    Corrupt {
        /// The database's words.
        source: DbErr,
    },
    /// The database was made by a newer version.
    #[error(
        "the database {place} has the migration `{migration}`, which this version of Eventflow doesn't know: \
         start the newer version that made it, or choose another data folder (`data`)"
    )]
    SchemaNewer {
        /// Which database.
        place: String,
        /// The first unknown migration.
        migration: String,
    },
    /// The database's tables aren't up to date, and nobody is to change them unasked.
    #[error(
        "the database {place} lacks {} of this version's migrations, from `{}` on: apply them by `eventflow migrate up`; a \
         hub does so at its start, unless `store.migrate` is false", pending.len(),
        pending.first().map_or("", String::as_str)
    )]
    SchemaPending {
        /// Which database.
        place: String,
        /// What is to be applied, oldest first.
        pending: Vec<String>,
    },
    /// The database is the target of an import that isn't over.
    #[error(
        "an import into this database isn't over: run the same `eventflow import` again, which goes on where it was, or \
         begin anew with an empty database"
    )]
    ImportUnfinished,
    /// The target of an import holds something already.
    #[error(
        "the database isn't empty, its table {table} has {rows} rows: name one that holds nothing, since what is imported \
         isn't mixed with anything else"
    )]
    NotEmpty {
        /// The first table with rows.
        table: String,
        /// How many.
        rows: u64,
    },
    /// The data folder or the database file can't be made or used.
    #[error("can't {action} {}: {source}: check that the folder exists and that this user may write to it", path.display())]
    Folder {
        /// What was tried: `make the folder`, …
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's words.
        source: std::sync::Arc<io::Error>,
    },
    /// The database server isn't reached, or doesn't let us in.
    #[error(
        "the database {place} can't be opened: {source}: check that the server runs, and the host, user, password and \
         name of the database"
    )]
    Server {
        /// Which database, without its password.
        place: String,
        /// The server's words.
        source: DbErr,
    },
    /// The same hub runs elsewhere.
    #[error(
        "the hub {hub} runs on {host}, with the data folder {folder}, and may for {seconds} s more: stop it there, or \
         give this one a data folder of its own (`data`)"
    )]
    HubElsewhere {
        /// The hub's id.
        hub: String,
        /// The other machine.
        host: String,
        /// The other folder.
        folder: String,
        /// Until its lease is over.
        seconds: u64,
    },
    /// The server's zone isn't UTC.
    #[error(
        "the database {place} is on a server whose time zone is {zone}, where the npm stack writes local times that aren't \
         what they look like here: set the server's `default_time_zone` to '+00:00', or, if npm's events are there \
         already, `mysql.npm_time_zone` to `server`"
    )]
    TimeZone {
        /// Which database, without its password.
        place: String,
        /// What the server calls it.
        zone: String,
    },
    /// Another hub has taken this one's place.
    #[error(
        "another hub has taken this hub's place, since its lease was over: nothing of it is written any more"
    )]
    Fenced,
    /// What the database holds breaks our rules.
    #[error("the database holds {what}, which this version can't read: {reason}")]
    Damaged {
        /// Table and row.
        what: String,
        /// What is wrong.
        reason: String,
    },
    /// Any other refusal by the database.
    #[error("the database refused to {action}: {source}")]
    Refused {
        /// What was tried.
        action: &'static str,
        /// The database's words.
        source: DbErr,
    },
}

fn group_text(group: &str) -> String {
    if group.is_empty() { "the default group".to_owned() } else { format!("the group {group:?}") }
}

/// There is no plural of data.
fn other(field: &str) -> String {
    if field == "data" { "other data".to_owned() } else { format!("another {field}") }
}

impl StoreError {
    /// The database hasn't answered for so long.
    pub(crate) fn silent(time: Duration) -> Self {
        let text = format!("it hasn't answered for {} s", time.as_secs());
        Self::Unavailable { source: DbErr::Custom(text) }
    }

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::EventConflict { .. } | Self::ScheduledOtherwise { .. } | Self::PublishedBefore { .. } => {
                code::EVENT_CONFLICT
            }
            Self::InvalidDue { .. } => code::SCHEDULE_INVALID_DATE,
            Self::ScheduleNotFound { .. } => code::SCHEDULE_NOT_FOUND,
            Self::ScheduleExecuted { .. } => code::SCHEDULE_EXECUTED,
            Self::Rule(error) => error.code(),
            Self::RecurringNotFound { .. } => code::RECURRING_NOT_FOUND,
            Self::RecurringConflict { .. } => code::RECURRING_CONFLICT,
            Self::TooManyRecurring { .. } => code::TOO_MANY_RECURRING,
            Self::LogConflict(_) => code::LOG_CONFLICT,
            Self::RidNotFound { .. } => code::RID_NOT_FOUND,
            Self::EventNotFound { .. } => code::EVENT_NOT_FOUND,
            Self::ClaimLost { .. } => code::CLAIM_LOST,
            Self::NotDead { .. } => code::NOT_DEAD,
            Self::ElsewhereServed { .. } => code::UNSUPPORTED,
            Self::GroupNotFound { .. } => code::GROUP_NOT_FOUND,
            Self::InvalidPage => code::INVALID_PAGE,
            Self::Full { .. } => code::DB_FULL,
            Self::Unavailable { .. } | Self::Corrupt { .. } | Self::Server { .. } | Self::Fenced => {
                code::DB_UNAVAILABLE
            }
            Self::HubElsewhere { .. } => code::DB_IN_USE,
            Self::TimeZone { .. } => code::INVALID_CONFIG,
            Self::SchemaNewer { .. } => code::DB_SCHEMA_NEWER,
            Self::SchemaPending { .. } => code::DB_SCHEMA_PENDING,
            Self::ImportUnfinished | Self::NotEmpty { .. } => code::TRANSFER,
            Self::Folder { .. } => code::DATA_FOLDER,
            Self::Damaged { .. } | Self::Refused { .. } => code::DB_FAULT,
        }
    }

    /// Whether the same request may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::Full { .. }
                | Self::Unavailable { .. }
                | Self::Corrupt { .. }
                | Self::Server { .. }
                | Self::Fenced
        )
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        if error.is_retryable() {
            Fault::retryable(error.code(), error.to_string(), RETRY_AFTER)
        } else {
            Fault::refused(error.code(), error.to_string())
        }
    }
}
