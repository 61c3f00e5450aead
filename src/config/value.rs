//! The types of single settings.

use std::fmt;

/// The longest configured name: with the words and the time before it, an id stays within 64 characters.
const MAX_NAME: usize = 39;

/// A configured name that can't be one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the name {name:?} {reason}")]
pub struct InvalidName {
    /// The name, cut to 80 characters.
    pub name: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// The name that hubs, or spokes, of one installation share: `[A-Za-z0-9.-]+`, at most 39 characters. Ids end
/// with it and certificates name it, so each part between its dots must be one of a host name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd)]
pub struct ConfiguredName(String);

impl ConfiguredName {
    /// Checks a name and takes it.
    ///
    /// # Errors
    /// [`InvalidName`] says what is wrong.
    pub fn parse(name: impl Into<String>) -> Result<Self, InvalidName> {
        let name = name.into();
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-';
        let odd = |part: &str| part.is_empty() || part.starts_with('-') || part.ends_with('-');
        let reason = if name.is_empty() || !name.bytes().all(allowed) {
            "must hold only letters, digits, dots and hyphens, at least one"
        } else if name.len() > MAX_NAME {
            "must have at most 39 characters"
        } else if name.split('.').any(odd) {
            "must have a letter or digit at the start and end of each part between its dots"
        } else {
            return Ok(Self(name));
        };
        Err(InvalidName { name: name.chars().take(80).collect(), reason })
    }

    /// `EVENTFLOW-HUB`, the default for hubs.
    #[must_use]
    pub fn hub() -> Self {
        Self("EVENTFLOW-HUB".to_owned())
    }

    /// `EVENTFLOW-SPOKE`, the default for spokes.
    #[must_use]
    pub fn spoke() -> Self {
        Self("EVENTFLOW-SPOKE".to_owned())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ConfiguredName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that never shows: not in `Debug`, not in a log, not in `--check`.
#[derive(Clone, PartialEq, Eq, PartialOrd)]
pub struct Secret(String);

impl Secret {
    /// Takes a secret.
    #[must_use]
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// The secret itself.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

/// Whether a commit waits for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub enum Durability {
    /// An ack means on disk: it survives the loss of power.
    Full,
    /// An ack means handed to the operating system: it survives a crash of the hub, not the loss of power.
    Relaxed,
}

/// What encrypts keys at rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub enum KeyCipher {
    /// `aes-128-gcm`.
    Aes128Gcm,
    /// `aes-192-gcm`.
    Aes192Gcm,
    /// `aes-256-gcm`.
    Aes256Gcm,
}

impl KeyCipher {
    /// The bytes of its key.
    #[must_use]
    pub fn key_bytes(self) -> u32 {
        match self {
            Self::Aes128Gcm => 16,
            Self::Aes192Gcm => 24,
            Self::Aes256Gcm => 32,
        }
    }
}

/// What PBKDF2 makes the key of that cipher with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub enum KeyHash {
    /// `sha256`.
    Sha256,
    /// `sha384`.
    Sha384,
    /// `sha512`.
    Sha512,
}

/// The signal that drains and stops the hub, beside SIGINT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub enum QuitSignal {
    /// SIGTERM.
    Term,
    /// SIGINT.
    Int,
    /// SIGQUIT.
    Quit,
    /// SIGHUP.
    Hup,
    /// SIGUSR1.
    Usr1,
    /// SIGUSR2.
    Usr2,
}

/// For whom the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub enum LogFormat {
    /// People: one aligned line for each entry.
    Human,
    /// Programs: one JSON object for each line.
    Json,
}

/// The least important that the log holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub enum LogLevel {
    /// Only what needs somebody.
    Error,
    /// And what may.
    Warn,
    /// And what happens: starts, stops, links.
    Info,
    /// And how.
    Debug,
    /// And all else.
    Trace,
}
