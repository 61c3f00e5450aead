//! What a replay needs: the events of a hub by their numbers, and what retention has removed of them.
//!
//! `event_published_seq` is an index that each publish pays for, at its end alone, where it is warm: the one of what is
//! open (`event_published_open`) loses an event with its outcome, and without either each page of a replay would read,
//! and sort, all that was ever published.

use sea_orm_migration::{
    MigrationName, MigrationTrait, SchemaManager, async_trait,
    sea_orm::DbErr,
    sea_query::{ColumnDef, Expr, Index, Table},
};

pub(super) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m20261203_000002_removed"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let short = |name: &'static str| ColumnDef::new(name).string_len(64).not_null().take();
        let number = |name: &'static str| ColumnDef::new(name).big_integer().not_null().take();
        let now = Expr::cust("(strftime('%Y-%m-%d %H:%M:%f', 'now'))");
        let removed = Table::create()
            .table("v1_removed")
            .if_not_exists()
            .col(ColumnDef::new("id").big_integer().not_null().auto_increment().primary_key())
            .col(short("hub"))
            .col(short("domain"))
            .col(number("first_seq"))
            .col(number("last_seq"))
            .col(number("events"))
            .col(ColumnDef::new("removed").date_time().not_null().default(now))
            .take();
        manager.create_table(removed).await?;
        for (name, table, columns) in [
            ("v1_removed_seq", "v1_removed", ["hub", "last_seq"]),
            ("event_published_seq", "event_published", ["v1_hub", "seq"]),
        ] {
            let mut index = Index::create().name(name).table(table).if_not_exists().take();
            for column in columns {
                index.col(column);
            }
            manager.create_index(index).await?;
        }
        Ok(())
    }
}
