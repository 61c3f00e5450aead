//! Which hub goes on with the work of one whose lease is over, on servers alone.

use sea_orm_migration::{
    MigrationName, MigrationTrait, SchemaManager, async_trait, sea_orm::DbErr, sea_query::Table,
};

use super::shape::Shape;

pub(super) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m20261205_000001_adoption"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let shape = Shape::of(manager);
        if shape.0.is_sqlite() || manager.has_column("v1_hub_lease", "adopted_by").await? {
            return Ok(());
        }
        let mut by = shape.short_or_null("adopted_by");
        manager.alter_table(Table::alter().table("v1_hub_lease").add_column(&mut by).take()).await
    }
}
