//! Patterns for domains and names: exact, `*` for a segment, a trailing `>` for the rest.

use bytestring::ByteString;

use super::{
    Fault, code,
    text::{cut, fault_of},
};

/// A pattern that breaks the rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the pattern {value:?} {reason}")]
pub struct InvalidPattern {
    /// The pattern, cut to 80 characters.
    pub value: String,
    /// What is wrong with it and what would be right.
    pub reason: &'static str,
}

impl From<InvalidPattern> for Fault {
    fn from(error: InvalidPattern) -> Self {
        Fault::refused(code::INVALID_PATTERN, error.to_string())
    }
}

/// Matches a domain or a name.
///
/// A lone `*` (npm's rule) or a lone `>` is everything. Otherwise texts and patterns are split at dots: `*`
/// as a whole segment is any one segment, `>` as the last segment is one or more, all else is literal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pattern {
    text: ByteString,
    literal: bool,
}

impl serde::Serialize for Pattern {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> serde::Deserialize<'de> for Pattern {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(text).map_err(serde::de::Error::custom)
    }
}

/// One segment of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Segment<'a> {
    /// Exactly this.
    Literal(&'a str),
    /// Any one segment.
    One,
    /// One or more segments, to the end.
    Rest,
}

impl Pattern {
    /// Checks `text` and takes it as a pattern.
    ///
    /// # Errors
    /// [`InvalidPattern`] if it is empty, too long, not printable ASCII, or has `>` before its end.
    pub fn parse(text: impl Into<ByteString>) -> Result<Self, InvalidPattern> {
        let text = text.into();
        let inner = || text.rsplit('.').skip(1).any(|segment| segment == ">");
        let reason = fault_of(&text).or_else(|| {
            inner().then_some("has `>` before its end, where it means nothing: put it last, or use `*`")
        });
        match reason {
            None => Ok(Self { text, literal: false }),
            Some(reason) => Err(InvalidPattern { value: cut(&text), reason }),
        }
    }

    /// A pattern that matches just this text, whatever it holds: npm's rule for domains.
    pub fn exact(text: impl Into<ByteString>) -> Self {
        Self { text: text.into(), literal: true }
    }

    /// The pattern that matches everything.
    #[must_use]
    pub fn any() -> Self {
        Self { text: ByteString::from_static("*"), literal: false }
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it matches.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        let mut given = text.split('.');
        for segment in self.segments() {
            match (segment, given.next()) {
                (Segment::Rest, Some(_)) => return true,
                (Segment::One, Some(_)) => {}
                (Segment::Literal(wanted), Some(found)) if wanted == found => {}
                _ => return false,
            }
        }
        given.next().is_none()
    }

    /// What every text that matches begins with, and whether that is all of it: for a database that narrows down what
    /// [`Self::matches`] then decides. The pattern that matches everything has an empty beginning.
    #[must_use]
    pub fn literal_beginning(&self) -> (&str, bool) {
        let wild = |segment: &str| !self.literal && matches!(segment, "*" | ">");
        let mut end = 0;
        for segment in self.text.split('.') {
            if wild(segment) {
                return (&self.text[..end], false);
            }
            // With the dot that follows.
            end += segment.len() + 1;
        }
        (&self.text, true)
    }

    /// Whether some text matches both.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let (mut ours, mut theirs) = (self.segments(), other.segments());
        loop {
            match (ours.next(), theirs.next()) {
                (None, None) => return true,
                (Some(Segment::Rest), Some(_)) | (Some(_), Some(Segment::Rest)) => return true,
                (Some(Segment::Literal(one)), Some(Segment::Literal(other))) if one != other => return false,
                (Some(_), Some(_)) => {}
                _ => return false,
            }
        }
    }

    /// Whether it matches each text that the other one matches.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let (mut ours, mut theirs) = (self.segments(), other.segments());
        loop {
            match (ours.next(), theirs.next()) {
                (None, None) => return true,
                (Some(Segment::Rest), Some(_)) => return true,
                (Some(Segment::One), Some(Segment::One | Segment::Literal(_))) => {}
                (Some(Segment::Literal(one)), Some(Segment::Literal(other))) if one == other => {}
                _ => return false,
            }
        }
    }

    pub(super) fn segments(&self) -> impl Iterator<Item = Segment<'_>> {
        let literal = self.literal;
        let all = !literal && &*self.text == "*";
        self.text.split('.').map(move |segment| match segment {
            _ if all => Segment::Rest,
            "*" if !literal => Segment::One,
            ">" if !literal => Segment::Rest,
            other => Segment::Literal(other),
        })
    }
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows stand in docs/protocol.md, so that the page can't differ from the program.
    #[test]
    fn truth_table() {
        let page = include_str!("../../docs/protocol.md");
        let (_, table) = page.split_once("| pattern | text | matches |\n|---|---|---|\n").unwrap();
        let rows: Vec<_> = table.lines().take_while(|line| line.starts_with('|')).collect();
        assert!(rows.len() > 20, "the table was cut: {rows:?}");
        for row in rows {
            let cells: Vec<_> =
                row.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`')).collect();
            let [pattern, text, expected @ ("yes" | "no")] = cells[..] else { panic!("not a row: {row}") };
            let parsed = Pattern::parse(pattern.to_owned()).unwrap();
            assert_eq!(parsed.matches(text), expected == "yes", "{pattern} on {text}");
        }
        assert!(Pattern::exact("*").matches("*"));
        assert!(!Pattern::exact("*").matches("a"));
    }

    #[test]
    fn the_beginning_narrows_down_without_leaving_out() {
        let beginning = |pattern: &str| {
            let parsed = Pattern::parse(pattern.to_owned()).unwrap();
            let (text, whole) = parsed.literal_beginning();
            (text.to_owned(), whole)
        };
        assert_eq!(beginning("a.b"), ("a.b".to_owned(), true));
        assert_eq!(beginning("a.>"), ("a.".to_owned(), false));
        assert_eq!(beginning("a.b.*.c"), ("a.b.".to_owned(), false));
        assert_eq!(beginning("*.b"), (String::new(), false));
        assert_eq!(beginning("*"), (String::new(), false));
        assert_eq!(beginning("a*"), ("a*".to_owned(), true));
        assert_eq!(Pattern::exact("*").literal_beginning(), ("*", true));
    }

    #[test]
    fn wrong_patterns_are_refused() {
        for pattern in ["", " a", "a ", "a.>.b", ">.a", "é", "a\u{1f}", &"a".repeat(65)] {
            assert!(Pattern::parse(pattern.to_owned()).is_err(), "{pattern:?}");
        }
    }
}
