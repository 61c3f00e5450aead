//! That the work on an event failed: why, and what is to become of the event.

use std::{iter, time::Duration};

use super::BoxError;
use crate::wire::{LONGEST_DELAY_MS, NackOptions, retry_ms};

/// The most bytes of a reason that are sent.
const MAX_REASON: usize = 8 << 10;

/// Why the work on an event failed, and whether it is tried again: by the group's back-off unless it says otherwise.
///
/// A text is one, and so is any error. As the error of a handler, boxed or as the source of another error, it decides
/// too:
///
/// ```
/// use std::time::Duration;
/// use eventflow::spoke::{BoxError, Nack};
///
/// async fn charge(customer: Option<&str>) -> Result<(), BoxError> {
///     let customer = customer.ok_or_else(|| Nack::new("the order names no customer").give_up())?;
///     let reply: u32 = customer.parse()?;                    // any other error: tried again by the back-off
///     if reply == 429 {
///         return Err(Nack::new("the bank is busy").after(Duration::from_secs(60)).into());
///     }
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Nack {
    reason: String,
    next: Next,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Next {
    #[default]
    BackOff,
    After(Duration),
    Never,
}

impl Nack {
    /// For this reason, of which 8 KiB are kept.
    #[must_use]
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), next: Next::BackOff }
    }

    /// The next attempt waits at least so long, 30 days at most, whatever the group's back-off says; whole milliseconds are
    /// sent, and a wait that is longer is one of 30 days. It counts as any other towards the group's `max_attempts`.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self { next: Next::After(delay), ..self }
    }

    /// No further attempt: the event is dead now.
    #[must_use]
    pub fn give_up(self) -> Self {
        Self { next: Next::Never, ..self }
    }

    pub(super) fn into_options(self) -> NackOptions {
        let Self { mut reason, next } = self;
        reason.truncate(reason.floor_char_boundary(MAX_REASON));
        let delay = match next {
            Next::After(delay) => Some(retry_ms(delay).min(LONGEST_DELAY_MS)),
            Next::BackOff | Next::Never => None,
        };
        NackOptions { reason, delay, is_final: next == Next::Never }
    }
}

impl From<&str> for Nack {
    fn from(reason: &str) -> Self {
        Self::new(reason)
    }
}

impl From<String> for Nack {
    fn from(reason: String) -> Self {
        Self::new(reason)
    }
}

/// The error's text; what a [`Nack`] among its sources says of the next attempt counts.
impl From<BoxError> for Nack {
    fn from(error: BoxError) -> Self {
        let first: &(dyn std::error::Error + 'static) = &*error;
        let decides = iter::successors(Some(first), |error| error.source())
            .find_map(|error| error.downcast_ref::<Self>())
            .map(|nack| nack.next);
        Self { reason: error.to_string(), next: decides.unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the order can't be charged")]
    struct Outer(#[source] Nack);

    #[test]
    fn errors_are_tried_again_unless_a_nack_among_them_says_otherwise() {
        let options = |error: BoxError| Nack::from(error).into_options();
        let plain = options("no".into());
        assert_eq!((plain.reason.as_str(), plain.delay, plain.is_final), ("no", None, false));
        let late = options(Nack::new("busy").after(Duration::from_millis(1_500)).into());
        assert_eq!((late.reason.as_str(), late.delay, late.is_final), ("busy", Some(1_500), false));
        let outer = options(Outer(Nack::new("no customer").give_up()).into());
        assert_eq!(
            (outer.reason.as_str(), outer.delay, outer.is_final),
            ("the order can't be charged", None, true)
        );
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let options = Nack::new("é".repeat(MAX_REASON)).into_options();
        assert_eq!(options.reason.len(), MAX_REASON);
        let options = Nack::new(format!("x{}", "é".repeat(MAX_REASON))).into_options();
        assert_eq!(options.reason.len(), MAX_REASON - 1);
    }
}
