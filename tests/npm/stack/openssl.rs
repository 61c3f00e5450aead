//! Certificates and keys by the `openssl` command, as the npm stack makes them.

use std::{
    ffi::OsString,
    fs,
    io::Write,
    os::unix::ffi::OsStringExt,
    path::Path,
    process::{Command, Stdio},
};

use tempfile::TempDir;

use super::certificates::Credentials;

/// A certificate and its key, both PEM; the key is PKCS#8, encrypted under the password.
#[derive(Clone)]
pub struct Made {
    pub cert: String,
    pub key: String,
    pub pass: Vec<u8>,
}

/// What stands above a new certificate.
pub struct Issuer<'a> {
    /// Leaf first, if there are more in it: only the first counts.
    pub cert: &'a str,
    pub key: &'a str,
    pub pass: &'a [u8],
}

/// How to say the algorithm of a new key to `openssl req`.
pub const ED25519: &[&str] = &["-newkey", "ed25519"];

/// The self-signed root.
pub fn root(id: &str, days: u32, algorithm: &[&str]) -> Made {
    let folder = tempfile::tempdir().unwrap();
    let pass = password();
    write(
        &folder,
        "conf",
        &request(&[
            "basicConstraints=critical,CA:true,pathlen:1",
            AUTHORITY,
            SKI,
            "authorityKeyIdentifier=keyid",
        ]),
    );
    let mut openssl = openssl(&folder);
    openssl.args([
        "req",
        "-x509",
        "-config",
        "conf",
        "-extensions",
        "extensions",
        "-keyout",
        "key",
        "-out",
        "cert",
    ]);
    openssl.args(algorithm).args(["-days", &days.to_string(), "-subj", &format!("/UID={id}")]);
    run(openssl.arg("-passout").arg(pass_argument(&pass)));
    Made { cert: read(&folder, "cert"), key: read(&folder, "key"), pass }
}

/// The intermediate of a configured name.
pub fn intermediate(issuer: &Issuer<'_>, name: &str, days: u32, algorithm: &[&str]) -> Made {
    let constraints = format!(
        "nameConstraints=critical,permitted;DNS:.{},permitted;IP:127.0.0.1/255.255.255.255",
        name.to_lowercase()
    );
    let extensions = ["basicConstraints=critical,CA:true,pathlen:0", AUTHORITY, SKI, AKI, &constraints];
    issue(issuer, name, days, algorithm, &extensions)
}

/// The leaf of a party.
pub fn leaf(issuer: &Issuer<'_>, id: &str, days: u32, algorithm: &[&str]) -> Made {
    let names = format!("subjectAltName=critical,DNS:{},IP:127.0.0.1", id.to_lowercase());
    let usage = "keyUsage=critical,digitalSignature,keyEncipherment";
    let extensions =
        ["basicConstraints=CA:false", usage, "extendedKeyUsage=serverAuth,clientAuth", SKI, AKI, &names];
    issue(issuer, id, days, algorithm, &extensions)
}

/// The key in the clear (PKCS#8 PEM).
pub fn decrypted(key: &str, pass: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "key", key);
    let mut openssl = openssl(&folder);
    run(openssl.args(["pkey", "-in", "key", "-out", "plain", "-passin"]).arg(pass_argument(pass)));
    read(&folder, "plain")
}

/// What `openssl x509 -text` says of a certificate.
pub fn described(cert: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "cert", cert);
    let output = openssl(&folder).args(["x509", "-in", "cert", "-noout", "-text"]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Whether the chain holds.
pub fn verifies(root: &str, intermediate: &str, leaf: &str) -> bool {
    let folder = tempfile::tempdir().unwrap();
    for (name, cert) in [("root", root), ("intermediate", intermediate), ("leaf", leaf)] {
        write(&folder, name, cert);
    }
    let mut openssl = openssl(&folder);
    openssl.args(["verify", "-CAfile", "root", "-untrusted", "intermediate", "leaf"]);
    openssl.output().is_ok_and(|output| output.status.success())
}

const AUTHORITY: &str = "keyUsage=critical,keyCertSign,cRLSign";
const SKI: &str = "subjectKeyIdentifier=hash";
const AKI: &str = "authorityKeyIdentifier=keyid:always,issuer:always";

fn issue(issuer: &Issuer<'_>, id: &str, days: u32, algorithm: &[&str], extensions: &[&str]) -> Made {
    let folder = tempfile::tempdir().unwrap();
    let pass = password();
    write(&folder, "conf", &request(&[]));
    write(&folder, "extensions", &extensions.join("\n"));
    write(&folder, "ca", issuer.cert);
    write(&folder, "ca.key", issuer.key);
    let mut request = openssl(&folder);
    request.args(["req", "-new", "-config", "conf", "-keyout", "key", "-out", "csr"]).args(algorithm);
    run(request.args(["-subj", &format!("/UID={id}"), "-passout"]).arg(pass_argument(&pass)));
    let mut sign = openssl(&folder);
    sign.args([
        "x509",
        "-req",
        "-in",
        "csr",
        "-CA",
        "ca",
        "-CAkey",
        "ca.key",
        "-CAcreateserial",
        "-out",
        "cert",
    ]);
    sign.args(["-extfile", "extensions", "-days", &days.to_string(), "-passin"]);
    run(sign.arg(pass_argument(issuer.pass)));
    Made { cert: read(&folder, "cert"), key: read(&folder, "key"), pass }
}

fn request(extensions: &[&str]) -> String {
    format!(
        "[req]\ndistinguished_name=name\nprompt=no\nutf8=yes\n[name]\n[extensions]\n{}\n",
        extensions.join("\n")
    )
}

/// Arbitrary characters up to U+00FF, control characters and newlines among them, in UTF-8.
fn password() -> Vec<u8> {
    (0..32).map(|_| char::from(fastrand::u8(1..))).collect::<String>().into_bytes()
}

fn pass_argument(pass: &[u8]) -> OsString {
    OsString::from_vec([b"pass:", pass].concat())
}

fn openssl(folder: &TempDir) -> Command {
    let mut command = Command::new("openssl");
    command.current_dir(folder.path()).stdin(Stdio::null());
    command
}

fn run(command: &mut Command) {
    let output = command.output().expect("openssl is here");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn write(folder: &TempDir, name: &str, text: &str) {
    fs::File::create(folder.path().join(name)).unwrap().write_all(text.as_bytes()).unwrap();
}

fn read(folder: &TempDir, name: &str) -> String {
    let path: &Path = &folder.path().join(name);
    fs::read_to_string(path).unwrap()
}

/// `openssl s_client`, which prints what the server sends: TLS as node has it.
pub fn client(
    folder: &TempDir,
    address: &str,
    server_name: &str,
    credentials: &Credentials,
) -> tokio::process::Command {
    write(folder, "leaf", &credentials.leaf_pem);
    write(folder, "intermediate", &credentials.intermediate_pem);
    write(folder, "key", &credentials.key_pem);
    write(folder, "root", &credentials.root_pem);
    let mut openssl = openssl(folder);
    openssl.args(["s_client", "-quiet", "-no_ign_eof", "-connect", address, "-servername", server_name]);
    openssl.args(["-cert", "leaf", "-cert_chain", "intermediate", "-key", "key", "-CAfile", "root"]);
    openssl.args(["-verify_return_error", "-verify_hostname", server_name]);
    openssl.into()
}
