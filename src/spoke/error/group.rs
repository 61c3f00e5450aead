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
    /// The link was lost before the answer to a purge or a removal (of the group or of a binding), which isn't sent again by itself: it is in doubt,
    /// done or not. Look at the group first: asked for once more it is about what is there by then.
    #[error(
        "the link was lost before the hub's answer ({0}): it may be done or not; look at the group, then decide"
    )]
    LinkLost(Fault),
    /// No answer in time: a change may be done or not. To ask for the same again is harmless, but for a purge or a
    /// removal: look at the group first.
    #[error("the hub didn't answer within {:.1} s: a change may be done or not; look at the group, or ask again", waited.as_secs_f64())]
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
            GroupError::LinkLost(_) => code::LINK_LOST,
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
