//! When events are due, to the millisecond: the npm stack's `event_scheduled` has whole seconds.

use sea_orm_migration::{
    MigrationName, MigrationTrait, SchemaManager, async_trait,
    sea_orm::DbErr,
    sea_query::{
        ColumnDef, ConditionalStatement, Expr, ExprTrait, ForeignKey, ForeignKeyAction, Index, Table,
    },
};

pub(super) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m20261202_000002_schedule"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let mut event = ForeignKey::create()
            .name("fk_v1_schedule_event")
            .from("v1_schedule", "event_id")
            .to("event", "id")
            .on_delete(ForeignKeyAction::Cascade)
            .take();
        let schedules = Table::create()
            .table("v1_schedule")
            .if_not_exists()
            .col(ColumnDef::new("event_id").string_len(64).not_null().primary_key())
            .col(ColumnDef::new("due").big_integer().not_null())
            .foreign_key(&mut event)
            .take();
        manager.create_table(schedules).await?;
        // What is yet to run, whoever scheduled it. One index for both tables: `scheduled` is `due`, rounded up.
        let open = Index::create()
            .name("event_scheduled_open")
            .table("event_scheduled")
            .col("scheduled")
            .if_not_exists()
            .and_where(Expr::col("executed").is_null())
            .take();
        manager.create_index(open).await
    }
}
