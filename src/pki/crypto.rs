//! The cryptography of TLS and certificates: that of rustls on ring, and what npm Eventflow uses besides.
//!
//! npm's keys are Ed448 unless somebody chose otherwise, and may be ECDSA P-521; it signs certificates with SHA-512
//! whatever the curve. ring has none of these. Keys that are made here are Ed25519: the additions serve what stands.

mod ecdsa;
mod ed448;
mod keys;
#[cfg(test)]
#[cfg(feature = "hub")]
mod tests;

use std::sync::{Arc, LazyLock};

use rustls::{
    SignatureScheme,
    crypto::{CryptoProvider, WebPkiSupportedAlgorithms},
    pki_types::SignatureVerificationAlgorithm,
};

/// What TLS may sign a handshake with, and what verifies that.
type Scheme = (SignatureScheme, &'static [&'static dyn SignatureVerificationAlgorithm]);

/// Signatures of certificates that ring can't verify.
const CERTIFICATES: &[&dyn SignatureVerificationAlgorithm] = &[
    ed448::VERIFICATION,
    ecdsa::P256_SHA512,
    ecdsa::P384_SHA512,
    ecdsa::P521_SHA256,
    ecdsa::P521_SHA384,
    ecdsa::P521_SHA512,
];

/// The same of handshakes: TLS 1.3 allows P-256 and P-384 no other hash than that of ring.
const HANDSHAKES: &[Scheme] = &[
    (SignatureScheme::ED448, &[ed448::VERIFICATION]),
    (SignatureScheme::ECDSA_NISTP521_SHA512, &[ecdsa::P521_SHA512]),
];

/// The cryptography of every TLS configuration, signature check and random number here.
///
/// It is passed explicitly everywhere: a process default would depend on what other crates enable.
#[must_use]
pub fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| Arc::new(extended()));
    Arc::clone(&PROVIDER)
}

fn extended() -> CryptoProvider {
    let ring = rustls::crypto::ring::default_provider();
    let known = ring.signature_verification_algorithms;
    CryptoProvider {
        // rustls takes lists that live as long as the process. This one provider is made once, and does.
        signature_verification_algorithms: WebPkiSupportedAlgorithms {
            all: [known.all, CERTIFICATES].concat().leak(),
            mapping: [known.mapping, HANDSHAKES].concat().leak(),
        },
        key_provider: &keys::KeyLoader,
        ..ring
    }
}
