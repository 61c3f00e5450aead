//! Groups by name: what they do with events that fail, their outcomes, and what waits for another attempt.

use sea_orm_migration::{
    MigrationName, MigrationTrait, SchemaManager, async_trait,
    sea_orm::DbErr,
    sea_query::{
        ColumnDef, ConditionalStatement, Expr, ExprTrait, ForeignKey, ForeignKeyAction, Index, Table,
        TableCreateStatement,
    },
};

pub(super) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m20261203_000001_groups"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in [groups(), outcomes(), retries()] {
            manager.create_table(table).await?;
        }
        let index = |name: &str, table: &'static str, columns: &[&'static str]| {
            let mut index = Index::create().name(name.to_owned()).table(table).if_not_exists().take();
            for column in columns {
                index.col(*column);
            }
            index
        };
        // What waits for its next attempt, by time; and by pid, for groups that keep the order of keys.
        manager.create_index(index("v1_retry_due", "v1_retry", &["hub", "grp", "due", "seq"])).await?;
        manager.create_index(index("v1_retry_pid", "v1_retry", &["hub", "grp", "pid", "seq"])).await?;
        // The highest round of a group, and all of its outcomes, to remove them.
        manager.create_index(index("v1_outcome_round", "v1_outcome", &["grp", "round"])).await?;
        // What is dead: counted by these alone.
        let failed = index("event_published_failed", "event_published", &["v1_hub", "seq"])
            .and_where(Expr::col("failed").is_not_null())
            .and_where(Expr::col("success").is_null())
            .take();
        manager.create_index(failed).await?;
        let dead = index("v1_outcome_dead", "v1_outcome", &["hub", "grp", "seq"])
            .and_where(Expr::col("dead").is_not_null())
            .take();
        manager.create_index(dead).await
    }
}

/// One row per named group, and one for the default group once it has settings.
fn groups() -> TableCreateStatement {
    Table::create()
        .table("v1_group")
        .if_not_exists()
        .col(ColumnDef::new("name").string_len(64).not_null().primary_key())
        .col(ColumnDef::new("settings").text().not_null())
        // Outcomes of earlier rounds don't count: `seek` begins the next.
        .col(ColumnDef::new("round").integer().not_null().default(1))
        .col(ColumnDef::new("created").date_time().not_null())
        .take()
}

/// Outcomes of named groups; of the default group only those that a redrive took out of `event_published`.
fn outcomes() -> TableCreateStatement {
    Table::create()
        .table("v1_outcome")
        .if_not_exists()
        .col(ColumnDef::new("event_id").string_len(64).not_null())
        .col(ColumnDef::new("grp").string_len(64).not_null())
        .col(ColumnDef::new("round").integer().not_null())
        .col(ColumnDef::new("hub").string_len(64).not_null())
        .col(ColumnDef::new("seq").big_integer().not_null())
        // `success`, `dead` or `expired`.
        .col(ColumnDef::new("outcome").string_len(8).not_null())
        .col(ColumnDef::new("consumer").string_len(64).not_null())
        .col(ColumnDef::new("ended").date_time().not_null())
        // As `ended`, if the event is dead in this group and wasn't redriven: what the index of the dead goes by.
        .col(ColumnDef::new("dead").date_time())
        .primary_key(Index::create().col("event_id").col("grp").col("round"))
        .foreign_key(&mut of_event("fk_v1_outcome_event", "v1_outcome"))
        .extra("WITHOUT ROWID")
        .take()
}

/// Events that wait for a time before their next attempt. Everything else about what waits is told by cursors.
fn retries() -> TableCreateStatement {
    Table::create()
        .table("v1_retry")
        .if_not_exists()
        .col(ColumnDef::new("event_id").string_len(64).not_null())
        .col(ColumnDef::new("grp").string_len(64).not_null())
        .col(ColumnDef::new("hub").string_len(64).not_null())
        .col(ColumnDef::new("seq").big_integer().not_null())
        .col(ColumnDef::new("pid").string_len(64).not_null())
        .col(ColumnDef::new("round").integer().not_null())
        // Of this round, so far.
        .col(ColumnDef::new("attempts").integer().not_null())
        // In milliseconds since 1970.
        .col(ColumnDef::new("due").big_integer().not_null())
        .primary_key(Index::create().col("event_id").col("grp"))
        .foreign_key(&mut of_event("fk_v1_retry_event", "v1_retry"))
        .extra("WITHOUT ROWID")
        .take()
}

fn of_event(name: &str, table: &'static str) -> sea_orm_migration::sea_query::ForeignKeyCreateStatement {
    ForeignKey::create()
        .name(name.to_owned())
        .from(table, "event_id")
        .to("event", "id")
        .on_delete(ForeignKeyAction::Cascade)
        .take()
}
