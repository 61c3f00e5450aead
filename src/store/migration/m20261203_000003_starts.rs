//! From where a binding is offered the orphans of its domains, if they differ: the policies that said so may change, and
//! what is offered stays so.

use sea_orm_migration::{
    MigrationName, MigrationTrait, SchemaManager, async_trait, sea_orm::DbErr, sea_query::ColumnDef,
};

use super::shape::{Shape, key};

pub(super) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m20261203_000003_starts"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let shape = Shape::of(manager);
        let columns = [
            shape.number("binding_id"),
            ColumnDef::new("place").integer().not_null().take(),
            shape.short("domain"),
            shape.number("start_seq"),
        ];
        let starts = shape.table("v1_binding_start", columns);
        manager.create_table(starts.clone().primary_key(&mut key(&["binding_id", "place"])).take()).await
    }
}
