//! The zone of the times that MySQL and MariaDB give by themselves.
//!
//! Columns such as `published` have a default of the session's time. Those of the npm stack's sessions are in the server's
//! zone, and a column doesn't tell: what we read and write there goes through the words `@utc` and `@local` of
//! [`engine`](super::super::engine), which convert from and to the zone of our own session. That one is UTC, where they do
//! nothing, or the server's.

use sea_orm::{ConnectionTrait, DatabaseConnection, DbErr, Statement, sqlx::mysql::MySqlConnectOptions};

use super::{
    super::{NpmTimeZone, StoreError, sql::refused},
    ServerUrl,
};

/// Sessions in the zone in which npm's are.
pub(super) fn set(options: MySqlConnectOptions, zone: NpmTimeZone) -> MySqlConnectOptions {
    match zone {
        NpmTimeZone::Utc => options,
        // A new session has the server's.
        NpmTimeZone::Server => options.timezone(None),
    }
}

/// Refuses a server that isn't in UTC, unless that is allowed.
pub(super) async fn check(
    connection: &DatabaseConnection,
    url: &ServerUrl,
    zone: NpmTimeZone,
) -> Result<(), StoreError> {
    if zone == NpmTimeZone::Server {
        return Ok(());
    }
    match other_zone(connection).await.map_err(refused("say in which time zone it is"))? {
        Some(zone) => Err(StoreError::TimeZone { place: url.to_string(), zone }),
        None => Ok(()),
    }
}

/// The zone of the server's sessions if it isn't UTC: now, in summer or in winter.
async fn other_zone(connection: &DatabaseConnection) -> Result<Option<String>, DbErr> {
    let name = "CASE @@global.time_zone WHEN 'SYSTEM' THEN @@system_time_zone ELSE @@global.time_zone END";
    let same = |at: &str| format!("coalesce(convert_tz({at}, '+00:00', @@global.time_zone) = {at}, FALSE)");
    let sql = format!(
        "SELECT {name}, {} AND {} AND {}",
        same("utc_timestamp()"),
        same("TIMESTAMP'2026-01-15 12:00:00'"),
        same("TIMESTAMP'2026-07-15 12:00:00'")
    );
    // Not in our words: MySQL's variables begin with `@` too.
    let row =
        connection.query_one_raw(Statement::from_string(connection.get_database_backend(), sql)).await?;
    let Some(row) = row else { return Ok(None) };
    let is_utc: bool = row.try_get_by_index(1)?;
    Ok(if is_utc { None } else { Some(row.try_get_by_index(0)?) })
}
