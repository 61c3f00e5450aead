//! Loads private keys: those that ring doesn't know first, by the kind that their PKCS#8 says they are.

use std::sync::Arc;

use pkcs8::{PrivateKeyInfoRef, der::Decode};
use rustls::{
    Error,
    crypto::{KeyProvider, ring},
    pki_types::PrivateKeyDer,
    sign::SigningKey,
};

use super::{ecdsa, ed448};

/// What rustls loads keys with.
#[derive(Debug)]
pub(super) struct KeyLoader;

impl KeyProvider for KeyLoader {
    fn load_private_key(&self, key: PrivateKeyDer<'static>) -> Result<Arc<dyn SigningKey>, Error> {
        if let PrivateKeyDer::Pkcs8(der) = &key
            && let Ok(info) = PrivateKeyInfoRef::from_der(der.secret_pkcs8_der())
        {
            if info.algorithm.oid == ed448::OID {
                return ed448::load(&info);
            }
            if info.algorithm.oid == ecdsa::OID && info.algorithm.parameters_oid() == Ok(ecdsa::P521) {
                return ecdsa::load(info);
            }
        }
        ring::sign::any_supported_type(&key)
    }
}
