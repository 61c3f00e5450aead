use std::time::{Instant, SystemTime};

use super::*;
use crate::pki::testing::*;

const ID: &str = SPOKE_ID;

/// A sealed row and the key in it.
async fn sealed(vault: &Vault) -> (CertificateRow, PrivateKeyDer<'static>) {
    let issued = authority().await.issue_spoke_leaf(ID, SystemTime::now()).unwrap();
    let key = issued.identity.key().clone_key();
    (vault.seal(ID, issued.cert, &key, 1_900_000_000).unwrap(), key)
}

#[tokio::test]
async fn what_is_sealed_opens() {
    let vault = vault();
    let (row, key) = sealed(&vault).await;
    assert_eq!(vault.open(&row).unwrap(), key);
    // After a restart: another vault of the same phrase.
    let again = Vault::new(Secret::new("a phrase for tests"), 10).unwrap();
    assert_eq!(again.open(&row).unwrap(), key);
    assert_eq!((row.version, row.validity, row.revoked), (0, 1_900_000_000, None));
    assert_eq!([&row.key_iv, &row.key_tag, &row.key_salt].map(Vec::len), [16; 3]);
    assert_eq!([&row.pass_iv, &row.pass_tag, &row.pass_salt].map(Vec::len), [16; 3]);
    assert_ne!(row.key_iv, row.pass_iv);
    assert_eq!(row.key_salt, row.pass_salt, "one start, one salt");
}

#[tokio::test]
async fn passwords_are_letters_and_digits() {
    let vault = vault();
    let (row, _) = sealed(&vault).await;
    let password = vault.decrypt(&row, &row.pass, &row.pass_salt, &row.pass_iv, &row.pass_tag).unwrap();
    assert!(password.len() >= 32);
    assert!(password.iter().all(u8::is_ascii_alphanumeric));
}

#[tokio::test]
async fn a_wrong_phrase_is_a_sentence() {
    let (row, _) = sealed(&vault()).await;
    for wrong in [
        Vault::new(Secret::new("another phrase"), 10).unwrap(),
        Vault::new(Secret::new("a phrase for tests"), 11).unwrap(),
    ] {
        let error = wrong.open(&row).unwrap_err();
        assert_eq!(error.code(), "E_EVENTFLOW_VAULT");
        let text = error.to_string();
        for part in [ID, "key phrase", "EVENTFLOW_CERT_PASS_ENCRYPTION_KEY"] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains("another phrase"));
    }
}

/// Rows that were moved between an embedded database and a server's, each with the rounds that are its default.
#[tokio::test]
async fn rows_of_a_database_of_the_other_kind_open() {
    let phrase = || Secret::new("a phrase for tests");
    let embedded = Vault::new(phrase(), GENERATED_PHRASE_ITERATIONS).unwrap();
    let served = Vault::new(phrase(), DEFAULT_ITERATIONS).unwrap();
    let (row, key) = sealed(&embedded).await;
    assert_eq!(served.open(&row).unwrap(), key);
    let (row, key) = sealed(&served).await;
    assert_eq!(embedded.open(&row).unwrap(), key);
}

#[tokio::test]
async fn every_way_to_seal_opens_in_that_way_alone() {
    let ciphers = [Cipher::Aes128Gcm, Cipher::Aes192Gcm, Cipher::Aes256Gcm];
    let hashes = [Hash::Sha256, Hash::Sha384, Hash::Sha512];
    let ways = ciphers
        .into_iter()
        .flat_map(|cipher| hashes.into_iter().map(move |hash| Sealing { cipher, hash, iterations: 10 }));
    let vaults: Vec<_> =
        ways.map(|way| (way, Vault::with(Secret::new("one phrase"), way).unwrap())).collect();
    for (way, vault) in &vaults {
        let (row, key) = sealed(vault).await;
        for (other, vault) in &vaults {
            match vault.open(&row) {
                Ok(opened) => assert!(way == other && opened == key, "{way}, {other}"),
                Err(error) => assert!(way != other && error.to_string().contains(&other.to_string())),
            }
        }
    }
    assert_eq!(Sealing::default().to_string(), "aes-256-gcm under a key of PBKDF2-sha512 of 1000000 rounds");
}

