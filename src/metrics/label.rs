//! Labels, from closed sets only: what a peer sends never becomes a label.

use super::instrument::{Counter, Gauge};
use crate::event::code;

/// A closed set of label values.
pub trait Label: Copy + 'static {
    /// All of them, in the order of their index.
    const ALL: &'static [Self];
    /// Its place in [`Label::ALL`].
    fn index(self) -> usize;
    /// The value as people and Prometheus see it.
    fn as_str(self) -> &'static str;
}

macro_rules! labels {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$of])* $variant,)* }

        impl Label for $name {
            const ALL: &'static [Self] = &[$(Self::$variant,)*];

            fn index(self) -> usize {
                self as usize
            }

            fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

labels! {
    /// The kinds of actors.
    ActorKind {
        /// Starts, restarts, drains and stops the others.
        Guardian = "guardian",
        /// Accepts links.
        Listener = "listener",
        /// One link.
        Connection = "connection",
        /// Writes the hot rows.
        Journal = "journal",
        /// Knows who wants what.
        Registry = "registry",
        /// Hands events to consumers.
        Deliveries = "deliveries",
        /// Runs what is scheduled.
        Scheduler = "scheduler",
        /// Collects what applications put into the database.
        Collector = "collector",
        /// Gathers numbers and states.
        Monitor = "monitor",
        /// Keeps the certificates.
        Warden = "warden",
        /// Tells other hubs of this one.
        Announcer = "announcer",
        /// Removes what was kept long enough.
        Keeper = "keeper",
    }
}

labels! {
    /// What a link speaks.
    Dialect {
        /// Our own protocol.
        V1 = "v1",
        /// That of npm Eventflow.
        Npm = "npm",
    }
}

labels! {
    /// Why the hub ended a link.
    CutReason {
        /// Nothing was heard for too long.
        Silent = "silent",
        /// It reads more slowly than events come.
        SlowSubscriber = "slow_subscriber",
        /// It didn't take our bytes within the write time-out.
        WriteTimeout = "write_timeout",
        /// It published beyond its window.
        WindowExceeded = "window_exceeded",
        /// A record over the limit.
        RecordTooLong = "record_too_long",
        /// A record of too many units.
        TooManyUnits = "too_many_units",
        /// A record that isn't UTF-8.
        InvalidUtf8 = "invalid_utf8",
        /// A version of the protocol that isn't spoken here.
        UnknownVersion = "unknown_version",
        /// It broke the protocol in another way.
        Protocol = "protocol",
        /// The socket failed.
        Transport = "transport",
        /// The hub has more work waiting than it allows, and the link knows no answers.
        Busy = "busy",
        /// Its certificate was revoked.
        Revoked = "revoked",
        /// The hub restarts its core.
        Restart = "restart",
        /// The hub stops.
        Draining = "draining",
    }
}

impl CutReason {
    /// The reason that a fault with this `E_EVENTFLOW_…` code is; [`CutReason::Protocol`] for all that has no
    /// word of its own.
    #[must_use]
    pub fn of(code: &str) -> Self {
        match code {
            code::LINK_SILENT => Self::Silent,
            code::SLOW_SUBSCRIBER => Self::SlowSubscriber,
            code::WINDOW_EXCEEDED => Self::WindowExceeded,
            code::RECORD_TOO_LONG => Self::RecordTooLong,
            code::TOO_MANY_UNITS => Self::TooManyUnits,
            code::INVALID_UTF8 => Self::InvalidUtf8,
            code::UNKNOWN_VERSION => Self::UnknownVersion,
            code::LINK_LOST => Self::Transport,
            code::HUB_BUSY => Self::Busy,
            code::CERTIFICATE_REVOKED => Self::Revoked,
            code::HUB_RESTART => Self::Restart,
            code::HUB_DRAINING => Self::Draining,
            _ => Self::Protocol,
        }
    }
}

labels! {
    /// Why a link never came to be.
    HandshakeFault {
        /// Not done in time.
        Timeout = "timeout",
        /// The client's certificate was refused, or there was none.
        Certificate = "certificate",
        /// The client's certificate was revoked.
        Revoked = "revoked",
        /// It asked for a hub that doesn't live here.
        Hostname = "hostname",
        /// Anything else in TLS.
        Tls = "tls",
        /// The socket failed.
        Transport = "transport",
    }
}

impl HandshakeFault {
    /// The reason that a fault with this `E_EVENTFLOW_…` code is; [`HandshakeFault::Tls`] for all that has no
    /// word of its own.
    #[must_use]
    pub fn of(code: &str) -> Self {
        match code {
            code::HANDSHAKE_TIMEOUT => Self::Timeout,
            code::CERTIFICATE => Self::Certificate,
            code::CERTIFICATE_REVOKED => Self::Revoked,
            code::INVALID_HOSTNAME => Self::Hostname,
            code::LINK_LOST => Self::Transport,
            _ => Self::Tls,
        }
    }
}

labels! {
    /// Why a publish was refused.
    Refusal {
        /// A text, the data or the record breaks the rules.
        Invalid = "invalid",
        /// The event is over the limit.
        TooLarge = "too_large",
        /// The id stands for another content.
        Conflict = "conflict",
        /// A log doesn't end as expected.
        LogConflict = "log_conflict",
        /// `rid` names an event that doesn't exist.
        RidNotFound = "rid_not_found",
        /// Too much waits, or the hub stops or restarts.
        Busy = "busy",
        /// The database is full, away or in trouble.
        Database = "database",
        /// A fault of the hub's own.
        Internal = "internal",
    }
}

impl Refusal {
    /// The class of an `E_EVENTFLOW_…` code.
    #[must_use]
    pub fn of(code: &str) -> Self {
        match code {
            code::EVENT_TOO_LARGE => Self::TooLarge,
            code::EVENT_CONFLICT => Self::Conflict,
            code::LOG_CONFLICT => Self::LogConflict,
            code::RID_NOT_FOUND => Self::RidNotFound,
            code::HUB_BUSY | code::HUB_DRAINING | code::HUB_RESTART | code::TIMEOUT => Self::Busy,
            code::DB_FULL | code::DB_UNAVAILABLE | code::DB_FAULT => Self::Database,
            code::INTERNAL => Self::Internal,
            _ => Self::Invalid,
        }
    }
}

labels! {
    /// How the work on an event ended.
    Ended {
        /// A consumer acknowledged it.
        Success = "success",
        /// It failed for good.
        Dead = "dead",
        /// Nobody wanted it in time.
        Expired = "expired",
    }
}

labels! {
    /// The default group, or any of the others.
    GroupKind {
        /// The one without a name.
        Default = "default",
        /// All that have one, together.
        Named = "named",
    }
}

labels! {
    /// How an event stood that retention removed.
    Removed {
        /// Each group ended it well.
        Success = "success",
        /// A group gave it up.
        Dead = "dead",
        /// It had expired.
        Expired = "expired",
        /// An npm spoke claimed it and wasn't heard of.
        Unknown = "unknown",
        /// Nobody wanted it.
        Orphan = "orphan",
        /// It was never published.
        Persisted = "persisted",
    }
}

impl From<crate::event::Kept> for Removed {
    fn from(kept: crate::event::Kept) -> Self {
        use crate::event::Kept;
        match kept {
            Kept::Success => Self::Success,
            Kept::Dead => Self::Dead,
            Kept::Expired => Self::Expired,
            Kept::Unknown => Self::Unknown,
            Kept::Orphan => Self::Orphan,
            Kept::Persisted => Self::Persisted,
        }
    }
}

impl From<crate::event::Outcome> for Ended {
    fn from(outcome: crate::event::Outcome) -> Self {
        use crate::event::Outcome;
        match outcome {
            Outcome::Success => Self::Success,
            Outcome::Dead => Self::Dead,
            Outcome::Expired => Self::Expired,
        }
    }
}

labels! {
    /// The states of [`Readiness`](super::Readiness), without their reasons.
    ReadyState {
        /// Not there yet.
        Starting = "starting",
        /// Serves.
        Ready = "ready",
        /// Serves in part.
        Degraded = "degraded",
        /// Stops.
        Draining = "draining",
    }
}

/// One counter per label.
#[derive(Debug)]
pub struct Counters<L>(Box<[Counter]>, std::marker::PhantomData<fn() -> L>);

impl<L: Label> Counters<L> {
    /// The counter of this label.
    pub fn of(&self, label: L) -> &Counter {
        &self.0[label.index()]
    }

    /// The sum over all labels.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().map(Counter::get).sum()
    }
}

