//! Signs certificates with whatever key their issuer has: by what TLS signs handshakes with.

use std::sync::Arc;

use rustls::{
    SignatureScheme,
    pki_types::PrivateKeyDer,
    sign::{Signer, SigningKey},
};
use signature::{Error as SignatureError, Keypair};
use x509_cert::{
    der::{
        Document,
        asn1::{Any, BitString, Null},
    },
    spki::{
        self, AlgorithmIdentifierOwned, DynSignatureAlgorithmIdentifier, EncodePublicKey, ObjectIdentifier,
        SignatureBitStringEncoding,
    },
};

use crate::pki::provider;

/// How each kind of key signs certificates: its scheme in TLS, and the same as X.509 names it (RFC 8410, 5758, 4055).
const WAYS: [(SignatureScheme, ObjectIdentifier); 6] = [
    (SignatureScheme::ED25519, ObjectIdentifier::new_unwrap("1.3.101.112")),
    (SignatureScheme::ED448, ObjectIdentifier::new_unwrap("1.3.101.113")),
    (SignatureScheme::ECDSA_NISTP256_SHA256, ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2")),
    (SignatureScheme::ECDSA_NISTP384_SHA384, ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.3")),
    (SignatureScheme::ECDSA_NISTP521_SHA512, ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.4")),
    (SignatureScheme::RSA_PKCS1_SHA512, ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.13")),
];

/// The key of an issuer, ready to sign certificates.
pub(super) struct IssuerKey {
    public: PublicKey,
    signer: Box<dyn Signer>,
    algorithm: AlgorithmIdentifierOwned,
}

impl IssuerKey {
    /// Loads a key; the error says why it can't be used.
    pub(super) fn load(key: &PrivateKeyDer<'_>) -> Result<Self, String> {
        let key =
            provider().key_provider.load_private_key(key.clone_key()).map_err(|error| error.to_string())?;
        let (signer, algorithm) = WAYS
            .iter()
            .find_map(|&(scheme, oid)| {
                let parameters = (scheme == SignatureScheme::RSA_PKCS1_SHA512).then(|| Any::from(Null));
                Some((key.choose_scheme(&[scheme])?, AlgorithmIdentifierOwned { oid, parameters }))
            })
            .ok_or("it signs in no way that is known here")?;
        Ok(Self { public: PublicKey::of(&key)?, signer, algorithm })
    }

    /// Its public half: a SubjectPublicKeyInfo, DER.
    pub(super) fn public(&self) -> &[u8] {
        &self.public.0
    }
}

impl Keypair for IssuerKey {
    type VerifyingKey = PublicKey;

    fn verifying_key(&self) -> PublicKey {
        self.public.clone()
    }
}

impl DynSignatureAlgorithmIdentifier for IssuerKey {
    fn signature_algorithm_identifier(&self) -> spki::Result<AlgorithmIdentifierOwned> {
        Ok(self.algorithm.clone())
    }
}

impl signature::Signer<Signature> for IssuerKey {
    fn try_sign(&self, message: &[u8]) -> Result<Signature, SignatureError> {
        self.signer.sign(message).map(Signature).map_err(SignatureError::from_source)
    }
}

/// A SubjectPublicKeyInfo, DER.
#[derive(Clone)]
pub(super) struct PublicKey(Arc<[u8]>);

impl PublicKey {
    fn of(key: &Arc<dyn SigningKey>) -> Result<Self, &'static str> {
        let public = key.public_key().ok_or("its public half isn't known")?;
        Ok(Self(Arc::from(public.as_ref())))
    }
}

impl EncodePublicKey for PublicKey {
    fn to_public_key_der(&self) -> spki::Result<Document> {
        Ok(Document::try_from(&*self.0)?)
    }
}

/// What a certificate ends with.
pub(super) struct Signature(Vec<u8>);

impl SignatureBitStringEncoding for Signature {
    fn to_bitstring(&self) -> x509_cert::der::Result<BitString> {
        BitString::from_bytes(&self.0)
    }
}
