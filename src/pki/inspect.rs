//! What a row of the certificate table is, for people.

use super::{CertificateRow, PkiError, x509};

/// The place of a certificate in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateKind {
    /// Stands above all.
    Root,
    /// Stands above the leaves of one configured name.
    Intermediate,
    /// A party's own.
    Leaf,
}

impl CertificateKind {
    /// In a word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Intermediate => "intermediate",
            Self::Leaf => "leaf",
        }
    }
}

/// What a certificate says of itself. Times are seconds since 1970 (UTC).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFacts {
    /// Its place in the tree.
    pub kind: CertificateKind,
    /// From when on it holds.
    pub not_before: i64,
    /// Until when.
    pub not_after: i64,
}

impl CertificateFacts {
    /// Reads a row's certificate.
    ///
    /// # Errors
    /// [`PkiError::Certificate`] if it can't be read.
    pub fn of(row: &CertificateRow) -> Result<Self, PkiError> {
        let chain = x509::pem_chain(&row.cert, &row.id)?;
        let certificate = x509::parse(&chain[0], &row.id)?;
        let (not_before, not_after) = x509::lifetime(&certificate);
        let kind = match certificate.is_ca() {
            true if certificate.issuer().as_raw() == certificate.subject().as_raw() => CertificateKind::Root,
            true => CertificateKind::Intermediate,
            false => CertificateKind::Leaf,
        };
        Ok(Self { kind, not_before, not_after })
    }
}
