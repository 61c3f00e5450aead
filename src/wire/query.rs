//! What is asked for by JSON: which events to read, what to wait for, what to relate or to remove.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use crate::event::{Domain, Eid, EventId, Group, Name, Pid};

/// Whose events are read, in one total order: by timestamp, then `seq`, then id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogOf {
    /// The log of a process, oldest first.
    Process {
        /// The domain.
        domain: Domain,
        /// The process.
        pid: Pid,
    },
    /// The events associated with a child process, oldest first.
    ChildProcess {
        /// The domain of the child process.
        domain: Domain,
        /// The child process.
        cpid: Pid,
    },
    /// The events associated with an entity, oldest first.
    Entity {
        /// The entity.
        eid: Eid,
        /// Only events of this domain.
        domain: Option<Domain>,
    },
    /// All events of a domain, **newest first**.
    Domain {
        /// The domain.
        domain: Domain,
    },
}

/// Which events a log read is about. JSON: `domain` and `pid`, or `domain` and `cpid`, or `eid` with or without
/// `domain`, or `domain` alone; and any of `names`, `from`, `to`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "LogFields", into = "LogFields")]
pub struct LogQuery {
    /// Whose.
    pub of: LogOf,
    /// Only events of these names; empty: of every name. At most [`MOST_NAMES`].
    pub names: Vec<Name>,
    /// Only events whose timestamp is at or above this, in milliseconds since 1970.
    pub from: Option<i64>,
    /// Only events whose timestamp is below this, in milliseconds since 1970.
    pub to: Option<i64>,
}

/// Names that a query or a wait may list.
pub const MOST_NAMES: usize = 64;

impl From<LogOf> for LogQuery {
    /// All of them.
    fn from(of: LogOf) -> Self {
        Self { of, names: Vec::new(), from: None, to: None }
    }
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LogFields {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    domain: Option<Domain>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pid: Option<Pid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cpid: Option<Pid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    eid: Option<Eid>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    names: Vec<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to: Option<i64>,
}

impl TryFrom<LogFields> for LogQuery {
    type Error = String;

    fn try_from(fields: LogFields) -> Result<Self, String> {
        let LogFields { domain, pid, cpid, eid, names, from, to } = fields;
        let of = match (domain, pid, cpid, eid) {
            (Some(domain), Some(pid), None, None) => LogOf::Process { domain, pid },
            (Some(domain), None, Some(cpid), None) => LogOf::ChildProcess { domain, cpid },
            (domain, None, None, Some(eid)) => LogOf::Entity { eid, domain },
            (Some(domain), None, None, None) => LogOf::Domain { domain },
            _ => {
                return Err(
                    "say whose events: `domain` and `pid`, `domain` and `cpid`, `eid` with or without \
                     `domain`, or `domain` alone"
                        .to_owned(),
                );
            }
        };
        few(&names)?;
        Ok(Self { of, names, from, to })
    }
}

impl From<LogQuery> for LogFields {
    fn from(query: LogQuery) -> Self {
        let LogQuery { of, names, from, to } = query;
        let fields = Self { domain: None, pid: None, cpid: None, eid: None, names, from, to };
        match of {
            LogOf::Process { domain, pid } => Self { domain: Some(domain), pid: Some(pid), ..fields },
            LogOf::ChildProcess { domain, cpid } => Self { domain: Some(domain), cpid: Some(cpid), ..fields },
            LogOf::Entity { eid, domain } => Self { domain, eid: Some(eid), ..fields },
            LogOf::Domain { domain } => Self { domain: Some(domain), ..fields },
        }
    }
}

fn few(names: &[Name]) -> Result<(), String> {
    if names.len() > MOST_NAMES {
        return Err(format!("{} names are listed, at most {MOST_NAMES} may be", names.len()));
    }
    Ok(())
}

/// From where on a wait looks: what was dispatched before doesn't count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum After {
    /// The log's start.
    Start,
    /// An event of the log, itself excluded.
    Event(EventId),
    /// A time in milliseconds since 1970, itself excluded.
    Time(i64),
}

/// What a wait is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitFor {
    /// The first event of a process, of one of these names (none: of any) and later than `after`.
    Process {
        /// The domain.
        domain: Domain,
        /// The process.
        pid: Pid,
        /// Which names; empty: any. At most [`MOST_NAMES`].
        names: Vec<Name>,
        /// From where on.
        after: After,
    },
    /// The first event that answers this one, that is, whose `rid` is its id.
    Answer {
        /// The event that is to be answered.
        rid: EventId,
    },
}

/// A wait for an event. JSON: `domain`, `pid`, and any of `names`, `after_id`, `after`; or `rid`; and `timeout_ms`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WaitFields", into = "WaitFields")]
pub struct Wait {
    /// For what.
    pub wanted: WaitFor,
    /// For how long; whole milliseconds cross the link. At most [`LONGEST_WAIT`].
    pub timeout: Duration,
}

/// The longest wait that a hub takes.
pub const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WaitFields {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    domain: Option<Domain>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pid: Option<Pid>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    names: Vec<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after_id: Option<EventId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rid: Option<EventId>,
    timeout_ms: u64,
}

impl TryFrom<WaitFields> for Wait {
    type Error = String;

