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
mod m20261204_000001_fence;
mod m20261204_000002_lease;
mod m20261205_000001_adoption;
mod npm;
mod shape;

use sea_orm::{ConnectionTrait, DatabaseConnection, DbErr, DynIden, TransactionTrait};
use sea_orm_migration::{MigrationTrait, MigratorTrait, async_trait, sea_query::IntoIden};

use super::{
    StoreError,
    engine::{Ask, Engine},
    server::ServerUrl,
    sql::refused,
    sqlite::Writer,
    writer::Db,
};

/// What was tried, if it failed.
const ACTION: &str = "bring its tables up to date";
/// The advisory lock of PostgreSQL under which tables are changed: a number of our own.
const POSTGRES_LOCK: i64 = 0x4556_464C_4F57;
/// The same by its name in MySQL, for a whole server: hubs on other databases there wait too, which takes seconds, once.
const MYSQL_LOCK: &str = "eventflow:migration";
/// How long to wait for whoever holds it.
const MYSQL_WAIT_SECONDS: u32 = 120;

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
            Box::new(m20261204_000001_fence::Migration),
            Box::new(m20261204_000002_lease::Migration),
            Box::new(m20261205_000001_adoption::Migration),
        ]
    }

    /// A name of our own: an application may keep its tables, and its migrations, in the same database.
    fn migration_table_name() -> DynIden {
        "v1_migration".into_iden()
    }
}

/// Applies what is missing, all or nothing; refuses a database with migrations that we don't know.
pub(super) async fn run(writer: &Writer, place: &str) -> Result<(), StoreError> {
    let refused = refused(ACTION);
    let transaction = writer.begin().await.map_err(&refused)?;
    let migrated = migrate(transaction.db().into(), place).await;
    match migrated {
        Ok(()) => transaction.commit().await.map_err(refused),
        Err(error) => {
            transaction.roll_back().await;
            Err(error)
        }
    }
}

/// The same on a server, over its only connection: of several that start at once one migrates, and the others wait for it.
/// PostgreSQL takes all or nothing; MySQL ends a transaction at each change of a table, so that what was interrupted is
/// gone through again: each step looks whether it is done.
pub(super) async fn run_on_server(
    connection: &DatabaseConnection,
    url: &ServerUrl,
) -> Result<(), StoreError> {
    let refused = refused(ACTION);
    match Engine::from(connection.get_database_backend()) {
        Engine::Postgres => {
            let transaction = connection.begin().await.map_err(&refused)?;
            let sql = format!("SELECT pg_advisory_xact_lock({POSTGRES_LOCK})");
            transaction.execute_unprepared(&sql).await.map_err(&refused)?;
            migrate((&transaction).into(), &url.to_string()).await?;
            transaction.commit().await.map_err(refused)
        }
        _ => {
            let sql = format!("SELECT GET_LOCK('{MYSQL_LOCK}', {MYSQL_WAIT_SECONDS})");
            let row = connection.row(sql, Vec::new()).await.map_err(&refused)?;
            let got = row.map(|row| row.try_get_by_index::<Option<i64>>(0)).transpose().map_err(&refused)?;
            if got.flatten() != Some(1) {
                let waited = "another program is at it, and doesn't come to an end";
                return Err(refused(DbErr::Custom(waited.to_owned())));
            }
            let migrated = migrate(connection.into(), &url.to_string()).await;
            // It goes with the connection at the latest.
            let _ = connection.execute_unprepared(&format!("DO RELEASE_LOCK('{MYSQL_LOCK}')")).await;
            migrated
        }
    }
}

async fn migrate(db: Db<'_>, place: &str) -> Result<(), StoreError> {
    let refused = refused(ACTION);
    let known = Migrator::migrations();
    let applied = Migrator::get_migration_models(&db).await.map_err(&refused)?;
    let unknown = applied.into_iter().find(|row| known.iter().all(|known| known.name() != row.version));
    match unknown {
        Some(row) => Err(StoreError::SchemaNewer { place: place.to_owned(), migration: row.version }),
        None => Migrator::up(db, None).await.map_err(refused),
    }
}
