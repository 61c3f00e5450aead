//! Finds the rows of one certificate, and what is revoked.

use sea_orm_migration::{
    MigrationName, MigrationTrait, SchemaManager, async_trait,
    sea_orm::DbErr,
    sea_query::{ConditionalStatement, Expr, ExprTrait, Index},
};

/// The table's key begins with the version, so that it finds no id; and what is revoked is looked for every few
/// seconds.
pub(super) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m20261202_000010_certificate"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let by_id =
            Index::create().name("certificate_id").table("certificate").col("id").if_not_exists().take();
        let revoked = Index::create()
            .name("certificate_revoked")
            .table("certificate")
            .col("revoked")
            .and_where(Expr::col("revoked").is_not_null())
            .if_not_exists()
            .take();
        manager.create_index(by_id).await?;
        manager.create_index(revoked).await
    }
}
