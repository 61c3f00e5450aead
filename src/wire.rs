//! Bytes to records to messages and back, for both dialects; no I/O.
//!
//! A *record* is a list of text units joined by `0x1F` and ended by `0x1E`. `docs/protocol.md` describes
//! every message. Limits hold while bytes arrive: nothing is buffered beyond them.
//!
//! [`Reader`] cuts bytes into [`Record`]s, [`Request::parse`] and [`Reply::parse`] read our own dialect,
//! [`npm::parse`] the other one; `encode` goes the way back. Invariants worth naming:
//!
//! - What `encode` wrote, `parse` reads as the same value; a record that can't be written whole isn't begun.
//! - How bytes are split by the network never changes what a [`Reader`] says.
//! - A field of a parsed message is a slice of its record, and a record never keeps more than twice its own
//!   size in memory.

mod answer;
mod bounds;
mod codec;
mod encode;
mod fields;
mod greeting;
mod group;
mod message;
pub mod npm;
mod query;
mod recurring;
mod reply;
mod request;
mod schedules;
mod since;
#[cfg(test)]
mod tests;
mod wanted;

pub use answer::*;
pub use bounds::{LEASE_MS, LONGEST_DELAY_MS, lease_ms};
pub use codec::{Limits, Reader, Record, RecordError};
pub use encode::{ControlCharacter, MAX_CLIENT_CHARS, MAX_FREE_TEXT, claim_head, event_head, event_tail};
pub use fields::RecordFault;
pub use greeting::*;
pub use group::*;
pub use message::*;
pub use query::*;
pub use recurring::*;
pub use request::ParseLimits;
pub use schedules::{ScheduledEvent, SchedulesQuery};
pub use since::{RemovedEvents, Since, SubscribeOptions};

/// The byte that the hub sends alone after the handshake: the link is ready.
pub const READY: u8 = 0x02;
/// Between two units of a record.
pub const UNIT_SEPARATOR: u8 = 0x1F;
/// After a record.
pub const RECORD_SEPARATOR: u8 = 0x1E;
/// The version of our own protocol that `hello` and `welcome` name.
pub const VERSION: u32 = 1;

/// Whether a link whose first record this is speaks our own dialect; else it is an npm link.
#[must_use]
pub fn is_hello(first: &Record) -> bool {
    first.units().next() == Some("hello")
}
