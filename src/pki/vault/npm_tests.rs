//! Rows that npm Eventflow wrote, and what it makes of ours.

use std::{io, process::Command, thread};

use super::*;
use crate::pki::testing::{npm::Npm, *};

#[test]
fn npms_rows_open_with_the_phrase_alone() {
    let (npm, vault) = (Npm::read("ed448"), npm::unprepared());
    // One row in full; the rest of this module takes the rounds as done.
    let row = npm.row(npm::SPOKE);
    thread::scope(|scope| {
        scope.spawn(|| vault.prepare(&row.pass_salt));
        vault.prepare(&row.key_salt);
    });
    let known = npm::derived();
    for ((_, salt), key) in vault.0.derived.lock().unwrap().iter() {
        let (_, other) = known.iter().find(|(known, _)| known == salt).unwrap();
        assert_eq!(**key, *other, "another program derives the same");
    }
    assert_eq!(vault.open(row).unwrap(), npm.vault.open(row).unwrap());
}

#[test]
fn npms_rows_of_every_kind_open() {
    for kind in npm::KINDS {
        let npm = Npm::read(kind);
        for row in &npm.rows {
            assert_eq!([&row.key_iv, &row.key_tag, &row.pass_iv, &row.pass_tag].map(Vec::len), [16; 4]);
            // Checks that it is the certificate's.
            npm.vault.open(row).unwrap();
            let pem = npm.vault.decrypt(row, &row.key, &row.key_salt, &row.key_iv, &row.key_tag).unwrap();
            let (_, der) = pkcs8::der::pem::decode_vec(&pem).unwrap();
            // des-ede3-cbc (1.2.840.113549.3.7): what `openssl req` encrypts with if it isn't told.
            let tripled = [6, 8, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 3, 7];
            assert!(der.windows(tripled.len()).any(|window| window == tripled), "{kind}, {}", row.id);
        }
    }
}

#[test]
fn a_wrong_phrase_for_npms_rows_is_a_sentence() {
    let npm = Npm::read("ed25519");
    let vault = Vault::new(Secret::new("not it"), 10).unwrap();
    let text = vault.open(&npm.rows[0]).unwrap_err().to_string();
    for part in ["key phrase", "PBKDF2-sha512 of 10 rounds", "EVENTFLOW_CERT_PASS_ENCRYPTION_KEY"] {
        assert!(text.contains(part), "{text}");
    }
}

/// What npm does with a row: derive, decrypt, and open the key with the password; in node, with its own crypto.
const NODE: &str = "
const {createDecipheriv, createPrivateKey, pbkdf2Sync, X509Certificate} = require('crypto')
const row = JSON.parse(require('fs').readFileSync(0, 'utf8'))
const bytes = (name) => Buffer.from(row[name], 'hex')
function open(name) {
  const key = pbkdf2Sync('a phrase for npm', bytes(name + '_salt'), 1e6, 32, 'sha512')
  const cipher = createDecipheriv('aes-256-gcm', key, bytes(name + '_iv'))
  cipher.setAuthTag(bytes(name + '_tag'))
  return Buffer.concat([cipher.update(bytes(name)), cipher.final()]).toString('utf8')
}
const passphrase = open('pass'), key = open('key')
if (!/^[A-Za-z0-9]{32,}$/.test(passphrase)) throw new Error('a shell would change the password')
if (!key.startsWith('-----BEGIN ENCRYPTED PRIVATE KEY-----')) throw new Error('not encrypted')
const opened = createPrivateKey({key, passphrase})
if (!new X509Certificate(row.cert).checkPrivateKey(opened)) throw new Error('of another certificate')
process.stdout.write(opened.asymmetricKeyType)
";

#[tokio::test]
async fn node_opens_what_is_sealed_here() {
    let vault = Vault::new(Secret::new("a phrase for npm"), DEFAULT_ITERATIONS).unwrap();
    let issued = authority().await.issue_spoke_leaf(SPOKE_ID, std::time::SystemTime::now()).unwrap();
    let row = vault.seal(SPOKE_ID, issued.cert, issued.identity.key(), 1_900_000_000).unwrap();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let json = serde_json::json!({
        "cert": row.cert,
        "key": hex(&row.key), "key_iv": hex(&row.key_iv), "key_tag": hex(&row.key_tag), "key_salt": hex(&row.key_salt),
        "pass": hex(&row.pass), "pass_iv": hex(&row.pass_iv), "pass_tag": hex(&row.pass_tag),
        "pass_salt": hex(&row.pass_salt),
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("row.json");
    std::fs::write(&file, json.to_string()).unwrap();
    let input = std::fs::File::open(&file).unwrap();
    let output = match Command::new("node").args(["-e", NODE]).stdin(input).output() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            eprintln!("skipped: no `node` command on this machine");
            return;
        }
        output => output.unwrap(),
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.stdout, b"ed25519");
}
