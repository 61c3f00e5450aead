//! Key pairs for leaves, and public keys on their way to the hub. Keys that are made here: Ed25519.

use std::fmt;

use base64ct::{Base64, Encoder, Encoding, LineEnding};
#[cfg(feature = "hub")]
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use super::{PkiError, Secret, provider, random};

/// A public key in base64 is shorter: that of ECDSA P-384, the longest kind that is served, has 160 characters.
#[cfg(feature = "hub")]
const MOST_TEXT: usize = 512;

/// A new key pair that waits for its certificate.
#[derive(Clone)]
pub struct FreshKey {
    key: Secret,
    public: String,
}

impl FreshKey {
    /// Makes one.
    ///
    /// # Errors
    /// [`PkiError::Random`] if the machine gives no random numbers.
    pub fn generate() -> Result<Self, PkiError> {
        let key = new_key()?;
        let signing = provider().key_provider.load_private_key(key.clone_key()).ok();
        // Of the kind that is made here the provider knows the public half.
        let public = signing.as_ref().and_then(|key| key.public_key()).ok_or(PkiError::Random)?;
        Ok(Self {
            key: Secret::new(pem("PRIVATE KEY", key.secret_der())),
            public: Base64::encode_string(&public),
        })
    }

    /// The public half as the hub takes it: a SubjectPublicKeyInfo, DER in base64.
    #[must_use]
    pub fn public_key(&self) -> &str {
        &self.public
    }

    /// The private half, PEM.
    #[must_use]
    pub fn private_key(&self) -> &Secret {
        &self.key
    }
}

impl fmt::Debug for FreshKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FreshKey").field("public", &self.public).finish_non_exhaustive()
    }
}

/// A new Ed25519 key, PKCS#8 version 1: OpenSSL 3 refuses the version 2 that ring writes.
pub(super) fn new_key() -> Result<PrivateKeyDer<'static>, PkiError> {
    // OneAsymmetricKey { version 0, algorithm { 1.3.101.112 }, privateKey OCTET STRING { OCTET STRING } }
    const HEAD: [u8; 16] =
        [0x30, 0x2E, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
    let mut key = HEAD.to_vec();
    key.extend_from_slice(&random::<32>()?);
    Ok(PrivatePkcs8KeyDer::from(key).into())
}

/// PEM (RFC 7468), lines of 64 characters.
pub(super) fn pem(label: &str, der: &[u8]) -> String {
    let mut body = vec![0; der.len() * 2 + 64];
    // The buffer is large enough for any width, the only things that could be refused.
    let body = Encoder::<Base64>::new_wrapped(&mut body, 64, LineEnding::LF)
        .and_then(|mut encoder| encoder.encode(der).and_then(|()| encoder.finish().map(str::to_owned)))
        .unwrap_or_default();
    format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
}

/// Reads what [`FreshKey::public_key`] writes, and refuses keys of a kind or size that isn't served.
#[cfg(feature = "hub")]
pub(super) fn read_public_key(text: &str) -> Result<SubjectPublicKeyInfoDer<'static>, PkiError> {
    use x509_parser::{prelude::FromDer, x509::SubjectPublicKeyInfo};

    if text.len() > MOST_TEXT {
        return Err(PkiError::PublicKey(format!("it has more than {MOST_TEXT} characters")));
    }
    let der = Base64::decode_vec(text).map_err(|error| PkiError::PublicKey(error.to_string()))?;
    let Ok(([], info)) = SubjectPublicKeyInfo::from_der(&der) else {
        return Err(PkiError::PublicKey("it is no such structure".to_owned()));
    };
    let kind = info.algorithm.algorithm.to_id_string();
    let curve = info.algorithm.parameters.as_ref().and_then(|curve| curve.as_oid().ok());
    let curve = curve.map(|curve| curve.to_id_string());
    // Ed25519 (RFC 8410); id-ecPublicKey with P-256 and P-384 (RFC 5480), as uncompressed points.
    let size = match (kind.as_str(), curve.as_deref()) {
        ("1.3.101.112", None) => 32,
        ("1.2.840.10045.2.1", Some("1.2.840.10045.3.1.7")) => 65,
        ("1.2.840.10045.2.1", Some("1.3.132.0.34")) => 97,
        _ => return Err(PkiError::PublicKeyKind(kind)),
    };
    let found = info.subject_public_key.data.len();
    if found != size {
        return Err(PkiError::PublicKey(format!("it has {found} bytes where such a key has {size}")));
    }
    Ok(SubjectPublicKeyInfoDer::from(der))
}

#[cfg(test)]
#[cfg(feature = "hub")]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_key_is_read_back() {
        let key = FreshKey::generate().unwrap();
        assert_eq!(key.public_key().len(), 60);
        assert_eq!(read_public_key(key.public_key()).unwrap().len(), 44);
        let pem = key.private_key().expose();
        assert!(
            pem.starts_with("-----BEGIN PRIVATE KEY-----\n") && pem.ends_with("-----END PRIVATE KEY-----\n")
        );
        assert!(!format!("{key:?}").contains("PRIVATE"), "{key:?}");
        assert_ne!(FreshKey::generate().unwrap().public_key(), key.public_key());
    }

    #[test]
    fn pem_is_that_of_other_programs() {
        for len in [0, 1, 47, 48, 49, 96, 500] {
            let der = vec![7; len];
            let theirs = pkcs8::der::pem::encode_string("X", pkcs8::der::pem::LineEnding::LF, &der).unwrap();
            if len > 0 {
                assert_eq!(pem("X", &der), theirs, "{len} bytes");
            }
        }
    }

    #[test]
    fn other_kinds_of_keys_are_served_or_named() {
        for kind in [&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ECDSA_P384_SHA384, &rcgen::PKCS_ED25519] {
            let key = rcgen::KeyPair::generate_for(kind).unwrap();
            let der = rcgen::PublicKeyData::subject_public_key_info(&key);
            assert_eq!(&*read_public_key(&Base64::encode_string(&der)).unwrap(), der);
        }
        let refused = |text: &str| read_public_key(text).unwrap_err();
        for bad in
            ["", "!", "AAAA", &"A".repeat(600), FreshKey::generate().unwrap().public_key().get(..56).unwrap()]
        {
            assert_eq!(refused(bad).code(), "E_EVENTFLOW_INVALID_PUBLIC_KEY", "{bad}");
        }
        // X25519, and Ed25519 of 31 bytes.
        let mut other = Base64::decode_vec(FreshKey::generate().unwrap().public_key()).unwrap();
        other[8] = 0x6E;
        let error = refused(&Base64::encode_string(&other));
        assert_eq!(error.code(), "E_EVENTFLOW_UNSUPPORTED_PUBLIC_KEY");
        assert!(error.to_string().contains("1.3.101.110"), "{error}");
        let short = [0x30, 0x29, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x03, 0x20, 0x00];
        let short: Vec<u8> = short.into_iter().chain([9; 31]).collect();
        let error = refused(&Base64::encode_string(&short));
        assert!(error.to_string().contains("31 bytes where such a key has 32"), "{error}");
    }
}
