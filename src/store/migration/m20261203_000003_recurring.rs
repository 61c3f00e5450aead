//! Recurring schedules, and which event is an occurrence of which.

use sea_orm_migration::{
    MigrationName, MigrationTrait, SchemaManager, async_trait,
    sea_orm::DbErr,
    sea_query::{ColumnDef, TableCreateStatement},
};

use super::shape::{Shape, Wanted, of_event};

pub(super) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m20261203_000003_recurring"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let shape = Shape::of(manager);
        manager.create_table(schedules(shape)).await?;
        let columns = [
            shape.short("event_id").primary_key().take(),
            shape.short("name"),
            // None: it was run by itself, besides the times of the rule.
            ColumnDef::new("due").big_integer().take(),
        ];
        let occurrences =
            shape.table("v1_occurrence", columns).foreign_key(&mut of_event("v1_occurrence")).take();
        manager.create_table(occurrences).await?;
        for index in INDEXES {
            index.make(manager).await?;
        }
        Ok(())
    }
}

const INDEXES: [Wanted; 2] = [
    Wanted::all("v1_recurring_due", "v1_recurring", &["due"]).only("due IS NOT NULL", &["due"]),
    Wanted::all("v1_occurrence_once", "v1_occurrence", &["name", "due"]).unique(),
];

fn schedules(shape: Shape) -> TableCreateStatement {
    let text = |name, length| shape.ascii(name, length).not_null().take();
    let columns = [
        text("name", 64).primary_key().take(),
        text("domain", 64),
        text("event", 64),
        shape.short_or_null("pid"),
        shape.text("data"),
        text("rule", 256),
        text("zone", 64),
        text("missed", 8),
        shape.number("window_ms"),
        ColumnDef::new("start_at").big_integer().take(),
        ColumnDef::new("end_at").big_integer().take(),
        ColumnDef::new("paused").boolean().not_null().default(false).take(),
        // When it runs next. Whoever moves it on says what it was: of several only one succeeds.
        ColumnDef::new("due").big_integer().take(),
        ColumnDef::new("last").big_integer().take(),
        shape.number("ran").default(0).take(),
        shape.number("left_out").default(0).take(),
        text("publisher", 64),
        shape.number("made"),
    ];
    shape.table("v1_recurring", columns)
}