#[tokio::test]
async fn damaged_rows_are_refused() {
    let vault = vault();
    let (row, _) = sealed(&vault).await;
    type Column = fn(&mut CertificateRow) -> &mut Vec<u8>;
    let columns: [Column; 8] = [
        |row| &mut row.key,
        |row| &mut row.key_iv,
        |row| &mut row.key_salt,
        |row| &mut row.key_tag,
        |row| &mut row.pass,
        |row| &mut row.pass_iv,
        |row| &mut row.pass_salt,
        |row| &mut row.pass_tag,
    ];
    for column in columns {
        for damage in [(|bytes| bytes[0] ^= 1) as fn(&mut Vec<u8>), |bytes| bytes.truncate(3), Vec::clear] {
            let mut row = row.clone();
            damage(column(&mut row));
            let error = vault.open(&row).unwrap_err();
            assert_eq!(error.code(), "E_EVENTFLOW_VAULT");
        }
    }
    let mut row = row.clone();
    row.cert = "nonsense".to_owned();
    assert_eq!(vault.open(&row).unwrap_err().code(), "E_EVENTFLOW_CERTIFICATE");
}

#[tokio::test]
async fn a_key_of_another_certificate_is_refused() {
    let vault = vault();
    let (mut row, _) = sealed(&vault).await;
    row.cert = sealed(&vault).await.0.cert;
    let error = vault.open(&row).unwrap_err();
    assert_eq!(error.code(), "E_EVENTFLOW_VAULT");
    assert!(error.to_string().contains("doesn't belong to the private key"), "{error}");
}

#[tokio::test]
async fn a_salt_is_derived_once_and_few_are_remembered() {
    let vault = Vault::new(Secret::new("slow"), 100_000).unwrap();
    let begun = Instant::now();
    vault.prepare(b"salt");
    let once = begun.elapsed();
    let begun = Instant::now();
    for _ in 0..20 {
        vault.prepare(b"salt");
    }
    assert!(begun.elapsed() < once * 5, "twenty times cost as much as one");

    let vault = self::vault();
    for salt in 0..1_000_u32 {
        vault.prepare(&salt.to_be_bytes());
    }
    assert!(vault.0.derived.lock().unwrap().len() <= REMEMBERED);
}

#[tokio::test]
async fn openssl_reads_the_inner_layer() {
    let vault = vault();
    let (row, key) = sealed(&vault).await;
    let password = vault.decrypt(&row, &row.pass, &row.pass_salt, &row.pass_iv, &row.pass_tag).unwrap();
    let pem = vault.decrypt(&row, &row.key, &row.key_salt, &row.key_iv, &row.key_tag).unwrap();
    assert!(pem.starts_with(b"-----BEGIN ENCRYPTED PRIVATE KEY-----\n"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key.pem");
    std::fs::write(&file, &*pem).unwrap();
    let pass = format!("pass:{}", std::str::from_utf8(&password).unwrap());
    let arguments = ["pkey", "-in", file.to_str().unwrap(), "-passin", &pass, "-outform", "DER"];
    let Some(output) = openssl(&arguments) else { return };
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.stdout, key.secret_der());
}

#[tokio::test]
async fn what_openssl_encrypts_is_read_within_a_limit_of_rounds() {
    let issued = authority().await.issue_spoke_leaf(ID, SystemTime::now()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key.pem");
    std::fs::write(&file, issued.key.expose()).unwrap();
    let convert = |extra: &[&str]| {
        let arguments =
            [&["pkcs8", "-topk8", "-in", file.to_str().unwrap(), "-passout", "pass:p w"], extra].concat();
        openssl(&arguments).map(|output| output.unwrap().stdout)
    };
    for good in [&["-v2", "des3"][..], &["-v2", "aes-256-cbc", "-iter", "5000"], &["-scrypt"]] {
        let Some(pem) = convert(good) else { return };
        let key = super::pem::decrypt(ID, &pem, b"p w").unwrap();
        assert_eq!(&key, issued.identity.key(), "{good:?}");
    }
    let pem = super::pem::decrypt(ID, &convert(&["-v2", "aes-128-cbc", "-iter", "5000000"]).unwrap(), b"p w");
    assert!(pem.unwrap_err().to_string().contains("rounds"));
    let old = convert(&["-v1", "PBE-SHA1-3DES"]).unwrap();
    let error = super::pem::decrypt(ID, &old, b"p w").unwrap_err();
    assert!(error.to_string().contains("openssl pkcs8 -topk8 -v2 aes-256-cbc"), "{error}");
}

#[test]
fn the_phrase_is_made_once_and_is_the_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key-phrase");
    let phrase = phrase_file(&path).unwrap();
    assert_eq!(phrase.expose().len(), 64);
    assert!(phrase.expose().bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert_eq!(phrase_file(&path).unwrap(), phrase);
    assert_eq!(format!("{phrase:?}"), "Secret(***)");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(phrase_file(&path).unwrap(), phrase);
        assert_eq!(mode(), 0o600);
    }
    std::fs::write(&path, "\n").unwrap();
    assert!(phrase_file(&path).unwrap_err().to_string().contains("empty"));
    assert!(phrase_file(folder.path().join("none/key-phrase")).is_err());
}
