//! `eventflow migrate status|up`: the tables of a hub's database.

use std::path::Path;

use chrono::DateTime;
use clap::{Args, Subcommand};
use eventflow::{
    event::code,
    hub::{self, DatabasePlace},
    store::MigrationStatus,
};

use crate::{
    database::{HubFile, place},
    failure::Failure,
    output::{Printer, Style, json, remark},
};

/// Look at the tables of a hub's database, and bring them up to date.
///
/// A hub does that by itself at its start, unless its setting store.migrate is false: then it refuses a database that
/// isn't up to date.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow migrate status")]
pub(crate) struct Migrate {
    /// The database: a URL or a data folder; by default what the hub's configuration says
    #[arg(long, global = true, value_name = "URL|FOLDER", value_parser = place)]
    pub(crate) database: Option<DatabasePlace>,
    #[command(flatten)]
    pub(crate) hub: HubFile,
    #[command(subcommand)]
    pub(crate) command: Command,
}

// Their help stands at the arguments of each.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Status(Status),
    Up(Up),
}

/// Print which migrations were applied and which are pending, and whether the npm stack's tables are there.
///
/// Nothing is changed, and a hub may be at work on the database. The exit code is 0 if it is up to date, 1 if something is
/// pending, and 1 too if a newer version has made it.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow migrate status")]
pub(crate) struct Status {}

/// Apply what is pending.
///
/// Of several that begin at once one does it, and the others wait. An embedded database must not be in use by a hub.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow migrate up --database ./eventflow-data")]
pub(crate) struct Up {}

/// Looks, or applies; `folder` is the hub's data folder if no other database is named.
pub(crate) async fn run(arguments: Migrate, folder: &Path, mut printer: Printer) -> Result<(), Failure> {
    let Migrate { database, hub, command } = arguments;
    let config = hub.load(folder)?;
    let place = database.unwrap_or_else(|| DatabasePlace::of(&config));
    let before = hub::migration_status(&config, &place).await?;
    if matches!(command, Command::Up(_)) {
        hub::migrate(&config, &place).await?;
        let after = hub::migration_status(&config, &place).await?;
        tell(&after, &place, &mut printer)?;
        remark(&format!("{} migrations were applied", before.pending.len() - after.pending.len()));
        return Ok(());
    }
    tell(&before, &place, &mut printer)?;
    verdict(&before, &place)
}

fn tell(status: &MigrationStatus, place: &DatabasePlace, printer: &mut Printer) -> Result<(), Failure> {
    match printer.style() {
        Style::Json => printer.line(&json(&value(status, place)))?,
        Style::People { .. } => {
            for line in lines(status) {
                printer.line(&line)?;
            }
        }
    }
    Ok(printer.flush()?)
}

fn value(status: &MigrationStatus, place: &DatabasePlace) -> serde_json::Value {
    let applied: Vec<_> = status
        .applied
        .iter()
        .map(|applied| serde_json::json!({ "name": applied.name, "at": applied.at, "known": applied.known }))
        .collect();
    serde_json::json!({
        "database": place.to_string(), "applied": applied, "pending": status.pending, "npm_tables": status.npm_tables,
    })
}

fn lines(status: &MigrationStatus) -> Vec<String> {
    let mut lines: Vec<String> = status
        .applied
        .iter()
        .map(|applied| {
            let at = DateTime::from_timestamp_millis(applied.at).unwrap_or_default().format("%F %T UTC");
            let newer = if applied.known { "" } else { ", by a newer version" };
            format!("applied  {}  {at}{newer}", applied.name)
        })
        .collect();
    lines.extend(status.pending.iter().map(|name| format!("pending  {name}")));
    lines.push(match (status.npm_tables.as_slice(), status.applied.is_empty()) {
        ([], _) => "the npm stack's tables aren't there".to_owned(),
        (tables, true) => {
            format!("the npm stack's tables are there, and none of ours: {}", tables.join(", "))
        }
        (tables, false) => format!("tables that the npm stack uses too: {}", tables.join(", ")),
    });
    lines
}

/// What scripts are told by the exit code.
fn verdict(status: &MigrationStatus, place: &DatabasePlace) -> Result<(), Failure> {
    if let Some(newer) = status.unknown() {
        let sentence = format!(
            "the database {place} has the migration `{}`, which this version doesn't know: a newer one has made it, and this \
             one's hubs refuse it",
            newer.name
        );
        return Err(Failure::new(code::DB_SCHEMA_NEWER, sentence));
    }
    if status.pending.is_empty() {
        return Ok(());
    }
    let sentence =
        format!("{} migrations are pending: apply them by `eventflow migrate up`", status.pending.len());
    Err(Failure::new(code::DB_SCHEMA_PENDING, sentence))
}

#[cfg(test)]
mod tests {
    use eventflow::store::Applied;

    use super::*;

    fn status(known: bool, pending: &[&str]) -> MigrationStatus {
        MigrationStatus {
            applied: vec![Applied { name: "m1".to_owned(), at: 0, known }],
            pending: pending.iter().map(|name| (*name).to_owned()).collect(),
            npm_tables: vec!["event".to_owned()],
        }
    }

    #[test]
    fn the_exit_code_tells_pending_and_newer_apart_from_up_to_date() {
        let place = place("x").unwrap();
        let code_of = |status: &MigrationStatus| match verdict(status, &place) {
            Ok(()) => String::new(),
            Err(Failure::Told { code, .. }) => code,
            Err(other) => panic!("{other:?}"),
        };
        assert_eq!(code_of(&status(true, &[])), "");
        assert_eq!(code_of(&status(true, &["m2"])), code::DB_SCHEMA_PENDING);
        assert_eq!(code_of(&status(false, &["m2"])), code::DB_SCHEMA_NEWER);
    }

    #[test]
    fn each_migration_is_a_line() {
        assert_eq!(
            lines(&status(false, &["m2"])),
            [
                "applied  m1  1970-01-01 00:00:00 UTC, by a newer version",
                "pending  m2",
                "tables that the npm stack uses too: event",
            ]
        );
    }
}
