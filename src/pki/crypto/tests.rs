use std::path::{Path, PathBuf};

use pkcs8::der::{Encode, asn1::BitStringRef};
use rustls::{
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    sign::SigningKey,
};
use tempfile::TempDir;

use super::*;
use crate::pki::testing::{keys, openssl};

fn load(der: Vec<u8>) -> Result<Arc<dyn SigningKey>, rustls::Error> {
    provider().key_provider.load_private_key(PrivateKeyDer::from(PrivatePkcs8KeyDer::from(der)))
}

fn sign(key: &Arc<dyn SigningKey>, scheme: SignatureScheme, message: &[u8]) -> Vec<u8> {
    key.choose_scheme(&[scheme]).unwrap().sign(message).unwrap()
}

/// The bits of a key's public half, at the end of its SubjectPublicKeyInfo.
fn public(key: &Arc<dyn SigningKey>, len: usize) -> Vec<u8> {
    let info = key.public_key().unwrap();
    info[info.len() - len..].to_vec()
}

fn accepts(public: &[u8], message: &[u8], signature: &[u8]) -> bool {
    ed448::VERIFICATION.verify_signature(public, message, signature).is_ok()
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// An Ed448 key, its public half, a message and its signature.
fn signed() -> (Arc<dyn SigningKey>, Vec<u8>, &'static [u8], Vec<u8>) {
    let key = load(keys::ed448(&[7; 57])).unwrap();
    let (public, message) = (public(&key, 57), b"a message".as_slice());
    let signature = sign(&key, SignatureScheme::ED448, message);
    assert!(accepts(&public, message, &signature));
    (key, public, message, signature)
}

#[test]
fn ed448_has_the_vectors_of_rfc_8032() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/rfc8032-ed448.txt");
    let text = std::fs::read_to_string(file).unwrap();
    let lines: Vec<_> = text.lines().skip(1).map(hex).collect();
    assert_eq!(lines.len(), 5 * 4);
    for vector in lines.chunks(4) {
        let [secret, expected, message, signature] = vector else { panic!("four lines each") };
        let key = load(keys::ed448(secret)).unwrap();
        assert_eq!(&public(&key, 57), expected);
        assert_eq!(&sign(&key, SignatureScheme::ED448, message), signature);
        assert!(accepts(expected, message, signature));
    }
}

#[test]
fn an_ed448_signature_has_one_form() {
    /// The order of the base point, little-endian (RFC 8032, 5.2).
    const ORDER: &str = "f34458ab92c27823558fc58d72c26c219036d6ae49db4ec4e923ca7c\
                         ffffffffffffffffffffffffffffffffffffffffffffffffffffff3f00";
    let (_, public, message, signature) = signed();
    // S + L is the same number modulo L: it would verify if S weren't compared with L.
    let mut malleable = signature.clone();
    for _ in 0..3 {
        let mut carry = 0_u16;
        for (byte, add) in malleable[57..].iter_mut().zip(hex(ORDER)) {
            let sum = u16::from(*byte) + u16::from(add) + carry;
            (*byte, carry) = (sum.to_le_bytes()[0], sum >> 8);
        }
        assert!(!accepts(&public, message, &malleable));
    }
    // S itself, and S = 0 and L.
    for number in [hex(ORDER), vec![0; 57], vec![0xFF; 57]] {
        let forged = [&signature[..57], &number].concat();
        assert!(!accepts(&public, message, &forged));
    }
    // The last byte of S, and a point that is no canonical one.
    for (at, bit) in [(113, 0x01), (113, 0x80), (56, 0x01), (56, 0x40)] {
        let mut other = signature.clone();
        other[at] ^= bit;
        assert!(!accepts(&public, message, &other), "byte {at}");
    }
    let not_canonical = [&[0xFF; 56][..], &[0], &signature[57..]].concat();
    assert!(!accepts(&public, message, &not_canonical));
}

#[test]
fn a_damaged_ed448_signature_is_refused() {
    let (_, public, message, signature) = signed();
    for len in (0..signature.len()).chain([115, 228]) {
        let mut cut = signature.clone();
        cut.resize(len, 0);
        assert!(!accepts(&public, message, &cut), "{len} bytes");
    }
    for bit in (0..signature.len() * 8).step_by(13) {
        let mut flipped = signature.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(!accepts(&public, message, &flipped), "bit {bit}");
    }
    assert!(!accepts(&public, b"another message", &signature));
    for key in [&public[..56], &[], &[0xFF; 57]] {
        assert!(!accepts(key, message, &signature));
    }
    let other = load(keys::ed448(&[8; 57])).unwrap();
    assert!(!accepts(&self::public(&other, 57), message, &signature));
}

