//! When to ping, and when a silent link is dead.

use std::time::Duration;

use tokio::time::Instant;

use crate::wire::LinkLimits;

/// What a link needs now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Beat {
    /// Nothing.
    Rest,
    /// Nothing was sent for too long.
    Ping,
    /// Nothing was heard for too long.
    Dead,
}

#[derive(Debug)]
pub(super) struct Pulse {
    ping: Duration,
    silence: Duration,
    sent: Instant,
    heard: Instant,
}

impl Pulse {
    pub(super) fn new(limits: &LinkLimits, now: Instant) -> Self {
        // A hub that says 0 would have us ping without end.
        let ping = Duration::from_millis(limits.ping_ms.max(10));
        let silence = Duration::from_millis(limits.silence_ms.max(20));
        Self { ping, silence, sent: now, heard: now }
    }

    pub(super) fn sent(&mut self, now: Instant) {
        self.sent = now;
    }

    pub(super) fn heard(&mut self, now: Instant) {
        self.heard = now;
    }

    pub(super) fn beat(&self, now: Instant) -> Beat {
        if now >= self.heard + self.silence {
            Beat::Dead
        } else if now >= self.sent + self.ping {
            Beat::Ping
        } else {
            Beat::Rest
        }
    }

    /// When to look again.
    pub(super) fn next(&self) -> Instant {
        (self.heard + self.silence).min(self.sent + self.ping)
    }

    /// How long nothing may be heard.
    pub(super) fn silence(&self) -> Duration {
        self.silence
    }
}
