//! How keys are sealed: the four things that npm Eventflow lets its users choose, which all hubs of a database must
//! agree on. (The fourth, the size of the derived key, follows from the cipher.)

use std::{fmt, num::NonZeroU32};

use aes_gcm::{
    AesGcm, KeyInit,
    aead::{AeadCore, AeadInOut, consts::U16},
    aes::{Aes128, Aes192, Aes256},
};
use ring::pbkdf2;
use zeroize::Zeroizing;

use super::{DEFAULT_ITERATIONS, GENERATED_PHRASE_ITERATIONS};

/// How rows are sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sealing {
    /// What encrypts.
    pub cipher: Cipher,
    /// What PBKDF2 makes its key of the phrase with.
    pub hash: Hash,
    /// How many rounds of that; 0 counts as 1.
    pub iterations: u32,
}

impl Default for Sealing {
    /// npm's: aes-256-gcm, sha512, a million rounds.
    fn default() -> Self {
        Self { cipher: Cipher::default(), hash: Hash::default(), iterations: DEFAULT_ITERATIONS }
    }
}

impl fmt::Display for Sealing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cipher, hash, iterations } = self;
        write!(f, "{} under a key of PBKDF2-{} of {iterations} rounds", cipher.as_str(), hash.as_str())
    }
}

/// A cipher, always with IVs and tags of 16 bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Cipher {
    /// `aes-128-gcm`.
    Aes128Gcm,
    /// `aes-192-gcm`.
    Aes192Gcm,
    /// `aes-256-gcm`.
    #[default]
    Aes256Gcm,
}

/// A hash function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Hash {
    /// `sha256`.
    Sha256,
    /// `sha384`.
    Sha384,
    /// `sha512`.
    #[default]
    Sha512,
}

impl Hash {
    /// As npm and OpenSSL call it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
        }
    }
}

impl Cipher {
    /// As npm and OpenSSL call it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Aes128Gcm => "aes-128-gcm",
            Self::Aes192Gcm => "aes-192-gcm",
            Self::Aes256Gcm => "aes-256-gcm",
        }
    }

    /// The bytes of its key.
    fn key_bytes(self) -> usize {
        match self {
            Self::Aes128Gcm => 16,
            Self::Aes192Gcm => 24,
            Self::Aes256Gcm => 32,
        }
    }

    /// Encrypts in place; the tag, or none for a text that is too long.
    pub(super) fn encrypt(self, key: &[u8], iv: [u8; 16], text: &mut [u8]) -> Option<[u8; 16]> {
        match self {
            Self::Aes128Gcm => encrypt::<AesGcm<Aes128, U16>>(key, iv, text),
            Self::Aes192Gcm => encrypt::<AesGcm<Aes192, U16>>(key, iv, text),
            Self::Aes256Gcm => encrypt::<AesGcm<Aes256, U16>>(key, iv, text),
        }
    }

    /// Decrypts in place; none if the key isn't the one, or something was changed.
    pub(super) fn decrypt(self, key: &[u8], iv: [u8; 16], tag: [u8; 16], text: &mut [u8]) -> Option<()> {
        match self {
            Self::Aes128Gcm => decrypt::<AesGcm<Aes128, U16>>(key, iv, tag, text),
            Self::Aes192Gcm => decrypt::<AesGcm<Aes192, U16>>(key, iv, tag, text),
            Self::Aes256Gcm => decrypt::<AesGcm<Aes256, U16>>(key, iv, tag, text),
        }
    }
}

impl Sealing {
    /// How a database of the other kind is sealed by default, if this one is by its own: an embedded one, or a server's.
    pub(super) fn elsewhere(self) -> Option<Self> {
        let iterations = match self.iterations {
            GENERATED_PHRASE_ITERATIONS => DEFAULT_ITERATIONS,
            DEFAULT_ITERATIONS => GENERATED_PHRASE_ITERATIONS,
            _ => return None,
        };
        Some(Self { iterations, ..self })
    }

    /// The cipher's key of a phrase and a salt.
    pub(super) fn derive(&self, phrase: &[u8], salt: &[u8]) -> Zeroizing<Vec<u8>> {
        let hash = match self.hash {
            Hash::Sha256 => pbkdf2::PBKDF2_HMAC_SHA256,
            Hash::Sha384 => pbkdf2::PBKDF2_HMAC_SHA384,
            Hash::Sha512 => pbkdf2::PBKDF2_HMAC_SHA512,
        };
        let rounds = NonZeroU32::new(self.iterations).unwrap_or(NonZeroU32::MIN);
        let mut key = Zeroizing::new(vec![0; self.cipher.key_bytes()]);
        pbkdf2::derive(hash, rounds, salt, phrase, &mut key);
        key
    }
}

fn encrypt<C>(key: &[u8], iv: [u8; 16], text: &mut [u8]) -> Option<[u8; 16]>
where
    C: KeyInit + AeadInOut + AeadCore<NonceSize = U16, TagSize = U16>,
{
    let cipher = C::new_from_slice(key).ok()?;
    cipher.encrypt_inout_detached(&iv.into(), &[], text.into()).ok().map(Into::into)
}

fn decrypt<C>(key: &[u8], iv: [u8; 16], tag: [u8; 16], text: &mut [u8]) -> Option<()>
where
    C: KeyInit + AeadInOut + AeadCore<NonceSize = U16, TagSize = U16>,
{
    let cipher = C::new_from_slice(key).ok()?;
    cipher.decrypt_inout_detached(&iv.into(), &[], text.into(), &tag.into()).ok()
}
