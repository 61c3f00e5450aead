//! The mark that a hub's transaction leaves, by which it is known again if the connection is lost in its commit.

use sea_orm_migration::{
    MigrationName, MigrationTrait, SchemaManager, async_trait,
    sea_orm::DbErr,
    sea_query::{ColumnDef, Table},
};

pub(super) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m20261204_000001_fence"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        if manager.has_column("v1_hub_epoch", "mark").await? {
            return Ok(());
        }
        let mark = ColumnDef::new("mark").big_integer().null().take();
        manager.alter_table(Table::alter().table("v1_hub_epoch").add_column(mark).take()).await
    }
}
