//! Groups by name: what they do with events that fail, their outcomes, and what waits for another attempt.

use sea_orm_migration::{
    MigrationName, MigrationTrait, SchemaManager, async_trait,
    sea_orm::DbErr,
    sea_query::{ColumnDef, TableCreateStatement},
};

use super::shape::{Shape, Wanted, key, of_event};

pub(super) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m20261203_000001_groups"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let shape = Shape::of(manager);
        for table in [groups(shape), outcomes(shape), retries(shape)] {
            manager.create_table(table).await?;
        }
        for index in INDEXES {
            index.make(manager).await?;
        }
        Ok(())
    }
}

const INDEXES: [Wanted; 5] = [
    // What waits for its next attempt, by time; and by pid, for groups that keep the order of keys.
    Wanted::all("v1_retry_due", "v1_retry", &["hub", "grp", "due", "seq"]),
    Wanted::all("v1_retry_pid", "v1_retry", &["hub", "grp", "pid", "seq"]),
    // The highest round of a group, and all of its outcomes, to remove them.
    Wanted::all("v1_outcome_round", "v1_outcome", &["grp", "round"]),
    // What is dead: counted by these alone.
    Wanted::all("event_published_failed", "event_published", &["v1_hub", "seq"])
        .only("failed IS NOT NULL AND success IS NULL", &["v1_hub", "failed", "success", "seq"]),
    Wanted::all("v1_outcome_dead", "v1_outcome", &["hub", "grp", "seq"])
        .only("dead IS NOT NULL", &["hub", "grp", "dead", "seq"]),
];

/// One row per named group, and one for the default group once it has settings.
fn groups(shape: Shape) -> TableCreateStatement {
    let columns = [
        shape.short("name").primary_key().take(),
        shape.text("settings"),
        // Outcomes of earlier rounds don't count: `seek` begins the next.
        ColumnDef::new("round").integer().not_null().default(1).take(),
        shape.moment("created").not_null().take(),
    ];
    shape.table("v1_group", columns)
}

/// Outcomes of named groups; of the default group only those that a redrive took out of `event_published`.
fn outcomes(shape: Shape) -> TableCreateStatement {
    let columns = [
        shape.short("event_id"),
        shape.short("grp"),
        ColumnDef::new("round").integer().not_null().take(),
        shape.short("hub"),
        shape.number("seq"),
        // `success`, `dead` or `expired`.
        shape.ascii("outcome", 8).not_null().take(),
        shape.short("consumer"),
        shape.moment("ended").not_null().take(),
        // As `ended`, if the event is dead in this group and wasn't redriven: what the index of the dead goes by.
        shape.moment("dead"),
    ];
    shape
        .table_in_key("v1_outcome", columns)
        .primary_key(&mut key(&["event_id", "grp", "round"]))
        .foreign_key(&mut of_event("v1_outcome"))
        .take()
}

/// Events that wait for a time before their next attempt. Everything else about what waits is told by cursors.
fn retries(shape: Shape) -> TableCreateStatement {
    let columns = [
        shape.short("event_id"),
        shape.short("grp"),
        shape.short("hub"),
        shape.number("seq"),
        shape.short("pid"),
        ColumnDef::new("round").integer().not_null().take(),
        // Of this round, so far.
        ColumnDef::new("attempts").integer().not_null().take(),
        // In milliseconds since 1970.
        shape.number("due"),
    ];
    shape
        .table_in_key("v1_retry", columns)
        .primary_key(&mut key(&["event_id", "grp"]))
        .foreign_key(&mut of_event("v1_retry"))
        .take()
}
