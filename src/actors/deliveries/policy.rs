//! What a group does with events that fail, resolved: its own settings over the hub's defaults.

use crate::{event::Domain, wire::GroupSettings};

/// How a group tries again, and when it gives up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// After so many attempts an event is dead.
    pub max_attempts: u32,
    /// How long the first retry waits, in milliseconds; each further one twice as long.
    pub delay: i64,
    /// The longest such wait, in milliseconds.
    pub max_delay: i64,
    /// Events of one pid are handed out one at a time, in the order of the hub. Never in the default group.
    pub key_order: bool,
    /// With `key_order`: a dead event holds back the later ones of its pid.
    pub dead_blocks: bool,
    /// Dead events are also published in this domain.
    pub dead_letter: Option<Domain>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            max_attempts: 5,
            delay: 1_000,
            max_delay: 300_000,
            key_order: false,
            dead_blocks: false,
            dead_letter: None,
        }
    }
}

impl Policy {
    /// The settings that a group has of its own, over these.
    #[must_use]
    pub fn with(&self, own: &GroupSettings) -> Self {
        let millis = |own: Option<u64>, else_: i64| {
            own.map_or(else_, |millis| i64::try_from(millis).unwrap_or(i64::MAX))
        };
        let delay = millis(own.delay, self.delay);
        let dead_letter = match own.dead_letter.as_deref() {
            None => self.dead_letter.clone(),
            Some("") => None,
            Some(domain) => Some(Domain::from_stored(domain.to_owned())),
        };
        Self {
            max_attempts: own.max_attempts.unwrap_or(self.max_attempts).max(1),
            delay,
            // Of one that was set alone the other may be the hub's.
            max_delay: millis(own.max_delay, self.max_delay).max(delay),
            key_order: own.key_order.unwrap_or(self.key_order),
            dead_blocks: own.dead_blocks.unwrap_or(self.dead_blocks),
            dead_letter,
        }
    }

    /// As it is told to clients: nothing is none but `dead_letter`.
    #[must_use]
    pub fn settings(&self) -> GroupSettings {
        let millis = |millis: i64| Some(u64::try_from(millis).unwrap_or(0));
        GroupSettings {
            max_attempts: Some(self.max_attempts),
            delay: millis(self.delay),
            max_delay: millis(self.max_delay),
            key_order: Some(self.key_order),
            dead_blocks: Some(self.dead_blocks),
            dead_letter: self.dead_letter.as_ref().map(ToString::to_string),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_group_has_of_its_own_stands_over_the_hubs() {
        let hub = Policy::default();
        assert_eq!(hub.with(&GroupSettings::default()), hub);
        assert_eq!(hub.with(&hub.settings()), hub);
        let own = GroupSettings {
            delay: Some(600_000),
            dead_letter: Some("failures".to_owned()),
            ..GroupSettings::default()
        };
        let policy = hub.with(&own);
        assert_eq!((policy.max_attempts, policy.delay, policy.max_delay), (5, 600_000, 600_000));
        assert_eq!(policy.settings().dead_letter.as_deref(), Some("failures"));
        let none = GroupSettings { dead_letter: Some(String::new()), ..GroupSettings::default() };
        assert_eq!(policy.with(&none).dead_letter, None);
    }
}
