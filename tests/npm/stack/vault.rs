//! Ciphertexts of the table `certificate`: AES-256-GCM with a 16-byte IV, the tag apart, under a key that PBKDF2 makes
//! of the deployment's phrase and the ciphertext's own salt.

use std::{
    collections::HashMap,
    num::NonZeroU32,
    sync::{Arc, Mutex},
};

use aes_gcm::{
    AesGcm, KeyInit,
    aead::{AeadInOut, consts::U16},
    aes::Aes256,
};
use ring::pbkdf2;

/// One ciphertext, as its four columns hold it.
#[derive(Debug, Clone)]
pub struct Sealed {
    pub text: Vec<u8>,
    pub iv: Vec<u8>,
    pub salt: Vec<u8>,
    pub tag: Vec<u8>,
}

/// Opens and seals. Cheap to clone.
#[derive(Clone)]
pub struct Vault {
    phrase: String,
    rounds: NonZeroU32,
    derived: Arc<Mutex<HashMap<Vec<u8>, [u8; 32]>>>,
}

impl Vault {
    pub fn new(phrase: &str, rounds: u32) -> Self {
        Self { phrase: phrase.to_owned(), rounds: NonZeroU32::new(rounds).unwrap(), derived: Arc::default() }
    }

    pub fn open(&self, sealed: &Sealed) -> Vec<u8> {
        let iv: [u8; 16] = sealed.iv.as_slice().try_into().expect("an IV has 16 bytes");
        let tag: [u8; 16] = sealed.tag.as_slice().try_into().expect("a tag has 16 bytes");
        assert_eq!(sealed.salt.len(), 16, "a salt has 16 bytes");
        let mut text = sealed.text.clone();
        self.cipher(&sealed.salt)
            .decrypt_inout_detached(&iv.into(), &[], text.as_mut_slice().into(), &tag.into())
            .expect("the phrase opens the row");
        text
    }

    /// With a salt of its own.
    pub fn seal(&self, plain: &[u8]) -> Sealed {
        let (iv, salt) = (random(), random());
        let mut text = plain.to_vec();
        let tag =
            self.cipher(&salt).encrypt_inout_detached(&iv.into(), &[], text.as_mut_slice().into()).unwrap();
        Sealed { text, iv: iv.to_vec(), salt: salt.to_vec(), tag: tag.to_vec() }
    }

    fn cipher(&self, salt: &[u8]) -> AesGcm<Aes256, U16> {
        let known = self.derived.lock().unwrap().get(salt).copied();
        let key = known.unwrap_or_else(|| {
            let mut key = [0; 32];
            pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA512, self.rounds, salt, self.phrase.as_bytes(), &mut key);
            self.derived.lock().unwrap().insert(salt.to_vec(), key);
            key
        });
        AesGcm::new_from_slice(&key).unwrap()
    }
}

fn random() -> [u8; 16] {
    std::array::from_fn(|_| fastrand::u8(..))
}
