//! Where a page of a log ended.

use std::{fmt, str::FromStr};

use sha2::{Digest, Sha256};

use super::StoreError;
use crate::event::{Domain, EventId, Pid};

/// The last event of a page, to go on from. As a text it is opaque, and bound to its query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogKey {
    /// Of which domain and pid.
    pub(super) query: Query,
    pub(super) timestamp: i64,
    /// None: the event is not dispatched, it stands behind those of the same time that are.
    pub(super) seq: Option<u64>,
    pub(super) id: EventId,
}

/// A digest of domain and pid.
pub(super) type Query = [u8; 8];

/// How many bytes of a digest a token carries: enough against mistakes, which is all it must find.
const DIGEST: usize = 8;
/// Query, timestamp, whether there is a number, number.
const HEAD: usize = DIGEST + 8 + 1 + 8;

pub(super) fn query(domain: &Domain, pid: &Pid) -> Query {
    // No text holds a line feed.
    digest(format!("{domain}\n{pid}").as_bytes())
}

fn digest(bytes: &[u8]) -> [u8; DIGEST] {
    let full = Sha256::digest(bytes);
    std::array::from_fn(|index| full[index])
}

impl fmt::Display for LogKey {
    /// The page token: hexadecimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = Vec::with_capacity(HEAD + self.id.len() + DIGEST);
        bytes.extend_from_slice(&self.query);
        bytes.extend_from_slice(&self.timestamp.to_be_bytes());
        bytes.push(u8::from(self.seq.is_some()));
        bytes.extend_from_slice(&self.seq.unwrap_or(0).to_be_bytes());
        bytes.extend_from_slice(self.id.as_bytes());
        let sum = digest(&bytes);
        bytes.extend_from_slice(&sum);
        for byte in bytes {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl FromStr for LogKey {
    type Err = StoreError;

    /// Reads a page token. Whether it belongs to a query turns out when it is used there.
    fn from_str(token: &str) -> Result<Self, StoreError> {
        read(token).ok_or(StoreError::InvalidPage)
    }
}

fn read(token: &str) -> Option<LogKey> {
    let nibble = |byte: &u8| (*byte as char).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, []) = token.as_bytes().as_chunks::<2>() else { return None };
    let bytes: Vec<u8> =
        pairs.iter().map(|[high, low]| Some(nibble(high)? << 4 | nibble(low)?)).collect::<Option<_>>()?;

    let (content, sum) = bytes.split_last_chunk::<DIGEST>()?;
    if digest(content) != *sum {
        return None;
    }
    let (query, rest) = content.split_first_chunk::<DIGEST>()?;
    let (timestamp, rest) = rest.split_first_chunk::<8>()?;
    let (has_seq, rest) = rest.split_first()?;
    let (seq, id) = rest.split_first_chunk::<8>()?;
    Some(LogKey {
        query: *query,
        timestamp: i64::from_be_bytes(*timestamp),
        seq: (*has_seq == 1).then(|| u64::from_be_bytes(*seq)),
        id: EventId::from_stored(String::from_utf8(id.to_vec()).ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seq: Option<u64>) -> LogKey {
        let query = query(&Domain::parse("orders").unwrap(), &Pid::parse("order-1").unwrap());
        LogKey { query, timestamp: 1_796_030_712_007, seq, id: EventId::parse("e-1").unwrap() }
    }

    #[test]
    fn tokens_round_trip() {
        for key in [key(None), key(Some(0)), key(Some(u64::MAX))] {
            let token = key.to_string();
            assert!(token.bytes().all(|byte| byte.is_ascii_hexdigit()));
            assert_eq!(token.parse::<LogKey>().unwrap(), key);
        }
    }

    #[test]
    fn damaged_tokens_are_refused() {
        let token = key(Some(7)).to_string();
        for damaged in ["", "0", "zz", "é", &token[2..], &token[..token.len() - 2], &format!("{token}00")] {
            assert!(matches!(damaged.parse::<LogKey>(), Err(StoreError::InvalidPage)), "{damaged}");
        }
        for at in 0..token.len() {
            let digit = if &token[at..=at] == "0" { "1" } else { "0" };
            let damaged = format!("{}{digit}{}", &token[..at], &token[at + 1..]);
            assert!(damaged.parse::<LogKey>().is_err(), "digit {at}");
        }
    }
}
