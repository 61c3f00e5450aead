//! From where a binding is offered the orphans of its domains, if they differ: the policies that said so may change, and
//! what is offered stays so.

use sea_orm_migration::{
    MigrationName, MigrationTrait, SchemaManager, async_trait,
    sea_orm::DbErr,
    sea_query::{ColumnDef, Index, Table},
};

pub(super) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m20261203_000003_starts"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let starts = Table::create()
            .table("v1_binding_start")
            .if_not_exists()
            .col(ColumnDef::new("binding_id").big_integer().not_null())
            .col(ColumnDef::new("place").integer().not_null())
            .col(ColumnDef::new("domain").string_len(64).not_null())
            .col(ColumnDef::new("start_seq").big_integer().not_null())
            .primary_key(Index::create().col("binding_id").col("place"))
            .take();
        manager.create_table(starts).await
    }
}
