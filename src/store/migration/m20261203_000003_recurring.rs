//! Recurring schedules, and which event is an occurrence of which.

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
        "m20261203_000003_recurring"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let text = |name: &'static str, length| ColumnDef::new(name).string_len(length).not_null().take();
        let number = |name: &'static str| ColumnDef::new(name).big_integer().not_null().take();
        let schedules = Table::create()
            .table("v1_recurring")
            .if_not_exists()
            .col(text("name", 64).primary_key())
            .col(text("domain", 64))
            .col(text("event", 64))
            .col(ColumnDef::new("pid").string_len(64))
            .col(ColumnDef::new("data").text().not_null())
            .col(text("rule", 256))
            .col(text("zone", 64))
            .col(text("missed", 8))
            .col(number("window_ms"))
            .col(ColumnDef::new("start_at").big_integer())
            .col(ColumnDef::new("end_at").big_integer())
            .col(ColumnDef::new("paused").boolean().not_null().default(false))
            // When it runs next. Whoever moves it on says what it was: of several only one succeeds.
            .col(ColumnDef::new("due").big_integer())
            .col(ColumnDef::new("last").big_integer())
            .col(number("ran").default(0))
            .col(number("left_out").default(0))
            .col(text("publisher", 64))
            .col(number("made"))
            .take();
        manager.create_table(schedules).await?;
        let due = Index::create()
            .name("v1_recurring_due")
            .table("v1_recurring")
            .col("due")
            .if_not_exists()
            .and_where(Expr::col("due").is_not_null())
            .take();
        manager.create_index(due).await?;

        let mut event = ForeignKey::create()
            .name("fk_v1_occurrence_event")
            .from("v1_occurrence", "event_id")
            .to("event", "id")
            .on_delete(ForeignKeyAction::Cascade)
            .take();
        let occurrences = Table::create()
            .table("v1_occurrence")
            .if_not_exists()
            .col(text("event_id", 64).primary_key())
            .col(text("name", 64))
            // None: it was run by itself, besides the times of the rule.
            .col(ColumnDef::new("due").big_integer())
            .foreign_key(&mut event)
            .take();
        manager.create_table(occurrences).await?;
        let once = Index::create()
            .name("v1_occurrence_once")
            .table("v1_occurrence")
            .col("name")
            .col("due")
            .unique()
            .if_not_exists()
            .take();
        manager.create_index(once).await
    }
}
