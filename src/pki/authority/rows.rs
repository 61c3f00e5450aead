//! What the authority needs of a database.

use std::future::Future;

/// A row of npm Eventflow's table `certificate`. Times are seconds since 1970 (UTC).
#[derive(Clone, PartialEq, Eq)]
pub struct CertificateRow {
    /// 0 is the current one; a retired one gets the number of rows that the id had.
    pub version: u32,
    /// The UID of the certificate's subject.
    pub id: String,
    /// The certificate, PEM.
    pub cert: String,
    /// The encrypted PKCS#8 PEM, encrypted (AES-256-GCM) once more.
    pub key: Vec<u8>,
    /// Its 16-byte IV.
    pub key_iv: Vec<u8>,
    /// The salt of its encryption key.
    pub key_salt: Vec<u8>,
    /// Its 16-byte tag.
    pub key_tag: Vec<u8>,
    /// The password of the PKCS#8, encrypted.
    pub pass: Vec<u8>,
    /// Its 16-byte IV.
    pub pass_iv: Vec<u8>,
    /// The salt of its encryption key.
    pub pass_salt: Vec<u8>,
    /// Its 16-byte tag.
    pub pass_tag: Vec<u8>,
    /// When the certificate ends to hold.
    pub validity: i64,
    /// When it was revoked.
    pub revoked: Option<i64>,
}

impl CertificateRow {
    /// The current row of a certificate whose private key isn't kept: its bearer made it, or has the only copy.
    #[must_use]
    pub fn keyless(id: &str, cert: String, validity: i64) -> Self {
        let nothing = Vec::new;
        Self {
            version: 0,
            id: id.to_owned(),
            cert,
            key: nothing(),
            key_iv: nothing(),
            key_salt: nothing(),
            key_tag: nothing(),
            pass: nothing(),
            pass_iv: nothing(),
            pass_salt: nothing(),
            pass_tag: nothing(),
            validity,
            revoked: None,
        }
    }

    /// Whether its private key is kept here.
    #[must_use]
    pub fn has_key(&self) -> bool {
        !self.key.is_empty()
    }
}

impl std::fmt::Debug for CertificateRow {
    /// Without key and password, encrypted though they are.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CertificateRow")
            .field("id", &self.id)
            .field("version", &self.version)
            .field("validity", &self.validity)
            .field("revoked", &self.revoked)
            .finish_non_exhaustive()
    }
}

/// The certificate table. Several hubs may use one at once.
pub trait CertificateRows: Sync {
    /// What the database says when it fails.
    type Error: std::error::Error + Send + Sync + 'static;

    /// The row of this id with version 0 that isn't revoked.
    fn current(&self, id: &str) -> impl Future<Output = Result<Option<CertificateRow>, Self::Error>> + Send;

    /// Inserts a row; false: one of this id and version is there already, and nothing was written.
    fn insert(&self, row: CertificateRow) -> impl Future<Output = Result<bool, Self::Error>> + Send;

    /// Gives `row` the number of rows that its id has as its version, which frees version 0; `revoked` stays
    /// as it is. Nothing happens if it is no longer the current one (its certificate is another).
    fn retire(&self, row: &CertificateRow) -> impl Future<Output = Result<(), Self::Error>> + Send;
}
