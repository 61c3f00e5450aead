//! What can go wrong, one small kind per operation. Each has a stable [`code`] and says whether the same
//! call may succeed later. Their `Debug` is the sentence too, with its code, since that is what a `main` that
//! returns an error prints.

mod group;
mod later;

use std::{fmt, time::Duration};

pub use self::group::GroupError;
pub use self::later::{ChangeError, RequestError, ScheduleError, StateError, WaitError};

use crate::{
    event::{Fault, InvalidData, InvalidPattern, InvalidText, LogConflict, code},
    wire::MOST_NAMES,
};

/// One hub address that was tried, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// `host:port`, with the hub's id if it is known.
    pub address: String,
    /// What happened there, as a sentence.
    pub reason: String,
}

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.address, self.reason)
    }
}

macro_rules! debug_is_a_sentence {
    ($($error:ident),*) => {$(
        impl fmt::Debug for $error {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self} ({})", self.code())
            }
        }
    )*};
}

debug_is_a_sentence!(
    ConnectError,
    PublishError,
    SubscribeError,
    ConsumeError,
    SettleError,
    ReadError,
    WaitError,
    RequestError,
    ScheduleError,
    ChangeError,
    GroupError,
    StateError
);

/// [`Spoke::connect`](crate::spoke::Spoke::connect) failed.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The configuration names no hub.
    #[error("no hub to connect to: the bundle lists none, and none was given: name one as host:port")]
    NoAddress,
    /// The credentials can't be used.
    #[error(transparent)]
    Credentials(#[from] crate::pki::PkiError),
    /// No hub took the link in time.
    #[error(
        "no hub could be reached within {:.1} s: {}: check that the hub runs and the address is right",
        waited.as_secs_f64(), list(tried)
    )]
    NoHub {
        /// The deadline that passed.
        waited: Duration,
        /// Every address with what happened there last.
        tried: Vec<Tried>,
    },
    /// Every hub refused for a reason that waiting doesn't change.
    #[error("every hub refused the link: {}", list(tried))]
    Refused {
        /// Every address with its reason.
        tried: Vec<Tried>,
        /// The last refusal.
        fault: Fault,
    },
}

fn list(tried: &[Tried]) -> String {
    if tried.is_empty() {
        return "nothing was tried yet".to_owned();
    }
    tried.iter().map(Tried::to_string).collect::<Vec<_>>().join("; ")
}

impl ConnectError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            ConnectError::NoAddress | ConnectError::NoHub { .. } => code::NO_HUB,
            ConnectError::Credentials(error) => error.code(),
            ConnectError::Refused { fault, .. } => &fault.code,
        }
    }

    /// Whether connecting again may succeed with nothing changed here.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, ConnectError::NoHub { .. })
    }
}

/// A publish failed.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The id, domain, name, pid or rid breaks the rules; nothing was sent.
    #[error(transparent)]
    Text(#[from] InvalidText),
    /// The data can't be an event's payload; nothing was sent.
    #[error(transparent)]
    Data(#[from] InvalidData),
    /// The log doesn't end as the publish [expects](crate::spoke::Publish::expecting); nothing is stored.
    #[error("{0}")]
    LogConflict(Box<LogConflict>),
    /// The hub refused it for good.
    #[error("the hub refused the event: {0}")]
    Refused(Fault),
    /// The deadline passed without an answer. The event may be stored or not: publish it again under the same
    /// id, and it will be there once.
    #[error(
        "the event was not acknowledged within {:.1} s{}: publish it again under the same id",
        waited.as_secs_f64(), because(last)
    )]
    TimedOut {
        /// The publish's own deadline.
        waited: Duration,
        /// The last refusal or the loss of the link, if there was one.
        last: Option<Fault>,
    },
    /// The spoke is closed.
    #[error("the spoke is closed: {0}")]
    Closed(Fault),
}

fn because(last: &Option<Fault>) -> String {
    last.as_ref().map(|fault| format!(" ({fault})")).unwrap_or_default()
}

/// A subscription could not be made.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SubscribeError {
    /// A pattern breaks the rules; nothing was sent.
    #[error(transparent)]
    Pattern(#[from] InvalidPattern),
    /// The hub refused it.
    #[error("the hub refused the subscription: {0}")]
    Refused(Fault),
    /// No answer in time.
    #[error("the subscription was not confirmed within {:.1} s", waited.as_secs_f64())]
    TimedOut {
        /// The request's deadline.
        waited: Duration,
    },
    /// The spoke is closed.
    #[error("the spoke is closed: {0}")]
    Closed(Fault),
}

