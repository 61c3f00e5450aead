//! When events are due, to the millisecond: the npm stack's `event_scheduled` has whole seconds.

use sea_orm_migration::{MigrationName, MigrationTrait, SchemaManager, async_trait, sea_orm::DbErr};

use super::shape::{Shape, Wanted, of_event};

pub(super) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m20261202_000002_schedule"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let shape = Shape::of(manager);
        let columns = [shape.short("event_id").primary_key().take(), shape.number("due")];
        let schedules = shape.table("v1_schedule", columns).foreign_key(&mut of_event("v1_schedule")).take();
        manager.create_table(schedules).await?;
        OPEN.make(manager).await
    }
}

/// What is yet to run, whoever scheduled it. One index for both tables: `scheduled` is `due`, rounded up.
const OPEN: Wanted = Wanted::all("event_scheduled_open", "event_scheduled", &["scheduled"])
    .only("executed IS NULL", &["executed", "scheduled"]);
