//! Ed448 (RFC 8032, 5.2), as certificates (RFC 8410) and TLS 1.3 use it: without a context, without a pre-hash.

use std::{fmt, sync::Arc};

use crrl::ed448::{PrivateKey, PublicKey};
use pkcs8::{
    ObjectIdentifier, PrivateKeyInfoRef,
    der::{Decode, asn1::OctetStringRef},
};
use rustls::{
    Error, SignatureAlgorithm, SignatureScheme,
    pki_types::{
        AlgorithmIdentifier, InvalidSignature, SignatureVerificationAlgorithm, SubjectPublicKeyInfoDer,
        alg_id,
    },
    sign::{Signer, SigningKey, public_key_to_spki},
};

/// id-Ed448, of keys and of signatures.
pub(super) const OID: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.113");

/// Verifies signatures of certificates and handshakes.
pub(super) const VERIFICATION: &dyn SignatureVerificationAlgorithm = &Verification;

#[derive(Debug)]
struct Verification;

impl SignatureVerificationAlgorithm for Verification {
    fn verify_signature(
        &self,
        public_key: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), InvalidSignature> {
        // Lengths, canonical encodings and S < L are the library's to check, as the RFC demands.
        let key = PublicKey::decode(public_key).ok_or(InvalidSignature)?;
        if key.verify_raw(signature, message) { Ok(()) } else { Err(InvalidSignature) }
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        alg_id::ED448
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        alg_id::ED448
    }
}

/// Reads a private key (RFC 8410, 7).
pub(super) fn load(info: &PrivateKeyInfoRef<'_>) -> Result<Arc<dyn SigningKey>, Error> {
    let refused = |why: &str| Err(Error::General(format!("the Ed448 key {why}")));
    let Ok(seed) = <&OctetStringRef>::from_der(info.private_key.as_bytes()) else {
        return refused("is no octet string within another");
    };
    let Some(key) = PrivateKey::decode(seed.as_bytes()) else {
        return refused("must have 57 bytes");
    };
    if info.public_key.is_some_and(|public| public.raw_bytes() != key.public_key.encode()) {
        return refused("comes with the public half of another");
    }
    Ok(Arc::new(Key(key)))
}

/// A private key. As with ring's keys, nothing wipes it from memory when it ends.
#[derive(Clone)]
struct Key(PrivateKey);

impl SigningKey for Key {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        offered.contains(&SignatureScheme::ED448).then(|| Box::new(self.clone()) as _)
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        Some(public_key_to_spki(&alg_id::ED448, self.0.public_key.encode()))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::ED448
    }
}

impl Signer for Key {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        Ok(self.0.sign_raw(message).to_vec())
    }

    fn scheme(&self) -> SignatureScheme {
        SignatureScheme::ED448
    }
}

impl fmt::Debug for Key {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ed448")
    }
}
