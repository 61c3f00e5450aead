//! Bytes to records to messages and back, for both dialects; no I/O.
//!
//! A *record* is a list of text units joined by `0x1F` and ended by `0x1E`. `docs/protocol.md` describes
//! every message. Limits hold while bytes arrive: nothing is buffered beyond them.

mod codec;
mod message;
pub mod npm;

pub use message::*;

/// The byte that the hub sends alone after the handshake: the link is ready.
pub const READY: u8 = 0x02;
/// Between two units of a record.
pub const UNIT_SEPARATOR: u8 = 0x1F;
/// After a record.
pub const RECORD_SEPARATOR: u8 = 0x1E;
/// The version of our own protocol that `hello` and `welcome` name.
pub const VERSION: u32 = 1;
