//! The inner layer: PKCS#8 PEM `ENCRYPTED PRIVATE KEY` with PBES2, readable by OpenSSL.

use pkcs8::{
    EncryptedPrivateKeyInfoRef, PrivateKeyInfoRef, SecretDocument,
    der::{Decode, pem::LineEnding},
    pkcs5::{
        EncryptionScheme,
        pbes2::{Kdf, Parameters},
    },
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use zeroize::Zeroizing;

use super::damaged;
use crate::pki::{PkiError, random};

const LABEL: &str = "ENCRYPTED PRIVATE KEY";

/// OpenSSL's default. The password has 32 random characters and the whole is encrypted once more.
const ROUNDS: u32 = 2_048;
/// A row may not make a hub compute for minutes.
const MOST_ROUNDS: u32 = 4_000_000;

/// A password of letters and digits only: npm Eventflow passes it through a shell.
pub(super) fn new_password() -> Result<Zeroizing<String>, PkiError> {
    const CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789Az";
    // 64 characters, two of them twice: a byte chooses without a remainder, at the cost of some bits.
    let bytes = Zeroizing::new(random::<40>()?);
    Ok(Zeroizing::new(bytes.iter().map(|byte| char::from(CHARACTERS[usize::from(byte % 64)])).collect()))
}

/// Encrypts a PKCS#8 DER under a password.
pub(super) fn encrypt(id: &str, key: &[u8], password: &str) -> Result<Zeroizing<String>, PkiError> {
    let failed = |error: &dyn std::fmt::Display| damaged(id, format!("it can't be encrypted ({error})"));
    let parameters = Parameters::generate_pbkdf2_sha256_aes256cbc(ROUNDS, &random::<16>()?, random()?)
        .map_err(|error| failed(&error))?;
    PrivateKeyInfoRef::from_der(key)
        .map_err(|error| failed(&error))?
        .encrypt_with_params(parameters, password)
        .map_err(|error| failed(&error))?
        .to_pem(LABEL, LineEnding::LF)
        .map_err(|error| failed(&error))
}

/// Decrypts a PEM that we, OpenSSL or node wrote.
pub(super) fn decrypt(id: &str, pem: &[u8], password: &[u8]) -> Result<PrivateKeyDer<'static>, PkiError> {
    let text = std::str::from_utf8(pem).map_err(|_| damaged(id, "what was decrypted is no PEM text"))?;
    let (label, document) = SecretDocument::from_pem(text)
        .map_err(|error| damaged(id, format!("what was decrypted is no PEM ({error})")))?;
    if label != LABEL {
        return Err(damaged(id, format!("what was decrypted is a PEM {label:?} in place of {LABEL:?}")));
    }
    let encrypted = EncryptedPrivateKeyInfoRef::from_der(document.as_bytes()).map_err(|error| {
        damaged(
            id,
            format!(
                "it is encrypted in a way that is not supported ({error}); \
                 `openssl pkcs8 -topk8 -v2 aes-256-cbc` converts it"
            ),
        )
    })?;
    check_cost(id, &encrypted.encryption_algorithm)?;
    let key = encrypted.decrypt(password).map_err(|error| {
        damaged(
            id,
            format!("the password in its row doesn't open it ({error}); restore the row from a backup"),
        )
    })?;
    Ok(PrivatePkcs8KeyDer::from(key.as_bytes().to_vec()).into())
}

/// The numbers come from outside: they must not make us compute without end.
fn check_cost(id: &str, scheme: &EncryptionScheme) -> Result<(), PkiError> {
    let EncryptionScheme::Pbes2(parameters) = scheme else {
        return Err(damaged(
            id,
            "it is encrypted by PBES1, which is broken; `openssl pkcs8 -topk8 -v2 aes-256-cbc` converts it",
        ));
    };
    let modest = match &parameters.kdf {
        Kdf::Pbkdf2(pbkdf2) => pbkdf2.iteration_count <= MOST_ROUNDS,
        // 128 MiB at most.
        Kdf::Scrypt(scrypt) => {
            scrypt.cost_parameter <= 1 << 17 && scrypt.block_size <= 8 && scrypt.parallelization <= 4
        }
        _ => false,
    };
    if modest {
        Ok(())
    } else {
        Err(damaged(
            id,
            format!("its encryption asks for more than {MOST_ROUNDS} rounds: convert it with fewer"),
        ))
    }
}
