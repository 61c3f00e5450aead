//! `eventflow hub retention`: what is wanted of each domain's events, and what would go now.

use std::collections::BTreeMap;

use clap::Args;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    admin::Admin,
    failure::Failure,
    output::{Printer, Style, harmless, json},
};

/// Print for how long events are kept, by domain, and how many would expire or be removed now.
///
/// Nothing is removed by it: the hub does that by itself, as its settings say.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow hub retention")]
pub(crate) struct Retention {}

/// What people are shown of the answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Page {
    policies: Vec<Policy>,
    looked: u64,
    complete: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Policy {
    pattern: String,
    settings: BTreeMap<String, String>,
    domains: u64,
    expires: u64,
    goes: BTreeMap<String, u64>,
    waits: u64,
    answered: u64,
}

/// Asks and prints.
pub(crate) async fn run(admin: &Admin, mut printer: Printer) -> Result<(), Failure> {
    let answer: Value = admin.get("/retention").await?;
    match printer.style() {
        Style::Json => printer.line(&json(&answer))?,
        Style::People { .. } => {
            let page: Page = serde_json::from_value(answer).unwrap_or_default();
            for line in page.lines() {
                printer.line(&harmless(&line))?;
            }
        }
    }
    Ok(printer.flush()?)
}

impl Page {
    fn lines(&self) -> Vec<String> {
        let last = self.policies.len().saturating_sub(1);
        let mut lines = Vec::new();
        for (place, policy) in self.policies.iter().enumerate() {
            let others = if place == last && place > 0 { " (all other domains)" } else { "" };
            lines.push(format!("{}{others}", policy.pattern));
            let settings: Vec<_> =
                policy.settings.iter().map(|(key, value)| format!("{key} {value}")).collect();
            lines.push(format!("  {}", settings.join(", ")));
            lines.push(format!("  now        {}", policy.now()));
        }
        if !self.complete {
            lines.push(format!(
                "there is more: {} events were looked at, and these are the counts of them",
                self.looked
            ));
        }
        lines
    }
}

impl Policy {
    fn now(&self) -> String {
        if self.domains == 0 {
            return "nothing to look at".to_owned();
        }
        let mut parts: Vec<_> = self.goes.iter().map(|(kept, count)| format!("{count} {kept} go")).collect();
        let more =
            [(self.expires, "expire"), (self.waits, "wait"), (self.answered, "stay for their answers")];
        parts.extend(
            more.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")),
        );
        if parts.is_empty() { "nothing goes".to_owned() } else { parts.join(", ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_is_three_lines() {
        let answer = serde_json::json!({
            "policies": [
                {"pattern": "orders.>", "settings": {"keep_success": "7d", "orphan_keep": "1d"}, "domains": 2,
                 "expires": 3, "goes": {"success": 40, "dead": 1}, "waits": 5, "answered": 0},
                {"pattern": "*", "settings": {"keep_success": "forever"}, "domains": 0},
            ],
            "looked": 200_000, "complete": false,
        });
        let page: Page = serde_json::from_value(answer).unwrap();
        assert_eq!(
            page.lines(),
            [
                "orders.>",
                "  keep_success 7d, orphan_keep 1d",
                "  now        1 dead go, 40 success go, 3 expire, 5 wait",
                "* (all other domains)",
                "  keep_success forever",
                "  now        nothing to look at",
                "there is more: 200000 events were looked at, and these are the counts of them",
            ]
        );
    }
}
