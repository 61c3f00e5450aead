//! The leases of hubs, on servers alone: until when by the database's clock, in milliseconds since 1970, and where the hub
//! runs that holds it.

use sea_orm_migration::{MigrationName, MigrationTrait, SchemaManager, async_trait, sea_orm::DbErr};

use super::shape::Shape;

pub(super) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m20261204_000002_lease"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let shape = Shape::of(manager);
        if shape.0.is_sqlite() {
            return Ok(());
        }
        let columns = [
            shape.short("hub_id").primary_key().take(),
            shape.number("epoch"),
            shape.text("host"),
            shape.text("folder"),
            shape.number("until_ms"),
        ];
        manager.create_table(shape.table("v1_hub_lease", columns)).await
    }
}
