//! Brings the tables up to date.

mod m20261201_000001_core;
mod m20261201_000003_reads;
mod m20261202_000001_claims;
mod m20261202_000002_schedule;
mod m20261202_000010_certificate;
mod m20261203_000001_groups;
mod m20261203_000002_removed;
mod m20261203_000003_recurring;
mod m20261203_000003_starts;
mod m20261203_000004_marker;

use sea_orm::DynIden;
use sea_orm_migration::{MigrationTrait, MigratorTrait, async_trait, sea_query::IntoIden};

use super::{Place, StoreError, sql::refused, sqlite::Writer};

/// All migrations, oldest first.
struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(m20261201_000001_core::Migration),
            Box::new(m20261201_000003_reads::Migration),
            Box::new(m20261202_000001_claims::Migration),
            Box::new(m20261202_000002_schedule::Migration),
            Box::new(m20261202_000010_certificate::Migration),
            Box::new(m20261203_000001_groups::Migration),
            Box::new(m20261203_000002_removed::Migration),
            Box::new(m20261203_000003_recurring::Migration),
            Box::new(m20261203_000003_starts::Migration),
            Box::new(m20261203_000004_marker::Migration),
        ]
    }

    /// A name of our own: an application may keep its tables, and its migrations, in the same database.
    fn migration_table_name() -> DynIden {
        "v1_migration".into_iden()
    }
}

/// Applies what is missing, all or nothing; refuses a database with migrations that we don't know.
pub(super) async fn run(writer: &Writer, place: &Place) -> Result<(), StoreError> {
    let refused = refused("bring its tables up to date");
    let transaction = writer.begin().await.map_err(&refused)?;
    let migrated = migrate(&transaction, place).await;
    match migrated {
        Ok(()) => transaction.commit().await.map_err(refused),
        Err(error) => {
            transaction.roll_back().await;
            Err(error)
        }
    }
}

async fn migrate(transaction: &super::sqlite::Transaction<'_>, place: &Place) -> Result<(), StoreError> {
    let refused = refused("bring its tables up to date");
    let known = Migrator::migrations();
    let applied = Migrator::get_migration_models(transaction.db()).await.map_err(&refused)?;
    let unknown = applied.into_iter().find(|row| known.iter().all(|known| known.name() != row.version));
    match unknown {
        Some(row) => Err(StoreError::SchemaNewer { place: place.to_string(), migration: row.version }),
        None => Migrator::up(transaction.db(), None).await.map_err(refused),
    }
}
