//! Private keys of every kind that is served.

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use super::npm::Npm;
use crate::pki::{authority::ROOT_ID, key::new_key, random};

pub(crate) const KINDS: [&str; 6] = ["Ed25519", "Ed448", "P-256", "P-384", "P-521", "RSA"];

/// The head of an Ed448 key (RFC 8410): a PKCS#8 of version 1 up to the seed.
pub(crate) const ED448_HEAD: [u8; 16] =
    [0x30, 0x47, 2, 1, 0, 0x30, 5, 6, 3, 0x2B, 0x65, 0x71, 0x04, 0x3B, 0x04, 0x39];

pub(crate) fn key(kind: &str) -> PrivateKeyDer<'static> {
    let rcgen = |algorithm| rcgen::KeyPair::generate_for(algorithm).unwrap().serialize_der();
    let der = match kind {
        "Ed25519" => return new_key().unwrap(),
        "Ed448" => ed448(&random::<57>().unwrap()),
        "P-256" => rcgen(&rcgen::PKCS_ECDSA_P256_SHA256),
        "P-384" => rcgen(&rcgen::PKCS_ECDSA_P384_SHA384),
        "P-521" => p521(),
        // Making one takes seconds.
        "RSA" => {
            let npm = Npm::read("mixed-rsa-p384");
            return npm.vault.open(npm.row(ROOT_ID)).unwrap();
        }
        other => panic!("no kind of key: {other}"),
    };
    PrivatePkcs8KeyDer::from(der).into()
}

pub(crate) fn ed448(seed: &[u8]) -> Vec<u8> {
    [&ED448_HEAD, seed].concat()
}

fn p521() -> Vec<u8> {
    use p521::pkcs8::EncodePrivateKey;
    let mut number = random::<66>().unwrap();
    // Below the curve's order.
    number[0] = 0;
    p521::SecretKey::from_slice(&number).unwrap().to_pkcs8_der().unwrap().as_bytes().to_vec()
}
