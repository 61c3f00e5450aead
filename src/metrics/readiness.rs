//! Whether the hub can be given work, and if not, why.

use serde::Serialize;

use super::label::{Label, ReadyState};

/// What `/readyz` answers. The hub keeps it in a [`tokio::sync::watch`] channel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Readiness {
    /// It opens its database, replays, starts to listen.
    #[default]
    Starting,
    /// It serves.
    Ready,
    /// It runs but can't do all of its work: the disk is full, the database is away.
    Degraded {
        /// A sentence: what, why, what to do.
        reason: String,
    },
    /// It takes no new work and is about to stop.
    Draining,
}

impl Readiness {
    /// Whether work may be sent here.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        *self == Self::Ready
    }

    /// A sentence for the person who asks.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::Starting => "the hub is starting: it isn't listening yet",
            Self::Ready => "the hub is ready",
            Self::Degraded { reason } => reason,
            Self::Draining => "the hub is draining: it ends what is in flight and takes nothing new",
        }
    }

    /// The state without its reason.
    #[must_use]
    pub fn state(&self) -> ReadyState {
        match self {
            Self::Starting => ReadyState::Starting,
            Self::Ready => ReadyState::Ready,
            Self::Degraded { .. } => ReadyState::Degraded,
            Self::Draining => ReadyState::Draining,
        }
    }
}

impl std::fmt::Display for Readiness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.state().as_str())
    }
}
