//! What a group does with events that fail.

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::{event::Domain, wire::GroupSettings};

/// The longest wait between two attempts that anybody may ask for.
pub const LONGEST_DELAY: Duration = Duration::from_secs(30 * 24 * 3_600);
/// How much a wait is spread, so that what failed together doesn't come back together: up or down by a fifth.
const SPREAD: f64 = 0.2;

/// The settings of a group, each with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// After so many attempts of a round an event is dead.
    pub max_attempts: u32,
    /// How long the first retry waits; each further one waits twice as long.
    pub delay: Duration,
    /// The longest such wait.
    pub max_delay: Duration,
    /// Events of one pid are handed out one at a time, in sequence.
    pub key_order: bool,
    /// With `key_order`: a dead event holds back the later ones of its pid.
    pub dead_blocks: bool,
    /// The domain in which dead events are published as events of their own.
    pub dead_letter: Option<Domain>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            max_attempts: 5,
            delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(300),
            key_order: false,
            dead_blocks: false,
            dead_letter: None,
        }
    }
}

impl Policy {
    /// The same with what these settings name. They were validated: of a dead-letter domain that is none, there is
    /// none.
    pub fn change(&mut self, settings: &GroupSettings) {
        let GroupSettings { max_attempts, delay, max_delay, key_order, dead_blocks, dead_letter } = settings;
        let millis = |time: &Option<u64>, old| time.map_or(old, Duration::from_millis);
        self.max_attempts = max_attempts.unwrap_or(self.max_attempts).max(1);
        self.delay = millis(delay, self.delay);
        self.max_delay = millis(max_delay, self.max_delay);
        self.key_order = key_order.unwrap_or(self.key_order);
        self.dead_blocks = dead_blocks.unwrap_or(self.dead_blocks);
        if let Some(domain) = dead_letter {
            self.dead_letter = Domain::parse(domain.as_str()).ok();
        }
    }

    /// As a hub tells it: nothing is left out but a dead-letter domain that there isn't.
    #[must_use]
    pub fn settings(&self) -> GroupSettings {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        GroupSettings {
            max_attempts: Some(self.max_attempts),
            delay: Some(millis(self.delay)),
            max_delay: Some(millis(self.max_delay)),
            key_order: Some(self.key_order),
            dead_blocks: Some(self.dead_blocks),
            dead_letter: self.dead_letter.as_ref().map(|domain| domain.as_str().to_owned()),
        }
    }

    /// How long the next attempt waits after `failed` of them, in milliseconds. `chance` is between 0 and 1.
    #[must_use]
    pub fn back_off(&self, failed: u32, chance: f64) -> i64 {
        let doubled = 2_u32.saturating_pow(failed.saturating_sub(1));
        let wait = self.delay.saturating_mul(doubled).min(self.max_delay).min(LONGEST_DELAY);
        let spread = 1.0 - SPREAD + 2.0 * SPREAD * chance.clamp(0.0, 1.0);
        i64::try_from(wait.mul_f64(spread).as_millis()).unwrap_or(i64::MAX)
    }
}
