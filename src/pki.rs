//! Certificates: who a peer is, what proves it, and how keys rest.
//!
//! A deployment has one root, one intermediate for each configured name (that of the hubs, that of the
//! spokes), and one leaf for each party. A party's identity is the attribute UID of its leaf's subject; the
//! leaf's only DNS name says the same, and the intermediate's name constraint bounds it. Names in the common
//! name are never read.
//!
//! With the feature `spoke` alone: identities, bundles of credentials, the client's TLS. With `hub`: the
//! authority that issues, the vault that keeps keys encrypted in the database, the server's TLS.

mod bundle;
mod crypto;
mod error;
mod files;
mod identity;
mod ids;
mod key;
mod secret;
pub mod tls;
mod x509;

#[cfg(feature = "hub")]
pub mod authority;
#[cfg(feature = "hub")]
mod inspect;
#[cfg(feature = "hub")]
mod operator;
#[cfg(feature = "hub")]
mod revocation;
#[cfg(test)]
#[cfg(feature = "hub")]
pub(crate) mod testing;
#[cfg(feature = "hub")]
pub mod vault;

use std::time::{SystemTime, UNIX_EPOCH};

pub use bundle::Bundle;
pub use crypto::provider;
pub use error::PkiError;
pub use identity::{Identity, peer_uid};
pub use ids::{MAX_NAME, check_name, new_id};
pub use key::FreshKey;
pub use secret::Secret;

#[cfg(feature = "hub")]
pub use authority::{Authority, CertificateRow, CertificateRows, Issued, Lifetimes, Names};
#[cfg(feature = "hub")]
pub use inspect::{CertificateFacts, CertificateKind};
#[cfg(feature = "hub")]
pub use operator::{ensure_operator_bundle, operator_bundle};
#[cfg(feature = "hub")]
pub use revocation::{Fingerprint, Revoked, revocation_time};
#[cfg(feature = "hub")]
pub use vault::{Sealing, Vault};

/// The name of hubs when none is configured.
pub const DEFAULT_HUB_NAME: &str = "EVENTFLOW-HUB";
/// The name of spokes when none is configured.
pub const DEFAULT_SPOKE_NAME: &str = "EVENTFLOW-SPOKE";

/// How far before its issue a certificate starts to hold, for peers whose clock is late.
pub(crate) const BACKDATE: std::time::Duration = std::time::Duration::from_secs(300);

/// Fills an array from the provider's secure source.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], PkiError> {
    let mut bytes = [0; N];
    provider().secure_random.fill(&mut bytes).map_err(|_| PkiError::Random)?;
    Ok(bytes)
}

/// Whole seconds since 1970 (UTC); before that, 0.
pub(crate) fn unix_seconds(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

/// The time that is so many whole seconds after 1970 (UTC).
#[cfg(feature = "hub")]
pub(crate) fn from_unix_seconds(seconds: i64) -> SystemTime {
    UNIX_EPOCH + std::time::Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}
