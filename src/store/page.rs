//! Where a page ended, to go on from. As a text, a page token, it is opaque and bound to its query.

use std::{fmt, str::FromStr};

use sha2::{Digest, Sha256};

use super::StoreError;
use crate::{
    event::{Domain, EventId, Pid, Uid},
    wire::{DeadQuery, LogQuery, SchedulesQuery},
};

/// The last event of a page of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogKey {
    /// What was asked for.
    pub(super) query: Query,
    pub(super) timestamp: i64,
    /// None: the event is not dispatched, it stands behind those of the same time that are.
    pub(super) seq: Option<u64>,
    pub(super) id: EventId,
}

/// The last pid of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PidKey {
    /// What was asked for.
    pub(super) query: Query,
    pub(super) pid: Pid,
}

/// The last event of a page of what is scheduled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScheduleKey {
    /// What was asked for.
    pub(super) query: Query,
    /// As it stands in the column `scheduled`, by which it is sorted first.
    pub(super) scheduled: String,
    pub(super) due: i64,
    pub(super) id: EventId,
}

/// Up to where dead events were looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DeadKey {
    /// What was asked for.
    pub(super) query: Query,
    pub(super) seq: u64,
}

impl DeadKey {
    /// Where to go on, if this is the query that the key belongs to.
    pub(super) fn of(self, query: Query) -> Result<u64, StoreError> {
        if self.query == query { Ok(self.seq) } else { Err(StoreError::InvalidPage) }
    }
}

/// A digest of the whole query.
pub(super) type Query = [u8; DIGEST];

/// How many bytes of a digest a token carries: enough against mistakes, which is all it must find.
const DIGEST: usize = 8;

/// Of whose log, which events of it, and with that in which direction.
pub(super) fn log_query(query: &LogQuery) -> Query {
    digest(format!("log {query:?}").as_bytes())
}

/// Of which domain.
pub(super) fn pid_query(domain: &Domain) -> Query {
    digest(format!("pids {domain:?}").as_bytes())
}

/// Of which group, domains and names, on which hub.
pub(super) fn dead_query(hub: &Uid, query: &DeadQuery) -> Query {
    digest(format!("dead {hub:?} {query:?}").as_bytes())
}

/// Of which domains, names and times.
pub(super) fn schedules_query(query: &SchedulesQuery) -> Query {
    digest(format!("schedules {query:?}").as_bytes())
}

fn digest(bytes: &[u8]) -> [u8; DIGEST] {
    let full = Sha256::digest(bytes);
    std::array::from_fn(|index| full[index])
}

impl fmt::Display for LogKey {
    /// The page token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = self.query.to_vec();
        bytes.extend_from_slice(&self.timestamp.to_be_bytes());
        bytes.push(u8::from(self.seq.is_some()));
        bytes.extend_from_slice(&self.seq.unwrap_or(0).to_be_bytes());
        bytes.extend_from_slice(self.id.as_bytes());
        write(bytes, f)
    }
}

impl FromStr for LogKey {
    type Err = StoreError;

    /// Reads a page token. Whether it belongs to a query turns out when it is used there.
    fn from_str(token: &str) -> Result<Self, StoreError> {
        let key = || {
            let bytes = read(token)?;
            let (query, rest) = bytes.split_first_chunk::<DIGEST>()?;
            let (timestamp, rest) = rest.split_first_chunk::<8>()?;
            let (has_seq, rest) = rest.split_first()?;
            let (seq, id) = rest.split_first_chunk::<8>()?;
            Some(Self {
                query: *query,
                timestamp: i64::from_be_bytes(*timestamp),
                seq: (*has_seq == 1).then(|| u64::from_be_bytes(*seq)),
                id: EventId::from_stored(String::from_utf8(id.to_vec()).ok()?),
            })
        };
        key().ok_or(StoreError::InvalidPage)
    }
}

impl fmt::Display for PidKey {
    /// The page token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write([&self.query[..], self.pid.as_bytes()].concat(), f)
    }
}

impl FromStr for PidKey {
    type Err = StoreError;

    /// Reads a page token. Whether it belongs to a query turns out when it is used there.
    fn from_str(token: &str) -> Result<Self, StoreError> {
        let key = || {
            let bytes = read(token)?;
            let (query, pid) = bytes.split_first_chunk::<DIGEST>()?;
            Some(Self { query: *query, pid: Pid::from_stored(String::from_utf8(pid.to_vec()).ok()?) })
        };
        key().ok_or(StoreError::InvalidPage)
    }
}

