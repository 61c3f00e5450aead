//! TLS 1.3 with both sides proven: what rustls is told, and what its errors mean.
//!
//! No session is resumed, so that each link is judged by the certificates that stand today.

mod client;
mod explain;
#[cfg(test)]
#[cfg(feature = "hub")]
mod npm_tests;
#[cfg(feature = "hub")]
mod server;
#[cfg(test)]
#[cfg(feature = "hub")]
mod tests;

use std::sync::Arc;

use rustls::{CertificateError, OtherError, RootCertStore, pki_types::CertificateDer};

pub use super::identity::peer_uid;
pub use client::client_config;
#[cfg(feature = "hub")]
pub use client::peer_config;
pub use explain::{REVOKED, explain};
#[cfg(feature = "hub")]
pub use server::{PeerCheck, server_config, server_config_with};

use super::PkiError;

/// Every way to the root's key is through this one certificate.
fn trust(root: &CertificateDer<'static>) -> Result<Arc<RootCertStore>, PkiError> {
    let mut roots = RootCertStore::empty();
    roots.add(root.clone()).map_err(|error| {
        PkiError::certificate("the root", format!("can't be trusted ({error}): get it anew"))
    })?;
    Ok(Arc::new(roots))
}

/// Carries our reason through rustls, to be found again by [`explain`]. A revoked certificate has a word of its own
/// in TLS, which tells its bearer.
fn refusal(error: PkiError) -> rustls::Error {
    if matches!(error, PkiError::Revoked { .. }) {
        return CertificateError::Revoked.into();
    }
    CertificateError::Other(OtherError(Arc::new(error))).into()
}

/// Every deployment's root has the same name, so a chain under another's looks to webpki like one whose
/// signature is false, or of another kind than the root's key. To both ends it means an unknown root, and the alert
/// then says so.
fn other_root(error: rustls::Error) -> rustls::Error {
    match error {
        rustls::Error::InvalidCertificate(
            CertificateError::BadSignature
            | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. },
        ) => CertificateError::UnknownIssuer.into(),
        other => other,
    }
}

/// A configuration that rustls itself refuses: only a fault of ours leads there.
fn unusable(source: rustls::Error) -> PkiError {
    PkiError::Handshake { reason: format!("the TLS configuration can't be made ({source})"), source }
}
