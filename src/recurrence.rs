//! When a recurring schedule is due: cron rules and intervals, time zones, and what becomes of times that were missed.
//!
//! Everything here is pure: it takes the time, in milliseconds since 1970, and reads no clock.
//!
//! # Daylight saving time
//! A cron rule speaks of times on the wall of its zone. **Each matching wall time is due once a day it exists in:**
//!
//! - A wall time that clocks jump over (a *gap*) is due at the first instant after the gap. Several of one gap are due
//!   together, that is once.
//! - A wall time that clocks show twice (an *overlap*) is due when they show it for the first time, and not again.
//!
//! This holds for rules of every kind, so that `0 * * * * *` rests while clocks show an hour for the second time. What
//! is to be done every so often, whatever the wall says, is `@every`, which knows no zone.

mod cron;
mod error;
mod every;
mod plan;
mod rule;
#[cfg(test)]
mod tests;
mod zone;

pub use error::RuleError;
pub use plan::{CATCH_UP, COUNTED, GRACE_MS, Plan, Policy, plan};
pub use rule::{LONGEST_RULE, Rule, Times};
pub use zone::Zone;
