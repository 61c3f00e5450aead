//! Records: units joined by `0x1F`, ended by `0x1E`.

use std::mem;

use bytes::{Bytes, BytesMut};
use bytestring::ByteString;

use super::{RECORD_SEPARATOR, UNIT_SEPARATOR};
use crate::event::{Fault, code};

/// A buffer starts with so much room.
const CHUNK: usize = 32 * 1024;
/// [`Reader::spare`] gives at least so much: the plaintext of one TLS record.
const MIN_ROOM: usize = 16 * 1024;

/// What one record may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes, its end not counted.
    pub record_bytes: usize,
    /// Units.
    pub units: usize,
}

impl Default for Limits {
    /// Room for 1 MiB of data and what stands around it; 64 units.
    fn default() -> Self {
        Self { record_bytes: (1024 + 64) * 1024, units: 64 }
    }
}

/// Bytes that can't be a record. The link is of no more use: where the next record begins is unknown, or
/// its sender can't be trusted with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// No end after so many bytes.
    #[error("a record is longer than {limit} bytes: keep to the limits that `welcome` named")]
    TooLong {
        /// [`Limits::record_bytes`].
        limit: usize,
    },
    /// More separators than allowed.
    #[error("a record has more than {limit} units: keep to the limits that `welcome` named")]
    TooManyUnits {
        /// [`Limits::units`].
        limit: usize,
    },
    /// Not text.
    #[error("a record is not valid UTF-8: encode texts as UTF-8")]
    InvalidUtf8,
}

impl RecordError {
    /// The stable error code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::TooLong { .. } => code::RECORD_TOO_LONG,
            Self::TooManyUnits { .. } => code::TOO_MANY_UNITS,
            Self::InvalidUtf8 => code::INVALID_UTF8,
        }
    }
}

impl From<RecordError> for Fault {
    fn from(error: RecordError) -> Self {
        Fault::refused(error.code(), error.to_string())
    }
}

/// One record, without its end. Cheap to clone: clones share their bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record(ByteString);

impl Record {
    /// Its units; an empty record has one, which is empty.
    pub fn units(&self) -> impl Iterator<Item = &str> {
        self.0.split(char::from(UNIT_SEPARATOR))
    }

    /// The whole text, separators included.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A unit of this record (or a part of one) that shares the record's bytes.
    ///
    /// # Panics
    /// If `unit` is no slice of this record.
    #[must_use]
    pub fn shared(&self, unit: &str) -> ByteString {
        self.0.slice_ref(unit)
    }
}

/// Cuts a stream of bytes into records and holds the limits while they arrive.
///
/// Fill what [`spare`](Self::spare) gives, then take records with [`next`](Self::next) until there is none.
/// The buffer never grows beyond [`Limits::record_bytes`] and one chunk of 32 KiB, and each byte is looked at
/// once.
#[derive(Debug)]
pub struct Reader {
    limits: Limits,
    buffer: BytesMut,
    /// Where the record under way begins.
    start: usize,
    /// Up to where separators were looked for.
    scanned: usize,
    /// Units of the record under way, the last one included.
    units: usize,
    refused: Option<RecordError>,
}

impl Reader {
    /// A reader that has seen nothing yet, and has allocated nothing.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, buffer: BytesMut::new(), start: 0, scanned: 0, units: 1, refused: None }
    }

    /// Other limits from the record under way on; a reader that refused stays refused.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// The buffer with at least 16 KiB of room at its end, to append what arrived. Call [`next`](Self::next)
    /// until it gives no more before the next call: records that nobody takes stay in the buffer.
    pub fn spare(&mut self) -> &mut BytesMut {
        if self.start > 0 {
            // The beginning of a record moves to the front, once.
            self.buffer.copy_within(self.start.., 0);
            self.buffer.truncate(self.buffer.len() - self.start);
            self.scanned -= self.start;
            self.start = 0;
        }
        let held = self.buffer.len();
        if held == 0 && self.buffer.capacity() > CHUNK {
            // One long record shouldn't cost its link that much for ever.
            self.buffer = BytesMut::with_capacity(CHUNK);
        } else if self.buffer.capacity() - held < MIN_ROOM {
            let most = held.max(self.limits.record_bytes).saturating_add(CHUNK);
            self.replace(most.min(CHUNK.max(held.saturating_mul(2)).max(held + MIN_ROOM)));
        }
        &mut self.buffer
    }

    /// The next whole record, if there is one.
    ///
    /// # Errors
    /// [`RecordError`] as soon as the bytes can't become a record within the limits; from then on every call
    /// gives the same error and what arrives is dropped.
    #[expect(clippy::should_implement_trait, reason = "`None` is `not yet`, so it can't be an iterator")]
    pub fn next(&mut self) -> Result<Option<Record>, RecordError> {
        let found = match &self.refused {
            Some(refused) => Err(refused.clone()),
            None => self.cut(),
        };
        if let Err(refused) = &found {
            self.refused = Some(refused.clone());
            self.buffer = BytesMut::new();
            (self.start, self.scanned) = (0, 0);
        }
        found
    }

    fn cut(&mut self) -> Result<Option<Record>, RecordError> {
        let Limits { record_bytes, units } = self.limits;
        let too_long = RecordError::TooLong { limit: record_bytes };
        while let Some(found) =
            memchr::memchr2(UNIT_SEPARATOR, RECORD_SEPARATOR, self.buffer.get(self.scanned..).unwrap_or(&[]))
        {
            let at = self.scanned + found;
            self.scanned = at + 1;
            if at - self.start > record_bytes {
                return Err(too_long);
            }
            if self.buffer[at] == RECORD_SEPARATOR {
                return self.take(at).map(Some);
            }
            self.units += 1;
            if self.units > units {
                return Err(RecordError::TooManyUnits { limit: units });
            }
        }
        self.scanned = self.buffer.len();
        if self.scanned - self.start > record_bytes { Err(too_long) } else { Ok(None) }
    }

    /// Takes out the record that ends before `end`.
    ///
    /// A record that fills at least half of the buffer keeps it; a smaller one is copied. So a message that
    /// is kept for long never holds on to a buffer much larger than itself.
    fn take(&mut self, end: usize) -> Result<Record, RecordError> {
        let start = mem::replace(&mut self.start, end + 1);
        self.units = 1;
        let bytes = if (end - start) * 2 < self.buffer.capacity() {
            Bytes::copy_from_slice(&self.buffer[start..end])
        } else {
            let rest = BytesMut::from(&self.buffer[end + 1..]);
            (self.start, self.scanned) = (0, 0);
            mem::replace(&mut self.buffer, rest).freeze().slice(start..end)
        };
        ByteString::try_from(bytes).map(Record).map_err(|_| RecordError::InvalidUtf8)
    }

    /// Moves the buffer's bytes to a new one. `BytesMut::reserve` would double it beyond the limit.
    fn replace(&mut self, capacity: usize) {
        let mut larger = BytesMut::with_capacity(capacity);
        larger.extend_from_slice(&self.buffer);
        self.buffer = larger;
    }
}

#[cfg(test)]
mod tests;
