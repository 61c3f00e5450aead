//! What can go wrong with groups: with looking at them, changing them, and what is dead in them.

use std::time::Duration;

use crate::event::{Fault, InvalidPattern, InvalidText, code};

/// A group could not be looked at or changed, or its dead events not listed or redriven.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// The group's name, a domain or an id breaks the rules; nothing was sent.
    #[error(transparent)]
    Text(#[from] InvalidText),
    /// A pattern breaks the rules; nothing was sent.
    #[error(transparent)]
    Pattern(#[from] InvalidPattern),
    /// There is no such group: the first consumer with its name makes it, or its first settings.
    #[error("there is no group {group:?}: the first `consume` with its name makes it")]
    NotFound {
        /// Its name.
        group: String,
    },
    /// No event has this id.
    #[error("no event has the id {id:?}: it was never stored here, or is deleted")]
    EventNotFound {
        /// The id.
        id: String,
    },
    /// The hub refused.
    #[error("the hub refused: {0}")]
    Refused(Fault),
    /// No answer in time: a change may be done or not. To ask for the same again is harmless.
    #[error("the hub didn't answer within {:.1} s: ask again", waited.as_secs_f64())]
    TimedOut {
        /// The request's deadline.
        waited: Duration,
    },
    /// The spoke is closed.
    #[error("the spoke is closed: {0}")]
    Closed(Fault),
}

impl GroupError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            GroupError::Text(error) => error.code,
            GroupError::Pattern(_) => code::INVALID_PATTERN,
            GroupError::NotFound { .. } => code::GROUP_NOT_FOUND,
            GroupError::EventNotFound { .. } => code::EVENT_NOT_FOUND,
            GroupError::Refused(fault) | GroupError::Closed(fault) => &fault.code,
            GroupError::TimedOut { .. } => code::TIMEOUT,
        }
    }

    /// Whether the same call may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            GroupError::TimedOut { .. } => true,
            GroupError::Refused(fault) => fault.is_retryable(),
            _ => false,
        }
    }
}
