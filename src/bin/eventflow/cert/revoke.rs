//! `eventflow cert revoke`: shuts a spoke out.

use std::path::Path;

use clap::Args;
use eventflow::pki::Bundle;
use serde::Deserialize;
use serde_json::{Value, json};
use ureq::http::Method;

use crate::{
    admin::Admin,
    failure::Failure,
    output::{Printer, Style, harmless, json as text},
};

/// Revoke the certificates of a spoke, and cut its links.
///
/// All that the id has is revoked, for good. The hub that is asked cuts the links at once, others of the same database
/// within seconds. The id may be issued a new certificate afterwards.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow cert revoke KEEN-WREN-MX000002.EVENTFLOW-SPOKE")]
pub(super) struct Revoke {
    /// The spoke's id, as `eventflow cert list` shows it, or a file with its bundle
    #[arg(value_name = "ID|FILE")]
    id: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Revoked {
    id: String,
    versions: Vec<u32>,
    links_cut: u64,
}

/// Asks and prints.
pub(super) async fn run(arguments: Revoke, admin: &Admin, mut printer: Printer) -> Result<(), Failure> {
    let body = json!({ "id": whose(arguments.id)? });
    let answer: Value = admin.send(Method::POST, "/certificates/revoke", Some(&body)).await?;
    let line = match printer.style() {
        Style::Json => text(&answer),
        Style::People { .. } => {
            let Revoked { id, versions, links_cut } = serde_json::from_value(answer).unwrap_or_default();
            harmless(&format!(
                "{id}: {} revoked, {} cut",
                count(versions.len() as u64, "certificate"),
                count(links_cut, "link")
            ))
        }
    };
    printer.line(&line)?;
    Ok(printer.flush()?)
}

/// The id, or that of the bundle in a file of this name. Ids hold no slash, so `./NAME` is always a file.
fn whose(given: String) -> Result<String, Failure> {
    let path = Path::new(&given);
    if given.contains('/') || path.is_file() { Ok(Bundle::load(path)?.uid()?.to_string()) } else { Ok(given) }
}

fn count(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
