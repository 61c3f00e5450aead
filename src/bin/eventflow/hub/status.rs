//! `eventflow hub status`: the hub on one page.

use std::collections::BTreeMap;

use clap::Args;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    admin::Admin,
    failure::Failure,
    output::{Printer, Style, harmless, json, size},
    table::span,
};

/// Print what hub runs there, since when, and its main numbers.
///
/// The exit code is 0 whenever the hub answers, be it ready or not.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow hub status --json")]
pub(crate) struct Status {}

/// What people are shown of the answer. A field that an older hub doesn't know is left out.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Page {
    hub: String,
    version: String,
    epoch: u64,
    uptime_ms: u64,
    address: String,
    state: String,
    reason: String,
    links: BTreeMap<String, u64>,
    /// Not part of the hub's answer: counted over its groups.
    consumers: Option<u64>,
    published: u64,
    outcomes: BTreeMap<String, u64>,
    orphans: Option<u64>,
    schedules_waiting: Option<i64>,
    pending: i64,
    in_flight: i64,
    engine: Option<String>,
    database_bytes: Option<u64>,
    synchronous: i64,
}

/// How a group stands, as far as it is needed here.
#[derive(Debug, Deserialize)]
struct Stands {
    consumers: u64,
}

/// Asks and prints.
pub(crate) async fn run(admin: &Admin, mut printer: Printer) -> Result<(), Failure> {
    let mut answer: Value = admin.get("/status").await?;
    // An older hub doesn't tell.
    if let (Ok(groups), Some(page)) = (admin.get::<Vec<Stands>>("/backlog").await, answer.as_object_mut()) {
        let consumers: u64 = groups.iter().map(|group| group.consumers).sum();
        page.insert("consumers".to_owned(), consumers.into());
    }
    match printer.style() {
        Style::Json => printer.line(&json(&answer))?,
        Style::People { .. } => {
            let page: Page = serde_json::from_value(answer).unwrap_or_default();
            for line in page.lines() {
                printer.line(&line)?;
            }
        }
    }
    Ok(printer.flush()?)
}

impl Page {
    fn lines(&self) -> Vec<String> {
        let durable = match self.synchronous {
            2 => "acks wait for the disk",
            _ => "acks don't wait for the disk: a power cut may take the last moments",
        };
        let since = |count: String| format!("{count} since the start");
        let mut rows = vec![
            ("hub", format!("{}, version {}", self.hub, self.version)),
            ("state", format!("{}: {}", self.state, self.reason)),
            ("up", format!("{}, start {} of this hub", span(self.uptime_ms), self.epoch)),
            ("address", self.address.clone()),
            ("links", counts(&self.links)),
        ];
        rows.extend(self.consumers.map(|count| ("consumers", count.to_string())));
        rows.push(("published", since(self.published.to_string())));
        rows.push(("outcomes", since(counts(&self.outcomes))));
        rows.extend(self.orphans.map(|count| ("orphans", since(count.to_string()))));
        rows.push(("pending", format!("{}, {} in flight", self.pending, self.in_flight)));
        rows.extend(
            self.schedules_waiting.map(|count| ("scheduled", format!("{count} whose time is yet to come"))),
        );
        // An older hub knows SQLite alone.
        let engine = self.engine.as_deref().unwrap_or("SQLite");
        let place = match self.database_bytes {
            Some(bytes) => size(bytes),
            None if engine == "SQLite" => "in memory".to_owned(),
            None => "on a server".to_owned(),
        };
        rows.push(("database", format!("{engine}, {place}; {durable}")));
        rows.into_iter().map(|(name, text)| format!("{name:<10} {}", harmless(&text))).collect()
    }
}

fn counts(counts: &BTreeMap<String, u64>) -> String {
    let shown: Vec<_> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_a_table() {
        let answer = serde_json::json!({
            "hub": "a.EVENTFLOW-HUB", "version": "0.1.0", "epoch": 3, "uptime_ms": 61_000,
            "address": "127.0.0.1:50000", "state": "ready", "reason": "the hub is ready",
            "links": {"npm": 0, "v1": 2}, "outcomes": {"dead": 1, "success": 5}, "published": 9,
            "orphans": 4, "schedules_waiting": 2, "pending": 3, "in_flight": 1, "database_bytes": 2048, "synchronous": 2, "of a later version": {},
        });
        let page: Page = serde_json::from_value(answer.clone()).unwrap();
        let lines = page.lines();
        assert_eq!(lines[0], "hub        a.EVENTFLOW-HUB, version 0.1.0");
        assert_eq!(lines[2], "up         1m 1s, start 3 of this hub");
        assert_eq!(lines[4], "links      0 npm, 2 v1");
        assert_eq!(lines[5], "published  9 since the start");
        assert_eq!(lines[6], "outcomes   1 dead, 5 success since the start");
        assert_eq!(lines[7], "orphans    4 since the start");
        assert_eq!(lines[8], "pending    3, 1 in flight");
        assert_eq!(lines[9], "scheduled  2 whose time is yet to come");
        assert_eq!(lines[10], "database   SQLite, 2.0 KiB; acks wait for the disk");

        let mut weak = answer.clone();
        weak["engine"] = "PostgreSQL".into();
        weak["database_bytes"] = serde_json::Value::Null;
        weak["synchronous"] = 1.into();
        let lines = serde_json::from_value::<Page>(weak).unwrap().lines();
        assert!(lines[10].starts_with("database   PostgreSQL, on a server; acks don't wait"), "{lines:?}");

        let mut with_consumers = answer.clone();
        with_consumers["consumers"] = 7.into();
        let lines = serde_json::from_value::<Page>(with_consumers).unwrap().lines();
        assert_eq!(lines[5], "consumers  7");

        let mut older = answer;
        older.as_object_mut().unwrap().retain(|name, _| name != "orphans" && name != "schedules_waiting");
        let lines = serde_json::from_value::<Page>(older).unwrap().lines();
        assert_eq!((lines.len(), lines[7].as_str()), (9, "pending    3, 1 in flight"), "an older hub");
    }
}