/// A consumer could not be registered or stopped.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConsumeError {
    /// A pattern breaks the rules; nothing was sent.
    #[error(transparent)]
    Pattern(#[from] InvalidPattern),
    /// The group's name breaks the rules; nothing was sent.
    #[error(transparent)]
    Group(#[from] InvalidText),
    /// The hub refused it.
    #[error("the hub refused the consumer: {0}")]
    Refused(Fault),
    /// No answer in time.
    #[error("the consumer was not confirmed within {:.1} s", waited.as_secs_f64())]
    TimedOut {
        /// The request's deadline.
        waited: Duration,
    },
    /// The spoke is closed.
    #[error("the spoke is closed: {0}")]
    Closed(Fault),
}

/// A claim could not be settled: its ack, nack or release has no effect, or none that is known.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SettleError {
    /// The hub gave the event to somebody else or recorded its outcome already.
    #[error("the claim is lost: the event was offered to somebody else or has its outcome")]
    ClaimLost,
    /// The event was deleted while it was claimed.
    #[error("the event was deleted while this claim was held: drop the result")]
    EventDeleted,
    /// The link that brought the claim is gone: the hub offers the event again.
    #[error("the link that brought the claim was lost: the hub offers the event again")]
    LinkLost,
    /// The hub refused.
    #[error("the hub refused to settle the claim: {0}")]
    Refused(Fault),
    /// No answer in time.
    #[error("the claim's end was not confirmed within {:.1} s", waited.as_secs_f64())]
    TimedOut {
        /// The request's deadline.
        waited: Duration,
    },
    /// The spoke is closed.
    #[error("the spoke is closed: {0}")]
    Closed(Fault),
}

/// A read failed: of one event, a log or a trace.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The id, domain, pid, name or entity breaks the rules; nothing was sent.
    #[error(transparent)]
    Text(#[from] InvalidText),
    /// More names are listed than one read may ask for; nothing was sent.
    #[error("{count} names are listed, at most {MOST_NAMES} may be: read without names and filter")]
    Names {
        /// So many.
        count: usize,
    },
    /// No event has this id.
    #[error("no event has the id {id:?}: it was never stored here, or is deleted")]
    NotFound {
        /// The id that was asked for.
        id: String,
    },
    /// The hub refused.
    #[error("the hub refused to read: {0}")]
    Refused(Fault),
    /// No answer in time.
    #[error("the hub didn't answer within {:.1} s", waited.as_secs_f64())]
    TimedOut {
        /// The request's deadline.
        waited: Duration,
    },
    /// The spoke is closed.
    #[error("the spoke is closed: {0}")]
    Closed(Fault),
}

impl PublishError {
    /// What a final refusal means.
    pub(super) fn refused(fault: Fault) -> Self {
        let conflict =
            (fault.code == code::LOG_CONFLICT).then(|| LogConflict::parse(&fault.message)).flatten();
        conflict.map_or(Self::Refused(fault), |conflict| Self::LogConflict(Box::new(conflict)))
    }

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            PublishError::Text(error) => error.code,
            PublishError::Data(InvalidData::TooDeep) => code::DATA_TOO_DEEP,
            PublishError::Data(_) => code::INVALID_DATA,
            PublishError::LogConflict(_) => code::LOG_CONFLICT,
            PublishError::Refused(fault) | PublishError::Closed(fault) => &fault.code,
            PublishError::TimedOut { .. } => code::TIMEOUT,
        }
    }

    /// Whether publishing the same again may succeed.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            PublishError::TimedOut { .. } => true,
            PublishError::Refused(fault) => fault.is_retryable(),
            _ => false,
        }
    }
}

impl SubscribeError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            SubscribeError::Pattern(_) => code::INVALID_PATTERN,
            SubscribeError::Refused(fault) | SubscribeError::Closed(fault) => &fault.code,
            SubscribeError::TimedOut { .. } => code::TIMEOUT,
        }
    }

    /// Whether the same call may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            SubscribeError::TimedOut { .. } => true,
            SubscribeError::Refused(fault) => fault.is_retryable(),
            _ => false,
        }
    }
}

impl ConsumeError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            ConsumeError::Pattern(_) => code::INVALID_PATTERN,
            ConsumeError::Group(error) => error.code,
            ConsumeError::Refused(fault) | ConsumeError::Closed(fault) => &fault.code,
            ConsumeError::TimedOut { .. } => code::TIMEOUT,
        }
    }

    /// Whether the same call may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            ConsumeError::TimedOut { .. } => true,
            ConsumeError::Refused(fault) => fault.is_retryable(),
            _ => false,
        }
    }
}

impl SettleError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            SettleError::ClaimLost => code::CLAIM_LOST,
            SettleError::EventDeleted => code::EVENT_NOT_FOUND,
            SettleError::LinkLost => code::LINK_LOST,
            SettleError::Refused(fault) | SettleError::Closed(fault) => &fault.code,
            SettleError::TimedOut { .. } => code::TIMEOUT,
        }
    }

    /// Always false: a claim is settled once, and what isn't settled the hub offers again by itself.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        false
    }
}

impl ReadError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            ReadError::Text(error) => error.code,
            ReadError::Names { .. } => code::INVALID_RECORD,
            ReadError::NotFound { .. } => code::EVENT_NOT_FOUND,
            ReadError::Refused(fault) | ReadError::Closed(fault) => &fault.code,
            ReadError::TimedOut { .. } => code::TIMEOUT,
        }
    }

    /// Whether the same call may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            ReadError::TimedOut { .. } => true,
            ReadError::Refused(fault) => fault.is_retryable(),
            _ => false,
        }
    }
}
