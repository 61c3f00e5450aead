//! What a replay needs: the events of a hub by their numbers, and what retention has removed of them.
//!
//! `event_published_seq` is an index that each publish pays for, at its end alone, where it is warm: the one of what is
//! open (`event_published_open`) loses an event with its outcome, and without either each page of a replay would read,
//! and sort, all that was ever published.

use sea_orm_migration::{MigrationName, MigrationTrait, SchemaManager, async_trait, sea_orm::DbErr};

use super::shape::{Shape, Wanted};

pub(super) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m20261203_000002_removed"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let shape = Shape::of(manager);
        let columns = [
            shape.counted("id"),
            shape.short("hub"),
            shape.short("domain"),
            shape.number("first_seq"),
            shape.number("last_seq"),
            shape.number("events"),
            shape.time("removed"),
        ];
        manager.create_table(shape.table("v1_removed", columns)).await?;
        for index in INDEXES {
            index.make(manager).await?;
        }
        Ok(())
    }
}

const INDEXES: [Wanted; 2] = [
    Wanted::all("v1_removed_seq", "v1_removed", &["hub", "last_seq"]),
    Wanted::all("event_published_seq", "event_published", &["v1_hub", "seq"]),
];
