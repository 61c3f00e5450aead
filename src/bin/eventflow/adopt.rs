//! `eventflow adopt`: what the npm stack left unfinished in the database before our hub came.

use std::{collections::BTreeMap, path::Path};

use clap::Args;
use eventflow::event::code;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ureq::http::Method;

use crate::{
    admin::{Admin, AdminLink},
    failure::Failure,
    output::{Printer, Style, json, remark},
    parse,
    stop::Stop,
    table::table,
};

/// Dispatch what the npm stack has left unfinished before a hub of this kind first served its database.
///
/// That is history to the hub: it isn't dispatched by itself. Events that were published and not claimed by any npm spoke are
/// dispatched as if they were published now; what an npm spoke has claimed without an outcome is only counted, since it may
/// have been done. Schedules of npm that were overdue for longer than the hub's setting schedules.npm_overdue are counted, and
/// with --schedules they run now. Begin with --dry-run.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow adopt --dry-run")]
pub(crate) struct Adopt {
    /// Only count, by domain: nothing is dispatched
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// What was published, or scheduled for, at this time or later; `all`: everything
    #[arg(long, value_name = "TIME|all", value_parser = since, required_unless_present = "dry_run")]
    pub(crate) since: Option<i64>,
    /// Run npm's overdue schedules too
    #[arg(long)]
    pub(crate) schedules: bool,
    #[command(flatten)]
    pub(crate) link: AdminLink,
}

fn since(text: &str) -> Result<i64, String> {
    match text {
        "all" => Ok(0),
        text => {
            parse::moment(text).map(|moment| moment.as_millis()).map_err(|why| format!("{why}, or `all`"))
        }
    }
}

#[derive(Serialize)]
struct Asked<'a> {
    since: i64,
    take: bool,
    schedules: bool,
    after: Option<&'a Value>,
}

#[derive(Debug, Default, Deserialize)]
struct Page {
    #[serde(default)]
    domains: BTreeMap<String, BTreeMap<String, u64>>,
    #[serde(default)]
    taken: u64,
    #[serde(default)]
    elsewhere: u64,
    #[serde(default)]
    refused: Vec<Refused>,
    next: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Refused {
    id: String,
    reason: String,
}

/// All pages together.
#[derive(Debug, Default, PartialEq, Serialize)]
struct Sums {
    domains: BTreeMap<String, BTreeMap<String, u64>>,
    taken: u64,
    elsewhere: u64,
    refused: u64,
}

impl Sums {
    fn add(&mut self, page: &Page) {
        for (domain, kinds) in &page.domains {
            let sums = self.domains.entry(domain.clone()).or_default();
            for (kind, count) in kinds {
                *sums.entry(kind.clone()).or_default() += count;
            }
        }
        self.taken += page.taken;
        self.elsewhere += page.elsewhere;
        self.refused += page.refused.len() as u64;
    }

    fn lines(&self, is_dry: bool) -> Vec<String> {
        if self.domains.is_empty() {
            return vec!["npm left nothing unfinished here".to_owned()];
        }
        let row = |(domain, kinds): (&String, &BTreeMap<String, u64>)| {
            let of = |kind: &str| kinds.get(kind).copied().unwrap_or(0).to_string();
            [domain.clone(), of("published"), of("claimed"), of("overdue")]
        };
        let head = ["domain", "published", "claimed", "overdue"];
        let mut lines = table(head, self.domains.iter().map(row).collect());
        if !is_dry {
            let Self { taken, elsewhere, refused, .. } = self;
            lines.push(format!("dispatched {taken}, taken by others {elsewhere}, refused {refused}"));
        }
        lines
    }
}

/// Counts, or dispatches; `folder` is the hub's data folder.
pub(crate) async fn run(
    arguments: Adopt,
    folder: &Path,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    let Adopt { dry_run, since, schedules, link } = arguments;
    let admin = Admin::find(&link, folder, stop.clone())?;
    let since = since.unwrap_or(0);
    let mut sums = Sums::default();
    let mut after = None;
    loop {
        let asked = Asked { since, take: !dry_run, schedules, after: after.as_ref() };
        let page: Page = admin.send(Method::POST, "/history", Some(&asked)).await?;
        sums.add(&page);
        for Refused { id, reason } in &page.refused {
            remark(&format!("{id}: not dispatched, since it breaks the rules: {reason}"));
        }
        if !dry_run {
            printer.greet(&format!("dispatched {}", sums.taken));
        }
        match page.next {
            // What one page has taken stays taken: it is safe to stop between two.
            Some(_) if stop.is_requested() => return Err(Failure::Silent { exit: 130 }),
            Some(next) => after = Some(next),
            None => break,
        }
    }
    match printer.style() {
        Style::Json => printer.line(&json(&sums))?,
        Style::People { .. } => {
            for line in sums.lines(dry_run) {
                printer.line(&line)?;
            }
        }
    }
    printer.flush()?;
    if sums.refused > 0 {
        let sentence = format!("{} events break the rules and were not dispatched", sums.refused);
        return Err(Failure::new(code::INVALID_BATCH, sentence));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_summed_up_by_domain() {
        let page = |text: &str| serde_json::from_str::<Page>(text).unwrap();
        let mut sums = Sums::default();
        sums.add(&page(r#"{"domains":{"a":{"published":2}},"taken":2,"next":{"published":null}}"#));
        sums.add(&page(
            r#"{"domains":{"a":{"published":1,"claimed":4},"b":{"overdue":3}},"taken":1,
                "refused":[{"id":"x","reason":"y"}],"next":null}"#,
        ));
        assert_eq!(
            sums.lines(false),
            [
                "domain  published  claimed  overdue",
                "a               3        4        0",
                "b               0        0        3",
                "dispatched 3, taken by others 0, refused 1",
            ]
        );
        assert_eq!(Sums::default().lines(true), ["npm left nothing unfinished here"]);
    }

    #[test]
    fn from_when_on_is_a_time_or_all() {
        assert_eq!(since("all"), Ok(0));
        assert_eq!(since("1970-01-02T00:00:00Z"), Ok(86_400_000));
        assert!(since("ever").unwrap_err().ends_with("or `all`"));
    }
}
