//! From where on stored events count.

use super::Timestamp;
use crate::{
    event::{EventId, InvalidText},
    wire::StartAt,
};

/// From where on stored events count: for a new binding of a group, and for a group that goes back or ahead.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use eventflow::spoke::Start;
///
/// let all = Start::all();
/// let yesterday = Start::at(SystemTime::now() - Duration::from_secs(24 * 60 * 60));
/// let next = Start::after("01K0EXAMPLE");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start(At);

#[derive(Debug, Clone, PartialEq, Eq)]
enum At {
    All,
    Time(Timestamp),
    Event(String),
}

impl Start {
    /// From the first one.
    #[must_use]
    pub fn all() -> Self {
        Self(At::All)
    }

    /// Those that were dispatched at this moment or later: a `SystemTime`, or milliseconds since 1970.
    #[must_use]
    pub fn at(moment: impl Into<Timestamp>) -> Self {
        Self(At::Time(moment.into()))
    }

    /// Those that were dispatched after this event, of which the id is given. It is checked when it is used.
    #[must_use]
    pub fn after(id: impl Into<String>) -> Self {
        Self(At::Event(id.into()))
    }

    pub(super) fn check(self) -> Result<StartAt, InvalidText> {
        Ok(match self.0 {
            At::All => StartAt::All,
            At::Time(moment) => StartAt::Time(moment.as_millis()),
            At::Event(id) => StartAt::Id(EventId::parse(id)?),
        })
    }
}
