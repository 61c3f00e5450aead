//! ECDSA with the curves and hashes that ring lacks: P-521 with any of SHA-2, and SHA-512 with the smaller curves, which
//! is what npm Eventflow signs certificates with.

use std::{fmt, sync::Arc};

use p521::ecdsa::{
    DerSignature, Error as EcdsaError, SigningKey as P521Key,
    signature::{Signer as _, hazmat::PrehashVerifier as _},
};
use pkcs8::{ObjectIdentifier, PrivateKeyInfoRef};
use ring::digest;
use rustls::{
    Error, SignatureAlgorithm, SignatureScheme,
    pki_types::{
        AlgorithmIdentifier, InvalidSignature, SignatureVerificationAlgorithm, SubjectPublicKeyInfoDer,
        alg_id,
    },
    sign::{Signer, SigningKey, public_key_to_spki},
};

/// id-ecPublicKey (RFC 5480), of keys on any curve.
pub(super) const OID: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
/// secp521r1, the parameter of such a key.
pub(super) const P521: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.35");

/// Verifies signatures on one curve, of messages that one function hashes.
struct Verification {
    key: AlgorithmIdentifier,
    signature: AlgorithmIdentifier,
    hash: &'static digest::Algorithm,
    verify: OnCurve,
}

/// Takes a public key (SEC 1), a hash and its signature (DER).
type OnCurve = fn(&[u8], &[u8], &[u8]) -> Result<(), EcdsaError>;

/// What verifies on the curve of a crate. A hash that is longer than the curve's numbers is cut, as ECDSA says.
macro_rules! on {
    ($curve:ident) => {
        |key, hash, signature| {
            let signature = $curve::ecdsa::Signature::from_der(signature)?;
            $curve::ecdsa::VerifyingKey::from_sec1_bytes(key)?.verify_prehash(hash, &signature)
        }
    };
}

pub(super) const P256_SHA512: &dyn SignatureVerificationAlgorithm = &Verification {
    key: alg_id::ECDSA_P256,
    signature: alg_id::ECDSA_SHA512,
    hash: &digest::SHA512,
    verify: on!(p256),
};
pub(super) const P384_SHA512: &dyn SignatureVerificationAlgorithm = &Verification {
    key: alg_id::ECDSA_P384,
    signature: alg_id::ECDSA_SHA512,
    hash: &digest::SHA512,
    verify: on!(p384),
};
pub(super) const P521_SHA256: &dyn SignatureVerificationAlgorithm = &Verification {
    key: alg_id::ECDSA_P521,
    signature: alg_id::ECDSA_SHA256,
    hash: &digest::SHA256,
    verify: on!(p521),
};
pub(super) const P521_SHA384: &dyn SignatureVerificationAlgorithm = &Verification {
    key: alg_id::ECDSA_P521,
    signature: alg_id::ECDSA_SHA384,
    hash: &digest::SHA384,
    verify: on!(p521),
};
pub(super) const P521_SHA512: &dyn SignatureVerificationAlgorithm = &Verification {
    key: alg_id::ECDSA_P521,
    signature: alg_id::ECDSA_SHA512,
    hash: &digest::SHA512,
    verify: on!(p521),
};

impl SignatureVerificationAlgorithm for Verification {
    fn verify_signature(
        &self,
        public_key: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), InvalidSignature> {
        let hash = digest::digest(self.hash, message);
        (self.verify)(public_key, hash.as_ref(), signature).map_err(|_| InvalidSignature)
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        self.key
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        self.signature
    }
}

impl fmt::Debug for Verification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verification")
            .field("key", &self.key)
            .field("hash", &self.hash)
            .finish_non_exhaustive()
    }
}

/// Reads a private key on P-521 (RFC 5915 within PKCS#8).
pub(super) fn load(info: PrivateKeyInfoRef<'_>) -> Result<Arc<dyn SigningKey>, Error> {
    let key = p521::SecretKey::try_from(info)
        .map_err(|error| Error::General(format!("the ECDSA P-521 key can't be read ({error})")))?;
    Ok(Arc::new(Key(P521Key::from(key))))
}

/// A private key on P-521. ring loads those on the other curves.
#[derive(Clone)]
struct Key(P521Key);

impl SigningKey for Key {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        offered.contains(&SignatureScheme::ECDSA_NISTP521_SHA512).then(|| Box::new(self.clone()) as _)
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        let point = self.0.verifying_key().to_sec1_point(false);
        Some(public_key_to_spki(&alg_id::ECDSA_P521, point.as_bytes()))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::ECDSA
    }
}

impl Signer for Key {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        // The curve's own hash is SHA-512; the nonce comes of key and message (RFC 6979).
        let signature: DerSignature =
            self.0.try_sign(message).map_err(|_| Error::General("ECDSA P-521 can't sign".to_owned()))?;
        Ok(signature.as_bytes().to_vec())
    }

    fn scheme(&self) -> SignatureScheme {
        SignatureScheme::ECDSA_NISTP521_SHA512
    }
}

impl fmt::Debug for Key {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ECDSA P-521")
    }
}
