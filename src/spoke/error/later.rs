//! What can go wrong with what takes its time, and with changes to what is stored.

use std::time::Duration;

use super::{PublishError, ReadError};
use crate::{
    event::{EventId, Fault, InvalidText, code},
    wire::{MOST_NAMES, Published},
};

/// A wait ended without what was waited for.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The domain, pid, name or id breaks the rules; nothing was sent.
    #[error(transparent)]
    Text(#[from] InvalidText),
    /// More names are listed than one wait may be for; nothing was sent.
    #[error(
        "{count} names are listed, at most {MOST_NAMES} may be: wait for any name and look at what comes"
    )]
    Names {
        /// So many.
        count: usize,
    },
    /// It didn't come in time; or, if nothing was waited for, it isn't there.
    #[error("{}", missed(what, *waited))]
    TimedOut {
        /// What was waited for, such as `answer to the event "e1"`.
        what: String,
        /// The wait's own time-out; zero if it was only a look.
        waited: Duration,
    },
    /// No event has the id that was named.
    #[error("no event has the id {id:?}: it was never stored here, or is deleted")]
    NotFound {
        /// The id.
        id: String,
    },
    /// The hub refused.
    #[error("the hub refused to wait: {0}")]
    Refused(Fault),
    /// The spoke is closed.
    #[error("the spoke is closed: {0}")]
    Closed(Fault),
}

fn missed(what: &str, waited: Duration) -> String {
    match waited {
        Duration::ZERO => format!("there is no {what} yet: look again, or wait for it"),
        _ => format!("no {what} came within {:?}: wait again, or for longer", rounded(waited)),
    }
}

/// Up to whole milliseconds, or tenths of a second: what was left of a time-out is never a round number.
fn rounded(waited: Duration) -> Duration {
    let step = if waited < Duration::from_secs(1) { 1 } else { 100 };
    let ms = waited.as_nanos().div_ceil(1_000_000 * step) * step;
    Duration::from_millis(u64::try_from(ms).unwrap_or(u64::MAX))
}

impl WaitError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            WaitError::Text(error) => error.code,
            WaitError::Names { .. } => code::INVALID_RECORD,
            WaitError::TimedOut { .. } => code::WAIT_TIMEOUT,
            WaitError::NotFound { .. } => code::EVENT_NOT_FOUND,
            WaitError::Refused(fault) | WaitError::Closed(fault) => &fault.code,
        }
    }

    /// Whether the same wait may succeed later. Nothing is missed meanwhile: what is stored counts.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            WaitError::TimedOut { .. } => true,
            WaitError::Refused(fault) => fault.is_retryable(),
            _ => false,
        }
    }
}

/// An event was published to wait for what comes of it, and that failed.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The event was not published, as far as is known.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// The event is published, but what was waited for didn't come. It may still: wait again by the event's id.
    #[error("event {id} is published, but {error}")]
    Unanswered {
        /// The event's id, given or made.
        id: EventId,
        /// Its publish's answer.
        published: Published,
        /// Why the wait ended.
        error: WaitError,
    },
}

impl RequestError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            RequestError::Publish(error) => error.code(),
            RequestError::Unanswered { error, .. } => error.code(),
        }
    }

    /// Whether the same call may succeed later; with the same id given, the event is published once.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            RequestError::Publish(error) => error.is_retryable(),
            RequestError::Unanswered { error, .. } => error.is_retryable(),
        }
    }
}

/// An event was not scheduled.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The date is past, or is none; nothing was sent.
    #[error("the schedule's date {reason}")]
    InvalidDate {
        /// What is wrong with it, and what would be right.
        reason: &'static str,
    },
    /// The event could not be stored.
    #[error(transparent)]
    Store(#[from] PublishError),
}

impl ScheduleError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            ScheduleError::InvalidDate { .. } => code::SCHEDULE_INVALID_DATE,
            ScheduleError::Store(error) => error.code(),
        }
    }

    /// Whether scheduling the same again may succeed; with the same id and date given, it is scheduled once.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            ScheduleError::InvalidDate { .. } => false,
            ScheduleError::Store(error) => error.is_retryable(),
        }
    }
}

/// Something stored was not changed: an association, a schedule, an event or a log that was to go.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// An id, domain, pid or entity breaks the rules; nothing was sent.
    #[error(transparent)]
    Text(#[from] InvalidText),
    /// No event has this id.
    #[error("no event has the id {id:?}: it was never stored here, or is deleted")]
    NotFound {
        /// The id.
        id: String,
    },
    /// The hub refused.
    #[error("the hub refused the change: {0}")]
    Refused(Fault),
    /// The link was lost before the answer to the deletion of a log, which isn't sent again by itself: it is in doubt,
    /// done or not or in part. Asked for once more it is about the log as it is by then.
    #[error(
        "the link was lost before the hub's answer ({0}): it may be done or not; look at the log, then decide"
    )]
    LinkLost(Fault),
    /// No answer in time: it may be done or not. To ask for the same again is harmless.
    #[error("the hub didn't answer within {:.1} s: the change may be done or not; ask again", waited.as_secs_f64())]
    TimedOut {
        /// The request's deadline.
        waited: Duration,
    },
    /// The spoke is closed.
    #[error("the spoke is closed: {0}")]
    Closed(Fault),
}

impl ChangeError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            ChangeError::Text(error) => error.code,
            ChangeError::NotFound { .. } => code::EVENT_NOT_FOUND,
            ChangeError::Refused(fault) | ChangeError::Closed(fault) => &fault.code,
            ChangeError::LinkLost(_) => code::LINK_LOST,
            ChangeError::TimedOut { .. } => code::TIMEOUT,
        }
    }

    /// Whether the same call may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            ChangeError::TimedOut { .. } => true,
            ChangeError::Refused(fault) => fault.is_retryable(),
            _ => false,
        }
    }
}

/// The state of a log could not be composed.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The log could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The data of one of its events is no JSON that can be read.
    #[error("the data of event {id} can't be read: {source}")]
    Data {
        /// The event.
        id: EventId,
        /// What the parser says.
        source: serde_json::Error,
    },
    /// The state has another shape than the type that it was to be read into.
    #[error("the state of the log has another shape than was asked for: {0}")]
    Shape(#[source] serde_json::Error),
}

impl StateError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            StateError::Read(error) => error.code(),
            StateError::Data { .. } | StateError::Shape(_) => code::INVALID_DATA,
        }
    }

    /// Whether the same call may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, StateError::Read(error) if error.is_retryable())
    }
}
