//! Writing records: units, numbers, texts, and an event once for all its receivers.

use bytes::{BufMut, Bytes, BytesMut};
use serde::Serialize;

use super::{RECORD_SEPARATOR, Sub, Token, UNIT_SEPARATOR};
use crate::event::{Event, Fault, Retry, code};

/// Free text, such as an error's message, is cut at so many bytes.
pub const MAX_FREE_TEXT: usize = 8 * 1024;
/// Of a client's own words about itself so many characters are kept.
pub const MAX_CLIENT_CHARS: usize = 64;

/// A unit holds a separator or another control character, so it can't travel in a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unit {unit} of the record has the control character {byte:#04x}: take it out, or escape it in JSON")]
pub struct ControlCharacter {
    /// Which unit; 0 is the verb.
    pub unit: usize,
    /// The first such byte.
    pub byte: u8,
}

impl ControlCharacter {
    /// The stable error code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        code::CONTROL_CHARACTER
    }
}

impl From<ControlCharacter> for Fault {
    fn from(error: ControlCharacter) -> Self {
        Fault::refused(error.code(), error.to_string())
    }
}

/// Whether a byte may not stand in a unit.
pub(super) fn is_control(byte: u8) -> bool {
    byte < 0x20
}

/// `text`, cut at `most` bytes or a little before, between two characters.
pub(super) fn cut(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..end]
}

/// The first characters of what a client says of itself.
pub(super) fn cut_client(text: &str) -> &str {
    text.char_indices().nth(MAX_CLIENT_CHARS).map_or(text, |(at, _)| &text[..at])
}

/// Writes one record. If one unit can't be written, nothing is.
pub(super) struct Writer<'a> {
    out: &'a mut BytesMut,
    begin: usize,
    unit: usize,
    bad: Option<ControlCharacter>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(out: &'a mut BytesMut, verb: &str) -> Self {
        let begin = out.len();
        out.put_slice(verb.as_bytes());
        Self { out, begin, unit: 0, bad: None }
    }

    fn separate(&mut self) {
        self.out.put_u8(UNIT_SEPARATOR);
        self.unit += 1;
    }

    /// A unit that must have no control character.
    pub(super) fn text(mut self, text: &str) -> Self {
        self.separate();
        if self.bad.is_none()
            && let Some(byte) = text.bytes().find(|byte| is_control(*byte))
        {
            self.bad = Some(ControlCharacter { unit: self.unit, byte });
        }
        self.out.put_slice(text.as_bytes());
        self
    }

    pub(super) fn number(mut self, number: u64) -> Self {
        self.separate();
        put_number(self.out, number);
        self
    }

    pub(super) fn time(mut self, number: i64) -> Self {
        self.separate();
        put_time(self.out, number);
        self
    }

    /// JSON text escapes control characters by itself.
    pub(super) fn json<T: Serialize>(mut self, value: &T) -> Self {
        self.separate();
        // Plain structs into memory can't fail; if one ever did, the other end would refuse the cut unit.
        if let Err(error) = serde_json::to_writer((&mut *self.out).writer(), value) {
            tracing::error!(%error, "a message can't be written as JSON");
        }
        self
    }

    /// Text for people: control characters become spaces, and it is cut at [`MAX_FREE_TEXT`].
    pub(super) fn free(mut self, text: &str) -> Self {
        self.separate();
        put_spaced(self.out, cut(text, MAX_FREE_TEXT));
        self
    }

    /// `code, message, retry`.
    pub(super) fn fault(mut self, fault: &Fault) -> Self {
        self = self.text(&fault.code).free(&fault.message);
        match fault.retry {
            Retry::Never => self.text(""),
            Retry::After(wait) => self.number(super::retry_ms(wait)),
        }
    }

    /// The seven units of an event.
    pub(super) fn event(mut self, event: &Event) -> Self {
        self.separate();
        put_event(self.out, event);
        self.unit += 6;
        self
    }

    pub(super) fn end(self) -> Result<(), ControlCharacter> {
        match self.bad {
            None => {
                self.out.put_u8(RECORD_SEPARATOR);
                Ok(())
            }
            Some(bad) => {
                self.out.truncate(self.begin);
                Err(bad)
            }
        }
    }
}

/// The units of an event and the record's end, `id, timestamp, domain, name, pid, rid, data`: what stands in
/// every record that brings this event, behind a head of its own.
///
/// What a database held in spite of our rules can't break a record: a control character is written as a
/// space, which means the same between the tokens of JSON.
#[must_use]
pub fn event_tail(event: &Event) -> Bytes {
    // Six separators, the end, and a timestamp of at most 20 digits.
    let mut out = BytesMut::with_capacity(event.weight() + 27);
    put_event(&mut out, event);
    out.put_u8(RECORD_SEPARATOR);
    out.freeze()
}

/// `event, subs, seq,`: stands before an [`event_tail`]. `subs` has at least one number.
pub fn event_head(out: &mut BytesMut, subs: &[Sub], seq: u64) {
    out.put_slice(b"event\x1F");
    for (at, sub) in subs.iter().enumerate() {
        if at > 0 {
            out.put_u8(b',');
        }
        put_number(out, u64::from(*sub));
    }
    out.put_u8(UNIT_SEPARATOR);
    put_number(out, seq);
    out.put_u8(UNIT_SEPARATOR);
}

/// `claim, sub, token, attempt, seq,`: stands before an [`event_tail`].
pub fn claim_head(out: &mut BytesMut, sub: Sub, token: Token, attempt: u32, seq: u64) {
    out.put_slice(b"claim\x1F");
    for number in [u64::from(sub), token, u64::from(attempt), seq] {
        put_number(out, number);
        out.put_u8(UNIT_SEPARATOR);
    }
}

fn put_event(out: &mut BytesMut, event: &Event) {
    put_spaced(out, &event.id);
    out.put_u8(UNIT_SEPARATOR);
    put_time(out, event.timestamp);
    let rid = event.rid.as_deref().unwrap_or_default();
    for text in [&*event.domain, &*event.name, &*event.pid, rid, event.data.as_str()] {
        out.put_u8(UNIT_SEPARATOR);
        put_spaced(out, text);
    }
}

/// Appends `text` with a space for each control character.
pub(super) fn put_spaced(out: &mut BytesMut, text: &str) {
    let begin = out.len();
    out.put_slice(text.as_bytes());
    // One branch a byte would keep the compiler from looking at many at once.
    if text.bytes().fold(false, |any, byte| any | is_control(byte)) {
        out[begin..].iter_mut().filter(|byte| is_control(**byte)).for_each(|byte| *byte = b' ');
    }
}

fn put_time(out: &mut BytesMut, time: i64) {
    if time < 0 {
        out.put_u8(b'-');
    }
    put_number(out, time.unsigned_abs());
}

fn put_number(out: &mut BytesMut, mut number: u64) {
    // `u64::MAX` has 20 digits.
    let mut digits = [b'0'; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] += (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.put_slice(&digits[first..]);
}
