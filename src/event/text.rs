//! The short texts of an event: 1 to 64 printable ASCII characters, no space at either end.

use std::{borrow::Borrow, fmt, ops::Deref};

use bytestring::ByteString;

use super::{Fault, code};

/// The most characters that an id, a domain, a name or a pid may have.
pub const MAX_TEXT: usize = 64;

/// A text that breaks the rules for ids, domains, names and pids.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {what} {value:?} {reason}")]
pub struct InvalidText {
    /// Which field: `event id`, `domain`, `name`, `pid`, …
    pub what: &'static str,
    /// Its stable error code.
    pub code: &'static str,
    /// The value, cut to 80 characters.
    pub value: String,
    /// What is wrong with it and what would be right.
    pub reason: &'static str,
}

impl From<InvalidText> for Fault {
    fn from(error: InvalidText) -> Self {
        Fault::refused(error.code, error.to_string())
    }
}

/// Why `value` is no valid text, if it isn't.
pub(super) fn fault_of(value: &str) -> Option<&'static str> {
    if value.is_empty() {
        return Some("is empty: give 1 to 64 printable ASCII characters");
    }
    if !value.bytes().all(|byte| (0x20..=0x7E).contains(&byte)) {
        return Some("has a character outside printable ASCII (0x20 to 0x7E): take it out");
    }
    if value.len() > MAX_TEXT {
        return Some("is longer than 64 characters: shorten it");
    }
    if value.starts_with(' ') || value.ends_with(' ') {
        return Some("has a space at its start or end: databases would take it for another: trim it");
    }
    None
}

/// A domain or a name that is published must not look like a pattern.
fn wildcard_of(value: &str) -> Option<&'static str> {
    value
        .split('.')
        .any(|segment| segment == "*" || segment == ">")
        .then_some("has a segment `*` or `>`, which only patterns may have: name what happened")
}

pub(super) fn cut(value: &str) -> String {
    value.chars().take(80).collect()
}

macro_rules! text {
    ($(#[$doc:meta])* $name:ident, $what:literal, $code:expr, $extra:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(ByteString);

        impl $name {
            /// Checks `value` and takes it.
            ///
            /// # Errors
            /// [`InvalidText`] says what is wrong.
            pub fn parse(value: impl Into<ByteString>) -> Result<Self, InvalidText> {
                let value = value.into();
                let extra: fn(&str) -> Option<&'static str> = $extra;
                match fault_of(&value).or_else(|| extra(&value)) {
                    None => Ok(Self(value)),
                    Some(reason) => {
                        Err(InvalidText { what: $what, code: $code, value: cut(&value), reason })
                    }
                }
            }

            /// Takes a value that a database already holds, whatever the rules were when it was written.
            pub fn from_stored(value: impl Into<ByteString>) -> Self {
                Self(value.into())
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The shared text.
            #[must_use]
            pub fn as_bytestring(&self) -> &ByteString {
                &self.0
            }
        }

        impl Deref for $name {
            type Target = str;
            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.as_str() == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.as_str() == *other
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::parse(text).map_err(serde::de::Error::custom)
            }
        }

        impl std::str::FromStr for $name {
            type Err = InvalidText;
            fn from_str(value: &str) -> Result<Self, InvalidText> {
                Self::parse(value)
            }
        }
    };
}

text!(
    /// The id of an event.
    EventId, "event id", code::INVALID_ID, |_| None
);
text!(
    /// The domain of an event, for example `orders`.
    Domain, "domain", code::INVALID_DOMAIN, wildcard_of
);
text!(
    /// The name of an event, for example `created`.
    Name, "name", code::INVALID_NAME, wildcard_of
);
text!(
    /// The process that an event belongs to: an order, a user.
    Pid, "pid", code::INVALID_PID, |_| None
);
text!(
    /// An entity that events may be associated with: a customer, a document.
    Eid, "entity id", code::INVALID_EID, |_| None
);
text!(
    /// The name of a group of consumers. The default group has no name and is no `Group`.
    Group, "group", code::INVALID_GROUP, |_| None
);
text!(
    /// The name of a recurring schedule, for example `nightly-report`.
    RecurringName, "name of the recurring schedule", code::INVALID_RECURRING, |_| None
);
text!(
    /// The identity of a hub or a spoke: the UID of its certificate.
    Uid, "UID", code::INVALID_UID, |_| None
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_compares_with_a_literal() {
        let name = Name::parse("created").unwrap();
        assert_eq!(name, "created");
        assert_eq!(name, *"created");
        assert_ne!(name, "Created");
    }
}
