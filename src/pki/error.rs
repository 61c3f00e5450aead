//! What can go wrong with certificates, keys and handshakes.

use std::{error::Error, fmt, path::PathBuf, time::Duration};

use crate::event::{Fault, code};

/// An error of this layer. Its text says what, which certificate, why and what to do. `Debug` is that text with its
/// code, since it is what a `main` that returns the error prints.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum PkiError {
    /// A configured name breaks the rules.
    #[error("the configured name {name:?} {reason}")]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it and what would be right.
        reason: &'static str,
    },
    /// A certificate, ours or a peer's, is refused.
    #[error("the certificate of {certificate} {reason}")]
    Certificate {
        /// Its UID, or what stands for it if it has none: "the hub", "this spoke".
        certificate: String,
        /// Why, and what to do.
        reason: String,
    },
    /// A certificate of ours has expired.
    #[error("the certificate of {certificate} expired at {ended}: {remedy}")]
    Expired {
        /// Its UID.
        certificate: String,
        /// When, for people, UTC.
        ended: String,
        /// What to do.
        remedy: String,
    },
    /// A certificate, ours or a peer's, was revoked.
    #[error("the certificate of {certificate} was revoked: {remedy}")]
    Revoked {
        /// Its UID, or what stands for it.
        certificate: String,
        /// What to do.
        remedy: String,
    },
    /// The root or an intermediate doesn't stand.
    #[error("the certificate {certificate}, which others are issued under, {reason}")]
    AuthorityGone {
        /// Its id.
        certificate: String,
        /// Why it can't be used, and what to do.
        reason: String,
    },
    /// What was sent as a public key is none.
    #[error("the public key can't be read: {0}: send a SubjectPublicKeyInfo, DER in base64")]
    PublicKey(String),
    /// The public key is of a kind that isn't served.
    #[error("the public key is of a kind that isn't served ({0}): Ed25519, ECDSA P-256 and ECDSA P-384 are")]
    PublicKeyKind(String),
    /// A handshake failed for a reason that is no certificate's.
    #[error("the TLS handshake failed: {reason}")]
    Handshake {
        /// Why, and what to do.
        reason: String,
        /// The TLS error.
        #[source]
        source: rustls::Error,
    },
    /// The connection ended during the handshake.
    #[error("the connection ended during the TLS handshake: {source}: check that a hub listens there")]
    Connection {
        /// What the socket said.
        source: std::io::Error,
    },
    /// The client asked for a hub that doesn't live here.
    #[error("the TLS handshake failed: {reason}")]
    InvalidHostname {
        /// Which name, and what to do.
        reason: String,
    },
    /// A row of the certificate table can't be opened.
    #[error("the private key of certificate {certificate} can't be opened: {reason}")]
    Vault {
        /// The id of the row.
        certificate: String,
        /// Why, and what to do.
        reason: String,
    },
    /// A bundle of credentials can't be used.
    #[error("the bundle {bundle} {reason}")]
    Bundle {
        /// Its file.
        bundle: String,
        /// Why, and what to do.
        reason: String,
    },
    /// A file of credentials can't be read or written.
    #[error("can't {action} {}: {source}", path.display())]
    File {
        /// `read`, `write`, …
        action: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The certificate table can't be read or written.
    #[error("the certificate table refused: {0}")]
    Rows(#[source] Box<dyn Error + Send + Sync>),
    /// Others changed a certificate's row each time that we tried to.
    #[error(
        "the row of certificate {certificate} was changed by others each time that this hub wrote it: \
         start again, and look for a second hub with the same id"
    )]
    Contended {
        /// The id of the row.
        certificate: String,
    },
    /// A certificate can't be made.
    #[error("can't issue the certificate of {certificate}: {reason}")]
    Issue {
        /// Its UID.
        certificate: String,
        /// Why, and what to do.
        reason: String,
    },
    /// The machine gives no random numbers.
    #[error("the system's source of random numbers failed: no key can be made on this machine")]
    Random,
}

impl PkiError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Name { .. } => code::INVALID_CONFIG_NAME,
            Self::Certificate { .. } | Self::Issue { .. } => code::CERTIFICATE,
            Self::Expired { .. } => code::CERTIFICATE_EXPIRED,
            Self::Revoked { .. } => code::CERTIFICATE_REVOKED,
            Self::AuthorityGone { .. } => code::AUTHORITY_GONE,
            Self::PublicKey(_) => code::INVALID_PUBLIC_KEY,
            Self::PublicKeyKind(_) => code::UNSUPPORTED_PUBLIC_KEY,
            Self::Handshake { .. } => code::HANDSHAKE,
            Self::InvalidHostname { .. } => code::INVALID_HOSTNAME,
            Self::Connection { .. } => code::LINK_LOST,
            Self::Vault { .. } => code::VAULT,
            Self::Bundle { .. } => code::BUNDLE,
            Self::File { .. } => code::DATA_FOLDER,
            Self::Rows(_) | Self::Contended { .. } => code::DB_FAULT,
            Self::Random => code::INTERNAL,
        }
    }

    /// Whether trying again without changing anything may help.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Connection { .. } | Self::Rows(_) | Self::Contended { .. })
    }

    pub(crate) fn certificate(certificate: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Certificate { certificate: certificate.into(), reason: reason.into() }
    }
}

impl fmt::Debug for PkiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} ({})", self.code())
    }
}

impl From<PkiError> for Fault {
    fn from(error: PkiError) -> Self {
        let (code, text) = (error.code(), error.to_string());
        if error.is_retryable() {
            Fault::retryable(code, text, Duration::from_secs(1))
        } else {
            Fault::refused(code, text)
        }
    }
}
