//! How keys rest, in npm's words and in ours.

use super::{KeyCipher, KeyHash, load};

fn variables(given: &[(&str, &str)]) -> Vec<(String, String)> {
    given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn settings(given: &[(&str, &str)]) -> super::CertificateSettings {
    load(None, variables(given), []).unwrap().config.certificates
}

#[test]
fn npms_variables_choose_cipher_and_hash() {
    let npms = settings(&[
        ("EVENTFLOW_CERT_PASS_CIPHER", "AES-128-GCM"),
        ("EVENTFLOW_CERT_PASS_PBKDF2_HASH", "sha256"),
        ("EVENTFLOW_CERT_PASS_PBKDF2_BYTES", "16"),
    ]);
    assert_eq!((npms.cipher, npms.hash), (KeyCipher::Aes128Gcm, KeyHash::Sha256));
    let defaults = settings(&[
        ("EVENTFLOW_HUB_CERT_PASS_CIPHER", "aes-256-gcm"),
        ("EVENTFLOW_HUB_CERT_PASS_PBKDF2_HASH", "SHA512"),
        ("EVENTFLOW_HUB_CERT_PASS_PBKDF2_BYTES", "32"),
    ]);
    assert_eq!(defaults, super::CertificateSettings::default());
    let ours = settings(&[
        ("EVENTFLOW_CERT_PASS_CIPHER", "aes-256-gcm"),
        ("EVENTFLOW_CERTIFICATES_CIPHER", "aes-192-gcm"),
    ]);
    assert_eq!(ours.cipher, KeyCipher::Aes192Gcm, "our own name holds");
}

#[test]
fn what_no_row_can_be_sealed_with_is_refused() {
    let cases = [
        ("EVENTFLOW_CERT_PASS_CIPHER", "aes-128-cbc", "must be one of aes-128-gcm, aes-192-gcm, aes-256-gcm"),
        ("EVENTFLOW_CERT_PASS_PBKDF2_HASH", "md5", "must be one of sha256, sha384, sha512"),
        ("EVENTFLOW_CERT_PASS_PBKDF2_BYTES", "24", "\"24\": aes-256-gcm takes a key of 32 bytes: unset it"),
        ("EVENTFLOW_HUB_CERT_PASS_PBKDF2_BYTES", "many", "aes-256-gcm takes a key of 32 bytes"),
    ];
    for (name, value, sentence) in cases {
        let problems = load(None, variables(&[(name, value)]), []).unwrap_err().problems;
        assert_eq!(problems.len(), 1, "{problems:?}");
        let message = &problems[0].message;
        assert!(message.starts_with(name) && message.contains(sentence), "{message}");
    }
}