impl<L: Label> Default for Counters<L> {
    fn default() -> Self {
        Self(L::ALL.iter().map(|_| Counter::default()).collect(), std::marker::PhantomData)
    }
}

/// One gauge per label.
#[derive(Debug)]
pub struct Gauges<L>(Box<[Gauge]>, std::marker::PhantomData<fn() -> L>);

impl<L: Label> Gauges<L> {
    /// The gauge of this label.
    pub fn of(&self, label: L) -> &Gauge {
        &self.0[label.index()]
    }
}

impl<L: Label> Default for Gauges<L> {
    fn default() -> Self {
        Self(L::ALL.iter().map(|_| Gauge::default()).collect(), std::marker::PhantomData)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each_index_is_its_place<L: Label + PartialEq + std::fmt::Debug>() {
        for (place, label) in L::ALL.iter().enumerate() {
            assert_eq!(label.index(), place, "{label:?}");
        }
    }

    #[test]
    fn indexes_are_places() {
        each_index_is_its_place::<ActorKind>();
        each_index_is_its_place::<Dialect>();
        each_index_is_its_place::<CutReason>();
        each_index_is_its_place::<HandshakeFault>();
        each_index_is_its_place::<Refusal>();
        each_index_is_its_place::<Ended>();
        each_index_is_its_place::<Removed>();
        each_index_is_its_place::<ReadyState>();
    }

    #[test]
    fn codes_become_their_class() {
        assert_eq!(Refusal::of(code::DB_FULL), Refusal::Database);
        assert_eq!(Refusal::of(code::INVALID_NAME), Refusal::Invalid);
        assert_eq!(CutReason::of(code::SLOW_SUBSCRIBER), CutReason::SlowSubscriber);
        assert_eq!(CutReason::of("E_EVENTFLOW_NEVER_HEARD"), CutReason::Protocol);
        assert_eq!(HandshakeFault::of(code::HANDSHAKE_TIMEOUT), HandshakeFault::Timeout);
        assert_eq!(HandshakeFault::of(code::HANDSHAKE), HandshakeFault::Tls);
    }
}
