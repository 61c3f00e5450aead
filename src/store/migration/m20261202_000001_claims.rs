//! Which claims of the default group are ours: `consumed_spoke` alone doesn't tell them from those of npm spokes.

use sea_orm_migration::{
    MigrationName, MigrationTrait, SchemaManager, async_trait,
    sea_orm::DbErr,
    sea_query::{ColumnDef, ForeignKey, ForeignKeyAction, Table},
};

pub(super) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m20261202_000001_claims"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let mut event = ForeignKey::create()
            .name("fk_v1_claim_event")
            .from("v1_claim", "event_id")
            .to("event", "id")
            .on_delete(ForeignKeyAction::Cascade)
            .take();
        let claims = Table::create()
            .table("v1_claim")
            .if_not_exists()
            .col(ColumnDef::new("event_id").string_len(64).not_null().primary_key())
            .foreign_key(&mut event)
            .take();
        manager.create_table(claims).await
    }
}
