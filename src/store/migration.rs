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

use sea_orm::{ConnectionTrait, DatabaseConnection, DbErr, DynIden, IntoDatabaseExecutor, TransactionTrait};
use sea_orm_migration::{MigrationTrait, MigratorTrait, SchemaManager, async_trait, sea_query::IntoIden};

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

/// A migration that was applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// Its name.
    pub name: String,
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// False: a newer version has applied it, and this one doesn't know it.
    pub known: bool,
}

/// How the tables of a database stand to this version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MigrationStatus {
    /// What was applied, oldest first.
    pub applied: Vec<Applied>,
    /// What isn't yet, in the order in which it is to be.
    pub pending: Vec<String>,
    /// Tables of the npm stack that are there, by their names.
    pub npm_tables: Vec<String>,
}

impl MigrationStatus {
    /// The first migration that this version doesn't know.
    #[must_use]
    pub fn unknown(&self) -> Option<&Applied> {
        self.applied.iter().find(|applied| !applied.known)
    }
}

/// The tables that the npm stack has too.
const NPM_TABLES: [&str; 8] =
    ["certificate", "event", "event_cpid", "event_eid", "event_published", "event_scheduled", "hub", "log"];

/// The name of the last migration of this version.
pub(super) fn latest() -> String {
    Migrator::migrations().last().map(|last| last.name().to_owned()).unwrap_or_default()
}

/// Of a database that isn't there yet.
pub(super) fn none_applied() -> MigrationStatus {
    let pending = Migrator::migrations().iter().map(|migration| migration.name().to_owned()).collect();
    MigrationStatus { pending, ..MigrationStatus::default() }
}

/// How the tables stand. Nothing is changed.
pub(super) async fn status(db: Db<'_>) -> Result<MigrationStatus, StoreError> {
    let look = async {
        let manager = SchemaManager::new(db);
        let db = manager.get_connection();
        let mut npm_tables = Vec::new();
        for table in NPM_TABLES {
            if manager.has_table(table).await? {
                npm_tables.push(table.to_owned());
            }
        }
        let known: Vec<String> =
            Migrator::migrations().iter().map(|migration| migration.name().to_owned()).collect();
        let mut applied = Vec::new();
        if manager.has_table("v1_migration").await? {
            let sql = "SELECT version, applied_at FROM v1_migration ORDER BY version";
            for row in db.rows(sql, Vec::new()).await? {
                let name: String = row.try_get_by_index(0)?;
                let at = row.try_get_by_index::<i64>(1)?.saturating_mul(1_000);
                applied.push(Applied { known: known.contains(&name), name, at });
            }
        }
        let is_pending = |name: &String| applied.iter().all(|applied| applied.name != *name);
        let pending = known.iter().filter(|name| is_pending(name)).cloned().collect();
        Ok(MigrationStatus { applied, pending, npm_tables })
    };
    look.await.map_err(refused("say which migrations it has"))
}

/// Refuses a database that isn't up to date, or newer. Nothing is changed.
pub(super) async fn demand(db: Db<'_>, place: &str) -> Result<(), StoreError> {
    let status = status(db).await?;
    if let Some(newer) = status.unknown() {
        return Err(StoreError::SchemaNewer { place: place.to_owned(), migration: newer.name.clone() });
    }
    if status.pending.is_empty() {
        return Ok(());
    }
    Err(StoreError::SchemaPending { place: place.to_owned(), pending: status.pending })
}

/// Applies what is missing, all or nothing; refuses a database with migrations that we don't know.
pub(super) async fn run(writer: &Writer, place: &str) -> Result<(), StoreError> {
    let refused = refused(ACTION);
    let transaction = writer.begin().await.map_err(&refused)?;
    let migrated = migrate(transaction.db(), place).await;
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
            migrate(&transaction, &url.to_string()).await?;
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
            let migrated = migrate(connection, &url.to_string()).await;
            // It goes with the connection at the latest.
            let _ = connection.execute_unprepared(&format!("DO RELEASE_LOCK('{MYSQL_LOCK}')")).await;
            migrated
        }
    }
}

async fn migrate<'c>(db: impl IntoDatabaseExecutor<'c> + Copy, place: &str) -> Result<(), StoreError> {
    let refused = refused(ACTION);
    let known = Migrator::migrations();
    let asked = db.into_database_executor();
    let applied = Migrator::get_migration_models(&asked).await.map_err(&refused)?;
    let unknown = applied.into_iter().find(|row| known.iter().all(|known| known.name() != row.version));
    if let Some(row) = unknown {
        return Err(StoreError::SchemaNewer { place: place.to_owned(), migration: row.version });
    }
    for migration in Migrator::get_pending_migrations(&asked).await.map_err(&refused)? {
        tracing::info!(migration = migration.name(), "the database's tables are brought up to date");
        Migrator::up(db, Some(1)).await.map_err(&refused)?;
    }
    Ok(())
}
