//! Private keys at rest, in the format of npm Eventflow's table `certificate`.
//!
//! A row's key is a PKCS#8 PEM encrypted under a password of its own (PBES2). That PEM and that password are
//! each encrypted once more with AES-256-GCM (16-byte IV, 16-byte tag in a column apart) under
//! PBKDF2-HMAC-SHA512(phrase, salt). Deriving is what costs: the vault derives once per salt and remembers,
//! and all that it seals shares one salt.
//!
//! The functions here block for as long as the rounds take; async callers use a blocking task.

#[cfg(test)]
mod npm_tests;
mod pem;
mod phrase;
mod sealing;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use zeroize::Zeroizing;

pub use phrase::{new_phrase, phrase_file};
pub use sealing::{Cipher, Hash, Sealing};

use super::{CertificateRow, PkiError, Secret, identity, random, x509};

/// Rounds of PBKDF2 with a phrase of 32 random bytes: there is nothing to guess that rounds would slow down.
pub const GENERATED_PHRASE_ITERATIONS: u32 = 1_000;
/// Rounds of PBKDF2 with a phrase that a person chose, and in databases that npm Eventflow shares.
pub const DEFAULT_ITERATIONS: u32 = 1_000_000;

/// Derived keys that are remembered: some times the salts that one start meets.
const REMEMBERED: usize = 64;

type Key = Zeroizing<Vec<u8>>;

/// Opens and seals the private keys of [`CertificateRow`]s. Cheap to clone.
#[derive(Clone)]
pub struct Vault(Arc<Inner>);

struct Inner {
    phrase: Secret,
    sealing: Sealing,
    salt: [u8; 16],
    /// By rounds and salt.
    derived: Mutex<HashMap<(u32, Vec<u8>), Key>>,
}

/// One AES-GCM ciphertext, as its three columns hold it.
struct Sealed {
    text: Vec<u8>,
    iv: Vec<u8>,
    tag: Vec<u8>,
}

impl Vault {
    /// A vault under a phrase, with npm's default cipher and hash; `iterations` must be those that the rows were
    /// written with.
    ///
    /// # Errors
    /// [`PkiError::Random`].
    pub fn new(phrase: Secret, iterations: u32) -> Result<Self, PkiError> {
        Self::with(phrase, Sealing { iterations, ..Sealing::default() })
    }

    /// The same, sealed in another way: that which the rows were written with.
    ///
    /// # Errors
    /// [`PkiError::Random`].
    pub fn with(phrase: Secret, sealing: Sealing) -> Result<Self, PkiError> {
        let derived = Mutex::new(HashMap::new());
        Ok(Self(Arc::new(Inner { phrase, sealing, salt: random()?, derived })))
    }

    /// Encrypts a private key (PKCS#8 DER) into a row of version 0. `validity` is the certificate's end, in
    /// seconds since 1970 (UTC).
    ///
    /// # Errors
    /// [`PkiError::Random`], [`PkiError::Vault`].
    pub fn seal(
        &self,
        id: &str,
        cert: String,
        key: &PrivateKeyDer<'_>,
        validity: i64,
    ) -> Result<CertificateRow, PkiError> {
        let password = pem::new_password()?;
        let key_pem = pem::encrypt(id, key.secret_der(), &password)?;
        let key = self.encrypt(id, key_pem.as_bytes())?;
        let pass = self.encrypt(id, password.as_bytes())?;
        let salt = self.0.salt.to_vec();
        Ok(CertificateRow {
            version: 0,
            id: id.to_owned(),
            cert,
            key: key.text,
            key_iv: key.iv,
            key_salt: salt.clone(),
            key_tag: key.tag,
            pass: pass.text,
            pass_iv: pass.iv,
            pass_salt: salt,
            pass_tag: pass.tag,
            validity,
            revoked: None,
        })
    }

