//! A root, a server and a client, for the peers with mutual TLS. P-256, as Eventflow's are.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

use crate::Failure;

/// PEM texts, and the files that hold them.
pub struct Certificates {
    pub root: String,
    pub client: String,
    pub client_key: String,
    pub root_file: PathBuf,
    pub server_file: PathBuf,
    pub server_key_file: PathBuf,
}

impl Certificates {
    pub fn make(folder: &Path) -> Result<Self, Failure> {
        let mut root = CertificateParams::new(Vec::new())?;
        root.distinguished_name.push(DnType::CommonName, "root of the bench");
        root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = CertifiedIssuer::self_signed(root, KeyPair::generate()?)?;
        let leaf = |name: &str| {
            let key = KeyPair::generate()?;
            let names = vec![name.to_owned(), "127.0.0.1".to_owned()];
            let mut leaf = CertificateParams::new(names)?;
            // One that is called as its issuer looks signed by itself to OpenSSL.
            leaf.distinguished_name.push(DnType::CommonName, name);
            let certificate = leaf.signed_by(&key, &root)?;
            Ok::<_, Failure>((certificate.pem(), key.serialize_pem()))
        };
        let ((server, server_key), (client, client_key)) = (leaf("localhost")?, leaf("client")?);
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text)?;
            Ok::<_, Failure>(path)
        };
        Ok(Self {
            root_file: write("root.pem", &root.pem())?,
            server_file: write("server.pem", &server)?,
            server_key_file: write("server.key", &server_key)?,
            root: root.pem(),
            client,
            client_key,
        })
    }
}
