//! The error that crosses a wire: a stable code, a sentence, and whether to try again.

use std::{fmt, time::Duration};

/// Whether the same request may succeed later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// It won't: the request itself must change.
    Never,
    /// It may, after this wait.
    After(Duration),
}

/// An error as the other end of a link sees it.
///
/// Each layer has its own error type; where one reaches a link it becomes a `Fault`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Stable, `E_EVENTFLOW_…`; see [`code`].
    pub code: String,
    /// What, which object, why and what to do.
    pub message: String,
    /// Whether to try again.
    pub retry: Retry,
}

impl Fault {
    /// A final refusal.
    pub fn refused(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), retry: Retry::Never }
    }

    /// A refusal that a later try may overcome.
    pub fn retryable(code: &str, message: impl Into<String>, wait: Duration) -> Self {
        Self { code: code.to_owned(), message: message.into(), retry: Retry::After(wait) }
    }

    /// Whether a later try may succeed.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self.retry, Retry::After(_))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for Fault {}

/// The stable error codes. Those that npm Eventflow has too keep its spelling.
pub mod code {
    /// The id of an event breaks the rules for texts.
    pub const INVALID_ID: &str = "E_EVENTFLOW_INVALID_ID";
    /// A domain breaks the rules.
    pub const INVALID_DOMAIN: &str = "E_EVENTFLOW_INVALID_DOMAIN";
    /// A name breaks the rules.
    pub const INVALID_NAME: &str = "E_EVENTFLOW_INVALID_NAME";
    /// A pid breaks the rules.
    pub const INVALID_PID: &str = "E_EVENTFLOW_INVALID_PID";
    /// A group's name breaks the rules.
    pub const INVALID_GROUP: &str = "E_EVENTFLOW_INVALID_GROUP";
    /// A UID breaks the rules.
    pub const INVALID_UID: &str = "E_EVENTFLOW_INVALID_UID";
    /// A domain or name pattern breaks the rules.
    pub const INVALID_PATTERN: &str = "E_EVENTFLOW_INVALID_PATTERN";
    /// The data is not JSON, or is JSON that not every database can keep.
    pub const INVALID_DATA: &str = "E_EVENTFLOW_INVALID_DATA";
    /// The data nests deeper than the limit.
    pub const DATA_TOO_DEEP: &str = "E_EVENTFLOW_DATA_TOO_DEEP";
    /// The data is larger than the hub's limit.
    pub const EVENT_TOO_LARGE: &str = "E_EVENTFLOW_EVENT_TOO_LARGE";
    /// An event of this id with other content is already stored.
    pub const EVENT_CONFLICT: &str = "E_EVENTFLOW_EVENT_CONFLICT";
    /// The log of the event's process doesn't end as its publisher expects.
    pub const LOG_CONFLICT: &str = "E_EVENTFLOW_LOG_CONFLICT";
    /// `rid` names an event that doesn't exist.
    pub const RID_NOT_FOUND: &str = "E_EVENTFLOW_RID_NOT_FOUND";
    /// No event has this id (npm's code).
    pub const EVENT_NOT_FOUND: &str = "E_EVENTFLOW_DB_EVENT_NOT_FOUND";
    /// The claim is no longer held: the event was offered to somebody else, or its outcome is recorded.
    pub const CLAIM_LOST: &str = "E_EVENTFLOW_CLAIM_LOST";
    /// The page token belongs to another query or is damaged.
    pub const INVALID_PAGE: &str = "E_EVENTFLOW_INVALID_PAGE";
    /// A position can't be read, belongs to another hub, or lies beyond what the hub has dispatched.
    pub const INVALID_POSITION: &str = "E_EVENTFLOW_INVALID_POSITION";
    /// No subscription or consumer of this link has this number.
    pub const UNKNOWN_SUBSCRIPTION: &str = "E_EVENTFLOW_UNKNOWN_SUBSCRIPTION";
    /// The number is in use by another subscription of this link.
    pub const SUBSCRIPTION_EXISTS: &str = "E_EVENTFLOW_SUBSCRIPTION_EXISTS";
    /// The link has as many subscriptions as the hub allows.
    pub const TOO_MANY_SUBSCRIPTIONS: &str = "E_EVENTFLOW_TOO_MANY_SUBSCRIPTIONS";
    /// Consumers have made as many bindings as the hub keeps.
    pub const TOO_MANY_BINDINGS: &str = "E_EVENTFLOW_TOO_MANY_BINDINGS";
    /// No group has this name.
    pub const GROUP_NOT_FOUND: &str = "E_EVENTFLOW_GROUP_NOT_FOUND";
    /// The event isn't dead in this group, so that there is nothing to redrive.
    pub const NOT_DEAD: &str = "E_EVENTFLOW_NOT_DEAD";
    /// The group has no binding for these patterns.
    pub const BINDING_NOT_FOUND: &str = "E_EVENTFLOW_BINDING_NOT_FOUND";
    /// The hub has as many named groups as it keeps.
    pub const TOO_MANY_GROUPS: &str = "E_EVENTFLOW_TOO_MANY_GROUPS";
    /// An entity's id breaks the rules for texts.
    pub const INVALID_EID: &str = "E_EVENTFLOW_INVALID_EID";
    /// A batch has no event or more than the limit.
    pub const INVALID_BATCH: &str = "E_EVENTFLOW_INVALID_BATCH";
    /// A schedule has no date, one in the past or one too far away (npm's code).
    pub const SCHEDULE_INVALID_DATE: &str = "E_EVENTFLOW_SPOKE_SCHEDULE_INVALID_DATE";
    /// No event of this id is scheduled.
    pub const SCHEDULE_NOT_FOUND: &str = "E_EVENTFLOW_SCHEDULE_NOT_FOUND";
    /// The schedule ran already.
    pub const SCHEDULE_EXECUTED: &str = "E_EVENTFLOW_SCHEDULE_EXECUTED";
    /// The name of a recurring schedule breaks the rules for texts.
    pub const INVALID_RECURRING: &str = "E_EVENTFLOW_INVALID_RECURRING";
    /// The rule of a recurring schedule can't be read, or never fires.
    pub const INVALID_RULE: &str = "E_EVENTFLOW_INVALID_RULE";
    /// No time zone has this name.
    pub const INVALID_ZONE: &str = "E_EVENTFLOW_INVALID_ZONE";
    /// No recurring schedule has this name.
    pub const RECURRING_NOT_FOUND: &str = "E_EVENTFLOW_RECURRING_NOT_FOUND";
    /// A recurring schedule of this name stands with other content.
    pub const RECURRING_CONFLICT: &str = "E_EVENTFLOW_RECURRING_CONFLICT";
    /// There are as many recurring schedules as the hub keeps.
    pub const TOO_MANY_RECURRING: &str = "E_EVENTFLOW_TOO_MANY_RECURRING";
    /// What was waited for didn't come in time (npm's code).
    pub const WAIT_TIMEOUT: &str = "E_EVENTFLOW_WAIT_TIMEOUT";
    /// A link waits for more at once than the hub allows.
    pub const TOO_MANY_WAITS: &str = "E_EVENTFLOW_TOO_MANY_WAITS";
    /// The hub's settings don't allow it to spokes.
    pub const NOT_ALLOWED: &str = "E_EVENTFLOW_NOT_ALLOWED";
    /// The verb is not part of the protocol.
    pub const UNKNOWN_VERB: &str = "E_EVENTFLOW_UNKNOWN_VERB";
    /// The hub speaks no such version of the protocol.
    pub const UNKNOWN_VERSION: &str = "E_EVENTFLOW_UNKNOWN_VERSION";
    /// A record of a known verb has too few or too many units, or one of the wrong form.
    pub const INVALID_RECORD: &str = "E_EVENTFLOW_INVALID_RECORD";
    /// A record is longer than the limit.
    pub const RECORD_TOO_LONG: &str = "E_EVENTFLOW_RECORD_TOO_LONG";
    /// A record has more units than the limit.
    pub const TOO_MANY_UNITS: &str = "E_EVENTFLOW_TOO_MANY_UNITS";
    /// A record is not UTF-8.
    pub const INVALID_UTF8: &str = "E_EVENTFLOW_INVALID_UTF8";
    /// A unit holds a separator or another control character.
    pub const CONTROL_CHARACTER: &str = "E_EVENTFLOW_CONTROL_CHARACTER";
    /// A publisher sent more than its window allows.
    pub const WINDOW_EXCEEDED: &str = "E_EVENTFLOW_WINDOW_EXCEEDED";
    /// A subscriber reads more slowly than events come.
    pub const SLOW_SUBSCRIBER: &str = "E_EVENTFLOW_SLOW_SUBSCRIBER";
    /// Nothing was heard from the other end for too long.
    pub const LINK_SILENT: &str = "E_EVENTFLOW_LINK_SILENT";
    /// The TLS handshake failed for a reason that is no certificate's: the other end speaks something else.
    pub const HANDSHAKE: &str = "E_EVENTFLOW_HANDSHAKE";
    /// The TLS handshake took too long.
    pub const HANDSHAKE_TIMEOUT: &str = "E_EVENTFLOW_HANDSHAKE_TIMEOUT";
    /// The hub has more work waiting than it allows.
    pub const HUB_BUSY: &str = "E_EVENTFLOW_HUB_BUSY";
    /// The hub is stopping.
    pub const HUB_DRAINING: &str = "E_EVENTFLOW_HUB_DRAINING";
    /// The hub restarts its core after an internal fault.
    pub const HUB_RESTART: &str = "E_EVENTFLOW_HUB_RESTART";
    /// The disk or the database's size limit is full.
    pub const DB_FULL: &str = "E_EVENTFLOW_DB_FULL";
    /// The database is read-only, locked or away.
    pub const DB_UNAVAILABLE: &str = "E_EVENTFLOW_DB_UNAVAILABLE";
    /// The database refused for a reason that we don't know.
    pub const DB_FAULT: &str = "E_EVENTFLOW_DB_FAULT";
    /// The database or its data folder is in use by another hub.
    pub const DB_IN_USE: &str = "E_EVENTFLOW_DB_IN_USE";
    /// The database has a newer schema than this program knows.
    pub const DB_SCHEMA_NEWER: &str = "E_EVENTFLOW_DB_SCHEMA_NEWER";
    /// The database lacks migrations of this program, and the hub isn't to apply them.
    pub const DB_SCHEMA_PENDING: &str = "E_EVENTFLOW_DB_SCHEMA_PENDING";
    /// What a database holds can't be moved: the file is damaged, or the target isn't as it must be.
    pub const TRANSFER: &str = "E_EVENTFLOW_TRANSFER";
    /// The data folder can't be made, read or written.
    pub const DATA_FOLDER: &str = "E_EVENTFLOW_DATA_FOLDER";
    /// A backup can't be made now, or not written where it was to go.
    pub const BACKUP: &str = "E_EVENTFLOW_BACKUP";
    /// The address is in use or can't be bound.
    pub const ADDRESS: &str = "E_EVENTFLOW_ADDRESS";
    /// A setting is unknown or has a value of the wrong form.
    pub const INVALID_CONFIG: &str = "E_EVENTFLOW_INVALID_CONFIG";
    /// A configured name is not `[A-Za-z0-9.-]+` (npm's code).
    pub const INVALID_CONFIG_NAME: &str = "E_EVENTFLOW_HUB_INVALID_CONFIG_NAME";
    /// The client asked for a hub that doesn't live here (npm's code).
    pub const INVALID_HOSTNAME: &str = "E_EVENTFLOW_INVALID_HOSTNAME";
    /// A certificate was refused: chain, validity, names or use.
    pub const CERTIFICATE: &str = "E_EVENTFLOW_CERTIFICATE";
    /// A certificate of ours has expired.
    pub const CERTIFICATE_EXPIRED: &str = "E_EVENTFLOW_CERTIFICATE_EXPIRED";
    /// A certificate was revoked: who shows it is not let in, and its links are cut.
    pub const CERTIFICATE_REVOKED: &str = "E_EVENTFLOW_CERTIFICATE_REVOKED";
    /// A certificate of this id stands already.
    pub const CERTIFICATE_EXISTS: &str = "E_EVENTFLOW_CERTIFICATE_EXISTS";
    /// No certificate of this id stands.
    pub const CERTIFICATE_NOT_FOUND: &str = "E_EVENTFLOW_CERTIFICATE_NOT_FOUND";
    /// This certificate can't be revoked this way: it is the hub's own, or stands above others.
    pub const CERTIFICATE_PROTECTED: &str = "E_EVENTFLOW_CERTIFICATE_PROTECTED";
    /// An id or a lifetime that no certificate can have.
    pub const INVALID_CERTIFICATE: &str = "E_EVENTFLOW_INVALID_CERTIFICATE";
    /// The root or the intermediate is gone, revoked or expired: nothing can be issued under it.
    pub const AUTHORITY_GONE: &str = "E_EVENTFLOW_AUTHORITY_GONE";
    /// The public key of a renewal can't be read.
    pub const INVALID_PUBLIC_KEY: &str = "E_EVENTFLOW_INVALID_PUBLIC_KEY";
    /// The public key of a renewal is of a kind that isn't served.
    pub const UNSUPPORTED_PUBLIC_KEY: &str = "E_EVENTFLOW_UNSUPPORTED_PUBLIC_KEY";
    /// A key or a certificate at rest can't be opened: wrong phrase or damaged.
    pub const VAULT: &str = "E_EVENTFLOW_VAULT";
    /// A bundle of credentials can't be read or lacks a part.
    pub const BUNDLE: &str = "E_EVENTFLOW_BUNDLE";
    /// The admin HTTP needs the token, and it is missing or wrong.
    pub const ADMIN_TOKEN: &str = "E_EVENTFLOW_ADMIN_TOKEN";
    /// No hub could be reached.
    pub const NO_HUB: &str = "E_EVENTFLOW_NO_HUB";
    /// The link to the hub was lost.
    pub const LINK_LOST: &str = "E_EVENTFLOW_LINK_LOST";
    /// An operation didn't end in its time.
    pub const TIMEOUT: &str = "E_EVENTFLOW_TIMEOUT";
    /// The client was closed.
    pub const CLOSED: &str = "E_EVENTFLOW_CLOSED";
    /// The hub has no such feature yet.
    pub const UNSUPPORTED: &str = "E_EVENTFLOW_UNSUPPORTED";
    /// A fault of the hub's own; its log says more.
    pub const INTERNAL: &str = "E_EVENTFLOW_INTERNAL";
    /// The consumer's handler failed (npm's code).
    pub const CONSUME_FAILED: &str = "E_EVENTFLOW_SPOKE_CONSUME_OBSERVER_ERROR";
}
