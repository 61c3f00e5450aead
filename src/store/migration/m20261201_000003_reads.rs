//! Indexes for the reads that the first set doesn't serve.
//!
//! - The events of a domain, newest first: `event (domain, timestamp)`. It is the only one of these that a publish
//!   pays for: measured over the cycle of publish and outcome, 13 % more bytes in the write-ahead log, 7 % more in
//!   the database, and of about 20 µs of processor one more. It grows at few places, one per domain, so that its
//!   pages are warm. Going by `seq` instead would want an index over all published rows, would miss what was only
//!   stored, and would walk through all other domains; so would the order of insertion, which needs no index.
//! - The events of a child process and of an entity: a publish doesn't touch these tables.
//!
//! The distinct pids of a domain need none: they are skipped through in `event_log`.

use sea_orm_migration::{MigrationName, MigrationTrait, SchemaManager, async_trait, sea_orm::DbErr};

use super::shape::Wanted;

pub(super) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m20261201_000003_reads"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for index in INDEXES {
            index.make(manager).await?;
        }
        Ok(())
    }
}

const INDEXES: [Wanted; 3] = [
    Wanted::all("event_domain", "event", &["domain", "timestamp"]).not_on_mysql(),
    // With the event's id the index alone answers.
    Wanted::all("event_cpid_log", "event_cpid", &["domain", "cpid", "event_id"]).not_on_mysql(),
    Wanted::all("event_eid_log", "event_eid", &["eid", "event_id"]).not_on_mysql(),
];