impl fmt::Display for DeadKey {
    /// The page token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write([self.query, self.seq.to_be_bytes()].concat(), f)
    }
}

impl FromStr for DeadKey {
    type Err = StoreError;

    /// Reads a page token. Whether it belongs to a query turns out when it is used there.
    fn from_str(token: &str) -> Result<Self, StoreError> {
        let key = || {
            let bytes = read(token)?;
            let (query, seq) = bytes.split_first_chunk::<DIGEST>()?;
            Some(Self { query: *query, seq: u64::from_be_bytes(seq.try_into().ok()?) })
        };
        key().ok_or(StoreError::InvalidPage)
    }
}

impl fmt::Display for ScheduleKey {
    /// The page token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = self.query.to_vec();
        bytes.extend_from_slice(&self.due.to_be_bytes());
        bytes.extend_from_slice(self.scheduled.as_bytes());
        // No text of a time has one.
        bytes.push(0);
        bytes.extend_from_slice(self.id.as_bytes());
        write(bytes, f)
    }
}

impl FromStr for ScheduleKey {
    type Err = StoreError;

    /// Reads a page token. Whether it belongs to a query turns out when it is used there.
    fn from_str(token: &str) -> Result<Self, StoreError> {
        let key = || {
            let bytes = read(token)?;
            let (query, rest) = bytes.split_first_chunk::<DIGEST>()?;
            let (due, rest) = rest.split_first_chunk::<8>()?;
            let (scheduled, id) = std::str::from_utf8(rest).ok()?.split_once('\0')?;
            Some(Self {
                query: *query,
                scheduled: scheduled.to_owned(),
                due: i64::from_be_bytes(*due),
                id: EventId::from_stored(id.to_owned()),
            })
        };
        key().ok_or(StoreError::InvalidPage)
    }
}

/// The bytes and their digest, hexadecimal.
fn write(mut bytes: Vec<u8>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let sum = digest(&bytes);
    bytes.extend_from_slice(&sum);
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

fn read(token: &str) -> Option<Vec<u8>> {
    let nibble = |byte: &u8| (*byte as char).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, []) = token.as_bytes().as_chunks::<2>() else { return None };
    let mut bytes: Vec<u8> =
        pairs.iter().map(|[high, low]| Some(nibble(high)? << 4 | nibble(low)?)).collect::<Option<_>>()?;
    let (content, sum) = bytes.split_last_chunk::<DIGEST>()?;
    let whole = digest(content) == *sum;
    bytes.truncate(content.len());
    whole.then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::LogOf;

    fn key(seq: Option<u64>) -> LogKey {
        let of = LogOf::Domain { domain: Domain::parse("orders").unwrap() };
        let query = log_query(&of.into());
        LogKey { query, timestamp: 1_796_030_712_007, seq, id: EventId::parse("e-1").unwrap() }
    }

    #[test]
    fn tokens_round_trip() {
        for key in [key(None), key(Some(0)), key(Some(u64::MAX))] {
            let token = key.to_string();
            assert!(token.bytes().all(|byte| byte.is_ascii_hexdigit()));
            assert_eq!(token.parse::<LogKey>().unwrap(), key);
        }
        let query = pid_query(&Domain::parse("orders").unwrap());
        let key = PidKey { query, pid: Pid::parse("order-1").unwrap() };
        assert_eq!(key.to_string().parse::<PidKey>().unwrap(), key);
        let query = schedules_query(&SchedulesQuery::default());
        let scheduled = "2026-11-30 09:25:12".to_owned();
        let key = ScheduleKey { query, scheduled, due: -1, id: EventId::parse("e-1").unwrap() };
        assert_eq!(key.to_string().parse::<ScheduleKey>().unwrap(), key);
    }

    #[test]
    fn damaged_tokens_are_refused() {
        let token = key(Some(7)).to_string();
        for damaged in ["", "0", "zz", "é", &token[2..], &token[..token.len() - 2], &format!("{token}00")] {
            assert!(matches!(damaged.parse::<LogKey>(), Err(StoreError::InvalidPage)), "{damaged}");
            assert!(matches!(damaged.parse::<PidKey>(), Err(StoreError::InvalidPage)), "{damaged}");
        }
        for at in 0..token.len() {
            let digit = if &token[at..=at] == "0" { "1" } else { "0" };
            let damaged = format!("{}{digit}{}", &token[..at], &token[at + 1..]);
            assert!(damaged.parse::<LogKey>().is_err(), "digit {at}");
        }
    }
}
