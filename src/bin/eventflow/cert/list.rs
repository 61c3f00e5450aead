//! `eventflow cert list`: which certificates there are.

use chrono::Local;
use clap::Args;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    admin::Admin,
    failure::Failure,
    output::{Printer, Style, harmless, json, time},
};

/// List all certificates that the hub's database knows, with those that were replaced or revoked.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow cert list --json")]
pub(super) struct List {}

#[derive(Deserialize)]
struct Page {
    certificates: Vec<Value>,
    next: Option<String>,
}

/// What people are shown of one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Row {
    id: String,
    kind: String,
    state: String,
    not_after: i64,
    revoked: Option<i64>,
}

/// Asks page by page and prints.
pub(super) async fn run(admin: &Admin, mut printer: Printer) -> Result<(), Failure> {
    let mut path = "/certificates".to_owned();
    loop {
        let Page { certificates, next } = admin.get(&path).await?;
        for certificate in certificates {
            let line = match printer.style() {
                Style::Json => json(&certificate),
                Style::People { .. } => serde_json::from_value::<Row>(certificate).unwrap_or_default().line(),
            };
            printer.line(&line)?;
        }
        match next {
            Some(next) => path = format!("/certificates?page={}", encoded(&next)),
            None => return Ok(printer.flush()?),
        }
    }
}

impl Row {
    fn line(&self) -> String {
        let Self { id, kind, state, not_after, revoked } = self;
        let end = match revoked {
            Some(at) => format!("revoked at {}", time(*at, &Local)),
            None => format!("until {}", time(*not_after, &Local)),
        };
        harmless(&format!("{id:<48} {kind:<12} {state:<8} {end}"))
    }
}

/// For a query: all but letters, digits and what ids are made of besides is written as `%XX`.
fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut all, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => all.push(char::from(byte)),
            _ => all += &format!("%{byte:02X}"),
        }
        all
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_token_is_fit_for_a_query() {
        assert_eq!(encoded("A-B-1.EVENTFLOW-SPOKE:0"), "A-B-1.EVENTFLOW-SPOKE%3A0");
        assert_eq!(encoded("a b&c=é"), "a%20b%26c%3D%C3%A9");
    }

    #[test]
    fn people_see_what_ends_a_certificate() {
        let row = |revoked| Row {
            id: "A".into(),
            kind: "leaf".into(),
            state: "current".into(),
            not_after: 1_700_000_000_000,
            revoked,
        };
        assert!(row(None).line().contains("leaf         current  until 2023-11-1"), "{}", row(None).line());
        assert!(row(Some(0)).line().contains("revoked at 19"), "{}", row(Some(0)).line());
    }
}
