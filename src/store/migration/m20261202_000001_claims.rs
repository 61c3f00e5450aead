//! Which claims of the default group are ours: `consumed_spoke` alone doesn't tell them from those of npm spokes.

use sea_orm_migration::{MigrationName, MigrationTrait, SchemaManager, async_trait, sea_orm::DbErr};

use super::shape::{Shape, of_event};

pub(super) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m20261202_000001_claims"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let shape = Shape::of(manager);
        let id = shape.short("event_id").primary_key().take();
        manager
            .create_table(shape.table("v1_claim", [id]).foreign_key(&mut of_event("v1_claim")).take())
            .await
    }
}
