//! Finds the rows of one certificate, and what is revoked.

use sea_orm_migration::{MigrationName, MigrationTrait, SchemaManager, async_trait, sea_orm::DbErr};

use super::shape::Wanted;

pub(super) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m20261202_000010_certificate"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for index in INDEXES {
            index.make(manager).await?;
        }
        Ok(())
    }
}

/// The table's key begins with the version, so that it finds no id; and what is revoked is looked for every few
/// seconds.
const INDEXES: [Wanted; 2] = [
    Wanted::all("certificate_id", "certificate", &["id"]),
    Wanted::all("certificate_revoked", "certificate", &["revoked"]).only("revoked IS NOT NULL", &["revoked"]),
];
