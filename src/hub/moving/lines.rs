//! Lines of a file: read with a bound, and summed up.

use std::{
    fmt::Write as _,
    io::{self, BufRead},
};

use sha2::{Digest, Sha256};

/// The longest line: the largest data that a hub takes, with all of it escaped.
const LONGEST: usize = 512 << 20;

/// Reads lines one by one.
pub(super) struct Lines<R> {
    from: R,
    line: Vec<u8>,
    /// Lines read so far.
    pub(super) count: u64,
    /// Their bytes, with their ends.
    pub(super) bytes: u64,
    /// The last one had its end.
    pub(super) whole: bool,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from, line: Vec::new(), count: 0, bytes: 0, whole: true }
    }

    /// The next line without its end; none: there is no more.
    pub(super) fn next(&mut self) -> io::Result<Option<&[u8]>> {
        self.line.clear();
        loop {
            let piece = match self.from.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                piece => piece?,
            };
            let end = memchr::memchr(b'\n', piece);
            let taken = end.unwrap_or(piece.len());
            if self.line.len() + taken > LONGEST {
                let text = format!("line {} is longer than {LONGEST} bytes: it is damaged", self.count + 1);
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
            self.line.extend_from_slice(&piece[..taken]);
            let is_over = end.is_some() || piece.is_empty();
            let used = taken + usize::from(end.is_some());
            self.from.consume(used);
            if is_over {
                self.whole = end.is_some();
                break;
            }
        }
        if self.line.is_empty() && !self.whole {
            return Ok(None);
        }
        self.count += 1;
        self.bytes += self.line.len() as u64 + u64::from(self.whole);
        Ok(Some(&self.line))
    }

    /// The last line once more.
    pub(super) fn last(&self) -> &[u8] {
        &self.line
    }
}

/// SHA-256 of lines with their ends.
#[derive(Clone, Default)]
pub(super) struct Sum(Sha256);

impl Sum {
    pub(super) fn add(&mut self, line: &[u8]) {
        self.0.update(line);
        self.0.update(b"\n");
    }

    /// In hexadecimal digits.
    pub(super) fn text(&self) -> String {
        let digest = self.0.clone().finalize();
        digest.iter().fold(String::with_capacity(64), |mut text, byte| {
            // A String takes whatever is written.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_one_by_one_and_the_last_may_lack_its_end() {
        let mut lines = Lines::new(io::BufReader::with_capacity(3, &b"one\n\ntwo and more\nthr"[..]));
        for (line, whole) in [("one", true), ("", true), ("two and more", true), ("thr", false)] {
            assert_eq!(lines.next().unwrap(), Some(line.as_bytes()));
            assert_eq!(lines.whole, whole, "{line}");
        }
        assert_eq!(lines.next().unwrap(), None);
        assert_eq!((lines.count, lines.bytes), (4, 21));
    }

    #[test]
    fn the_sum_is_that_of_the_file() {
        let mut sum = Sum::default();
        sum.add(b"abc");
        sum.add(b"");
        // As sha256sum says of these bytes.
        assert_eq!(sum.text(), "783701f7599830824fa73488f80eb79894f6f14203264b6a3ac3f0a14012c25f");
    }
}
