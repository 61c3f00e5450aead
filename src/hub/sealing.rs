//! What the configuration says of keys at rest, as their vault takes it: the two know nothing of each other.

use crate::{
    config::{CertificateSettings, KeyCipher, KeyHash},
    pki::{
        Sealing,
        vault::{Cipher, Hash},
    },
};

/// How keys rest.
pub(super) fn sealing(settings: &CertificateSettings) -> Sealing {
    Sealing {
        cipher: match settings.cipher {
            KeyCipher::Aes128Gcm => Cipher::Aes128Gcm,
            KeyCipher::Aes192Gcm => Cipher::Aes192Gcm,
            KeyCipher::Aes256Gcm => Cipher::Aes256Gcm,
        },
        hash: match settings.hash {
            KeyHash::Sha256 => Hash::Sha256,
            KeyHash::Sha384 => Hash::Sha384,
            KeyHash::Sha512 => Hash::Sha512,
        },
        iterations: settings.iterations,
    }
}