    /// Decrypts a row's private key and checks that it is that of the row's certificate. A row that was sealed with the
    /// default number of rounds for another kind of database opens too: it was moved here.
    ///
    /// # Errors
    /// [`PkiError::Vault`] if the phrase is wrong, the row is damaged, or the key isn't the certificate's.
    pub fn open(&self, row: &CertificateRow) -> Result<PrivateKeyDer<'static>, PkiError> {
        let password = self.decrypt(row, &row.pass, &row.pass_salt, &row.pass_iv, &row.pass_tag)?;
        let key_pem = self.decrypt(row, &row.key, &row.key_salt, &row.key_iv, &row.key_tag)?;
        let key = pem::decrypt(&row.id, &key_pem, &password)?;
        let chain: Vec<CertificateDer<'static>> = x509::pem_chain(&row.cert, &row.id)?;
        identity::certified_key(chain, &key, &row.id)
            .map_err(|error| damaged(&row.id, format!("{error}: retire the row, a new one is then made")))?;
        Ok(key)
    }

    /// Derives for a salt now, so that [`Vault::open`] finds it done.
    pub fn prepare(&self, salt: &[u8]) {
        self.derive(self.0.sealing, salt);
    }

    /// Takes what becomes of a salt as given.
    #[cfg(test)]
    pub(super) fn remember(&self, salt: &[u8], key: &[u8]) {
        let key = Zeroizing::new(key.to_vec());
        self.0.derived.lock().unwrap().insert((self.0.sealing.iterations, salt.to_vec()), key);
    }

    fn derive(&self, sealing: Sealing, salt: &[u8]) -> Key {
        let place = (sealing.iterations, salt.to_vec());
        // A poisoned map is still a map of finished keys.
        if let Some(key) = self.0.derived.lock().unwrap_or_else(PoisonError::into_inner).get(&place) {
            return key.clone();
        }
        // Not under the lock: other salts are derived at the same time.
        let key = sealing.derive(self.0.phrase.expose().as_bytes(), salt);
        let mut derived = self.0.derived.lock().unwrap_or_else(PoisonError::into_inner);
        if derived.len() >= REMEMBERED {
            derived.clear();
        }
        derived.insert(place, key.clone());
        key
    }

    fn encrypt(&self, id: &str, plain: &[u8]) -> Result<Sealed, PkiError> {
        let iv: [u8; 16] = random()?;
        let mut text = plain.to_vec();
        let tag = self.0.sealing.cipher.encrypt(&self.derive(self.0.sealing, &self.0.salt), iv, &mut text);
        let tag = tag.ok_or_else(|| damaged(id, "it is too long to encrypt"))?;
        Ok(Sealed { text, iv: iv.to_vec(), tag: tag.to_vec() })
    }

    fn decrypt(
        &self,
        row: &CertificateRow,
        text: &[u8],
        salt: &[u8],
        iv: &[u8],
        tag: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, PkiError> {
        let (Ok(iv), Ok(tag)) = (<[u8; 16]>::try_from(iv), <[u8; 16]>::try_from(tag)) else {
            return Err(damaged(
                &row.id,
                format!(
                    "its row is damaged: IV and tag must have 16 bytes, they have {} and {}; \
                     restore the row, or retire it so that a new one is made",
                    iv.len(),
                    tag.len()
                ),
            ));
        };
        let open = |sealing: Sealing| {
            let mut plain = Zeroizing::new(text.to_vec());
            let opened = sealing.cipher.decrypt(&self.derive(sealing, salt), iv, tag, &mut plain);
            opened.map(|()| plain)
        };
        let opened = open(self.0.sealing).or_else(|| open(self.0.sealing.elsewhere()?));
        opened.ok_or_else(|| {
            damaged(
                &row.id,
                format!(
                    "the key phrase, or {}, are not those that it was sealed with, or its row is damaged; start with \
                     the phrase that made it (the file key-phrase beside the database, or \
                     EVENTFLOW_CERT_PASS_ENCRYPTION_KEY), or restore the row from a backup",
                    self.0.sealing
                ),
            )
        })
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault").field("sealing", &self.0.sealing).finish_non_exhaustive()
    }
}

fn damaged(certificate: &str, reason: impl Into<String>) -> PkiError {
    PkiError::Vault { certificate: certificate.to_owned(), reason: reason.into() }
}
