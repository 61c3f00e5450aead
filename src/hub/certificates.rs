//! The certificate table as the authority sees it.

use crate::{
    pki::{CertificateRow, CertificateRows},
    store::{self, Store, StoreError},
};

/// The store's table behind the authority's trait.
#[derive(Debug)]
pub struct Rows(pub Store);

impl CertificateRows for Rows {
    type Error = StoreError;

    async fn current(&self, id: &str) -> Result<Option<CertificateRow>, StoreError> {
        Ok(self.0.certificate_current(id).await?.map(from_store))
    }

    async fn insert(&self, row: CertificateRow) -> Result<bool, StoreError> {
        self.0.certificate_insert(to_store(row)).await
    }

    async fn retire(&self, row: &CertificateRow) -> Result<(), StoreError> {
        self.0.certificate_retire(&row.id).await
    }
}

fn from_store(row: store::CertificateRow) -> CertificateRow {
    let store::CertificateRow {
        version,
        id,
        cert,
        key,
        key_iv,
        key_salt,
        key_tag,
        pass,
        pass_iv,
        pass_salt,
        pass_tag,
        validity,
        revoked,
    } = row;
    CertificateRow {
        version,
        id,
        cert,
        key,
        key_iv,
        key_salt,
        key_tag,
        pass,
        pass_iv,
        pass_salt,
        pass_tag,
        validity,
        revoked,
    }
}

fn to_store(row: CertificateRow) -> store::CertificateRow {
    let CertificateRow {
        version,
        id,
        cert,
        key,
        key_iv,
        key_salt,
        key_tag,
        pass,
        pass_iv,
        pass_salt,
        pass_tag,
        validity,
        revoked,
    } = row;
    store::CertificateRow {
        version,
        id,
        cert,
        key,
        key_iv,
        key_salt,
        key_tag,
        pass,
        pass_iv,
        pass_salt,
        pass_tag,
        validity,
        revoked,
    }
}