    fn try_from(fields: WaitFields) -> Result<Self, String> {
        let WaitFields { domain, pid, names, after_id, after, rid, timeout_ms } = fields;
        let wanted = match (domain, pid, rid) {
            (Some(domain), Some(pid), None) => {
                few(&names)?;
                let after = match (after_id, after) {
                    (None, None) => After::Start,
                    (Some(id), None) => After::Event(id),
                    (None, Some(time)) => After::Time(time),
                    (Some(_), Some(_)) => return Err("give `after_id` or `after`, not both".to_owned()),
                };
                WaitFor::Process { domain, pid, names, after }
            }
            (None, None, Some(rid)) if names.is_empty() && after_id.is_none() && after.is_none() => {
                WaitFor::Answer { rid }
            }
            _ => return Err("wait for `domain` and `pid`, or for `rid` alone".to_owned()),
        };
        Ok(Self { wanted, timeout: timeout(timeout_ms)? })
    }
}

impl From<Wait> for WaitFields {
    fn from(wait: Wait) -> Self {
        let timeout_ms = super::retry_ms(wait.timeout);
        let fields = Self {
            domain: None,
            pid: None,
            names: Vec::new(),
            after_id: None,
            after: None,
            rid: None,
            timeout_ms,
        };
        match wait.wanted {
            WaitFor::Process { domain, pid, names, after } => {
                let (after_id, after) = match after {
                    After::Start => (None, None),
                    After::Event(id) => (Some(id), None),
                    After::Time(time) => (None, Some(time)),
                };
                Self { domain: Some(domain), pid: Some(pid), names, after_id, after, ..fields }
            }
            WaitFor::Answer { rid } => Self { rid: Some(rid), ..fields },
        }
    }
}

fn timeout(ms: u64) -> Result<Duration, String> {
    let timeout = Duration::from_millis(ms);
    if timeout > LONGEST_WAIT {
        return Err(format!("`timeout_ms` is {ms}, at most {} may be waited for", LONGEST_WAIT.as_millis()));
    }
    Ok(timeout)
}

/// A wait for the outcome of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutcomeOptions {
    /// The group; none is the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Group>,
    /// For how long, in milliseconds; at most [`LONGEST_WAIT`]. 0: say only how it stands now.
    #[serde(deserialize_with = "timeout_ms")]
    pub timeout_ms: u64,
}

fn timeout_ms<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let ms = u64::deserialize(deserializer)?;
    timeout(ms).map_err(D::Error::custom)?;
    Ok(ms)
}

/// How an event ended, for one group. Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// `success`, `dead` or `expired`.
    pub state: String,
    /// Who brought it to its end, if somebody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer: Option<crate::event::Uid>,
    /// When.
    pub ended: i64,
    /// The error text of the last attempt, if it is dead; of a long one the first 256 and the last 768 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
}

/// Something besides its process that an event belongs to. JSON: `cpid` with `domain`, or `eid`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "AssociationFields", into = "AssociationFields")]
pub enum Association {
    /// A child process.
    ChildProcess {
        /// The domain of the child process.
        domain: Domain,
        /// The child process.
        cpid: Pid,
    },
    /// An entity.
    Entity {
        /// The entity.
        eid: Eid,
    },
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AssociationFields {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    domain: Option<Domain>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cpid: Option<Pid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    eid: Option<Eid>,
}

impl TryFrom<AssociationFields> for Association {
    type Error = &'static str;

    fn try_from(fields: AssociationFields) -> Result<Self, &'static str> {
        match fields {
            AssociationFields { domain: Some(domain), cpid: Some(cpid), eid: None } => {
                Ok(Self::ChildProcess { domain, cpid })
            }
            AssociationFields { domain: None, cpid: None, eid: Some(eid) } => Ok(Self::Entity { eid }),
            _ => Err("say what the event belongs to: `domain` and `cpid`, or `eid` alone"),
        }
    }
}

impl From<Association> for AssociationFields {
    fn from(association: Association) -> Self {
        match association {
            Association::ChildProcess { domain, cpid } => {
                Self { domain: Some(domain), cpid: Some(cpid), eid: None }
            }
            Association::Entity { eid } => Self { domain: None, cpid: None, eid: Some(eid) },
        }
    }
}

/// What to delete. JSON: `id`; or `domain` and `pid`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "DeletionFields", into = "DeletionFields")]
pub enum Deletion {
    /// One event.
    Event {
        /// Its id.
        id: EventId,
    },
    /// The log of a process, as it stands when the deletion begins.
    Log {
        /// The domain.
        domain: Domain,
        /// The process.
        pid: Pid,
    },
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeletionFields {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<EventId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    domain: Option<Domain>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pid: Option<Pid>,
}

impl TryFrom<DeletionFields> for Deletion {
    type Error = &'static str;

    fn try_from(fields: DeletionFields) -> Result<Self, &'static str> {
        match fields {
            DeletionFields { id: Some(id), domain: None, pid: None } => Ok(Self::Event { id }),
            DeletionFields { id: None, domain: Some(domain), pid: Some(pid) } => {
                Ok(Self::Log { domain, pid })
            }
            _ => Err("say what to delete: `id` alone, or `domain` and `pid`"),
        }
    }
}

impl From<Deletion> for DeletionFields {
    fn from(deletion: Deletion) -> Self {
        match deletion {
            Deletion::Event { id } => Self { id: Some(id), domain: None, pid: None },
            Deletion::Log { domain, pid } => Self { id: None, domain: Some(domain), pid: Some(pid) },
        }
    }
}

#[cfg(test)]
mod tests;
