//! Where a reader stands: the sequence number that it has read up to, of each hub.

use std::{collections::BTreeMap, fmt, str::FromStr};

use super::{Fault, Uid, code};

/// Where a reader of events stands: behind the last one that it has read, of each hub. As text it is a token without
/// spaces, to be kept as it is and handed back; it stays good for as long as the hub keeps its events.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct Position {
    read: BTreeMap<Uid, u64>,
}

/// A text that is no [`Position`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this is no position, or a damaged one: give one as it was printed, whole")]
pub struct InvalidPosition;

impl InvalidPosition {
    /// The stable error code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        code::INVALID_POSITION
    }
}

impl From<InvalidPosition> for Fault {
    fn from(error: InvalidPosition) -> Self {
        Fault::refused(error.code(), error.to_string())
    }
}

impl Position {
    /// Behind this event of this hub.
    #[must_use]
    pub fn of(hub: Uid, seq: u64) -> Self {
        Self { read: BTreeMap::from([(hub, seq)]) }
    }

    /// The sequence number of this hub that was read up to, if the position knows the hub.
    #[must_use]
    pub fn seq(&self, hub: &str) -> Option<u64> {
        self.read.get(hub).copied()
    }

    /// The hubs that it knows.
    pub fn hubs(&self) -> impl Iterator<Item = &Uid> {
        self.read.keys()
    }

    /// Moves on to this event of this hub; never back.
    pub fn reach(&mut self, hub: &Uid, seq: u64) {
        match self.read.get_mut(hub) {
            Some(read) => *read = seq.max(*read),
            None => drop(self.read.insert(hub.clone(), seq)),
        }
    }
}

/// What tells a position from other words of a command line.
const MARK: &str = "pos-";
/// Bytes of the sum that finds damage.
const SUM: usize = 4;

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = Vec::new();
        for (hub, seq) in &self.read {
            // A UID has at most 64 bytes; one that a database holds against the rules can't be told.
            bytes.push(u8::try_from(hub.len()).map_err(|_| fmt::Error)?);
            bytes.extend_from_slice(hub.as_bytes());
            bytes.extend_from_slice(&seq.to_be_bytes());
        }
        let sum = sum(&bytes);
        f.write_str(MARK)?;
        bytes.iter().chain(&sum).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Position {
    type Err = InvalidPosition;

    fn from_str(token: &str) -> Result<Self, InvalidPosition> {
        read(token).ok_or(InvalidPosition)
    }
}

fn read(token: &str) -> Option<Position> {
    let nibble = |byte: &u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, []) = token.strip_prefix(MARK)?.as_bytes().as_chunks::<2>() else { return None };
    let bytes: Option<Vec<u8>> =
        pairs.iter().map(|[high, low]| Some(nibble(high)? << 4 | nibble(low)?)).collect();
    let bytes = bytes?;
    let (mut rest, given) = bytes.split_last_chunk::<SUM>()?;
    if sum(rest) != *given {
        return None;
    }
    let mut position = Position::default();
    while let Some((length, after)) = rest.split_first() {
        let (hub, after) = after.split_at_checked((*length).into())?;
        let (seq, after) = after.split_first_chunk::<8>()?;
        let hub = Uid::parse(String::from_utf8(hub.to_vec()).ok()?).ok()?;
        position.reach(&hub, u64::from_be_bytes(*seq));
        rest = after;
    }
    Some(position)
}

/// FNV-1a: enough against mistakes of people, which is all it must find.
fn sum(bytes: &[u8]) -> [u8; SUM] {
    let mix = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    bytes.iter().fold(0x811c_9dc5_u32, mix).to_be_bytes()
}

impl serde::Serialize for Position {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Position {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uid(text: &str) -> Uid {
        Uid::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn tokens_round_trip_with_any_number_of_hubs() {
        let mut position = Position::of(uid("HUB-1"), 1_796_030_712_007_001);
        position.reach(&uid("HUB-1"), 5);
        assert_eq!(position.to_string().parse(), Ok(position.clone()));
        position.reach(&uid("HUB 2,=;"), u64::MAX);
        assert_eq!(position.to_string().parse(), Ok(position.clone()));
        assert_eq!(position.seq("HUB-1"), Some(1_796_030_712_007_001), "it never goes back");
        assert_eq!((position.seq("HUB-3"), position.hubs().count()), (None, 2));
        assert_eq!(Position::default().to_string().parse(), Ok(Position::default()));
    }

    #[test]
    fn damaged_tokens_are_refused() {
        let token = Position::of(uid("HUB-1"), 7).to_string();
        assert!(token.starts_with(MARK) && token.bytes().all(|byte| byte.is_ascii_graphic()), "{token}");
        for damaged in ["", "7", MARK, "pos-é", &token[1..], &token[..token.len() - 2], &format!("{token}00")]
        {
            assert_eq!(damaged.parse::<Position>(), Err(InvalidPosition), "{damaged}");
        }
        for at in MARK.len()..token.len() {
            let digit = if &token[at..=at] == "0" { "1" } else { "0" };
            let damaged = format!("{}{digit}{}", &token[..at], &token[at + 1..]);
            assert!(damaged.parse::<Position>().is_err(), "digit {at}");
        }
    }
}