#[test]
fn an_ed448_key_that_is_damaged_is_refused_and_none_is_shown() {
    let whole = keys::ed448(&[7; 57]);
    assert_eq!(format!("{:?}", load(whole.clone()).unwrap()), "Ed448");
    // A seed of 56 bytes, well-formed otherwise.
    let mut short = whole[..whole.len() - 1].to_vec();
    for at in [1, 13, 15] {
        short[at] -= 1;
    }
    assert!(load(short).unwrap_err().to_string().contains("57 bytes"));
    for len in 0..whole.len() {
        assert!(load(whole[..len].to_vec()).is_err(), "{len} bytes");
    }
    // With a public half (RFC 5958): its own, and another.
    let own = public(&load(whole.clone()).unwrap(), 57);
    for (half, good) in [(own.clone(), true), (vec![9; 57], false)] {
        let bits = BitStringRef::from_bytes(&half).unwrap().to_der().unwrap();
        let mut der = [&[0x30, 0x81, 0x83, 2, 1, 1], &whole[5..], &[0x81, 0x3A], &bits[2..]].concat();
        let len = u8::try_from(der.len() - 3).unwrap();
        der[2] = len;
        assert_eq!(load(der).is_ok(), good);
    }
}

#[test]
fn every_kind_of_key_signs_what_is_verified() {
    let schemes = provider().signature_verification_algorithms.supported_schemes();
    for (kind, scheme) in [
        ("Ed25519", SignatureScheme::ED25519),
        ("Ed448", SignatureScheme::ED448),
        ("P-256", SignatureScheme::ECDSA_NISTP256_SHA256),
        ("P-384", SignatureScheme::ECDSA_NISTP384_SHA384),
        ("P-521", SignatureScheme::ECDSA_NISTP521_SHA512),
        ("RSA", SignatureScheme::RSA_PSS_SHA512),
    ] {
        assert!(schemes.contains(&scheme), "{kind}");
        let key = provider().key_provider.load_private_key(keys::key(kind)).unwrap();
        assert_eq!(key.choose_scheme(&schemes).map(|signer| signer.scheme()), Some(scheme), "{kind}");
        assert!(key.choose_scheme(&[]).is_none());
        assert!(key.public_key().is_some());
    }
}

/// A folder for openssl to work in.
struct Desk(TempDir);

impl Desk {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    /// Runs a command in which `@` stands for the folder; its output, none where there is no openssl.
    #[track_caller]
    fn run(&self, command: &str) -> Option<Vec<u8>> {
        let folder = format!("{}/", self.0.path().display());
        let arguments: Vec<_> = command.split(' ').map(|word| word.replace('@', &folder)).collect();
        let output = openssl(&arguments.iter().map(String::as_str).collect::<Vec<_>>())?.unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        Some(output.stdout)
    }
}

#[test]
fn openssl_and_this_agree_on_ed448() {
    let desk = Desk::new();
    desk.write("message", b"one message");
    let Some(theirs) = desk.run("genpkey -algorithm ED448 -outform DER") else { return };
    // With their key: both sign the same, since Ed448 takes no random numbers.
    desk.write("key", &theirs);
    let key = load(theirs).unwrap();
    let signature = desk.run("pkeyutl -sign -inkey @key -keyform DER -rawin -in @message").unwrap();
    assert_eq!(sign(&key, SignatureScheme::ED448, b"one message"), signature);
    assert!(accepts(&public(&key, 57), b"one message", &signature));
    // With ours: they derive the same public key, and verify.
    let ours = keys::ed448(&[3; 57]);
    desk.write("key", &ours);
    let key = load(ours).unwrap();
    desk.write("signature", &sign(&key, SignatureScheme::ED448, b"one message"));
    desk.run("pkeyutl -verify -inkey @key -keyform DER -rawin -in @message -sigfile @signature").unwrap();
    let theirs = desk.run("pkey -in @key -inform DER -pubout -outform DER").unwrap();
    assert_eq!(key.public_key().unwrap().as_ref(), theirs);
}

#[test]
fn openssl_and_this_agree_on_ecdsa() {
    let desk = Desk::new();
    desk.write("message", b"one message");
    let cases = [
        ("P-256", 65, "sha512", ecdsa::P256_SHA512),
        ("P-384", 97, "sha512", ecdsa::P384_SHA512),
        ("P-521", 133, "sha256", ecdsa::P521_SHA256),
        ("P-521", 133, "sha384", ecdsa::P521_SHA384),
        ("P-521", 133, "sha512", ecdsa::P521_SHA512),
    ];
    for (curve, len, hash, verification) in cases {
        let generate = format!("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:{curve} -out @pem");
        if desk.run(&generate).is_none() {
            return;
        }
        let key = desk.run("pkcs8 -topk8 -nocrypt -in @pem -outform DER").unwrap();
        desk.write("key", &key);
        let signature = desk.run(&format!("dgst -{hash} -sign @key -keyform DER @message")).unwrap();
        let key = load(key).unwrap();
        let public = public(&key, len);
        let verify = |message: &[u8], signature: &[u8]| {
            verification.verify_signature(&public, message, signature).is_ok()
        };
        assert!(verify(b"one message", &signature), "{curve} {hash}");
        assert!(!verify(b"another", &signature));
        for bit in (0..signature.len() * 8).step_by(31) {
            let mut flipped = signature.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(!verify(b"one message", &flipped), "{curve} {hash}, bit {bit}");
        }
        assert!(!verify(b"one message", &signature[..signature.len() - 1]));
        assert!(!verify(b"one message", &[]));
        if curve == "P-521" {
            assert_eq!(format!("{key:?}"), "ECDSA P-521");
            desk.write("signature", &sign(&key, SignatureScheme::ECDSA_NISTP521_SHA512, b"one message"));
            desk.run("dgst -sha512 -prverify @key -keyform DER -signature @signature @message").unwrap();
        }
    }
}
