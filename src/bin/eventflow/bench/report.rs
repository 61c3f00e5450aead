//! What was found, for people, programs and pages.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

use eventflow::event::code;
use serde::Serialize;

use super::{chart, finding::Finding, meter};
use crate::{
    failure::Failure,
    output::{Printer, Style, json, remark},
    table::table,
};

/// All findings of all rounds.
pub(super) struct Report {
    printer: Printer,
    machine: String,
    found: Vec<(u32, Finding)>,
}

/// A finding as programs read it.
#[derive(Serialize)]
struct Line<'a> {
    round: u32,
    machine: &'a str,
    #[serde(flatten)]
    finding: &'a Finding,
    ok: bool,
}

/// The median over all rounds.
#[derive(Serialize)]
struct Median<'a> {
    bench: &'static str,
    how: &'a str,
    rounds: usize,
    median_per_second: f64,
    ok: bool,
}

impl Report {
    pub(super) fn new(printer: Printer) -> Self {
        Self { printer, machine: meter::machine(), found: Vec::new() }
    }

    /// Takes a finding; programs have it at once.
    pub(super) fn add(&mut self, round: u32, finding: Finding) -> Result<(), Failure> {
        if self.printer.style() == Style::Json {
            let ok = finding.wrong().next().is_none();
            let line = json(&Line { round, machine: &self.machine, finding: &finding, ok });
            self.printer.line(&line)?;
            self.printer.flush()?;
        }
        self.found.push((round, finding));
        Ok(())
    }

    /// Tells everything, and fails if a count differs.
    pub(super) fn tell(&mut self, svg: Option<&Path>, markdown: Option<&Path>) -> Result<(), Failure> {
        match self.printer.style() {
            Style::Json => self.medians_for_programs()?,
            Style::People { .. } => self.people()?,
        }
        self.printer.flush()?;
        if let Some(path) = svg {
            let findings: Vec<_> = self.found.iter().map(|(_, finding)| finding).collect();
            chart::draw(&findings, &self.machine).and_then(|svg| write(path, &svg))?;
        }
        if let Some(path) = markdown {
            write(path, &self.page())?;
        }
        self.verdict()
    }

    fn medians_for_programs(&mut self) -> Result<(), Failure> {
        let mut lines = Vec::new();
        for found in self.by_run() {
            let [first, _, ..] = found.as_slice() else { continue };
            lines.push(json(&Median {
                bench: first.bench,
                how: &first.how,
                rounds: found.len(),
                median_per_second: median(found.iter().map(|finding| finding.per_second)),
                ok: found.iter().all(|finding| finding.wrong().next().is_none()),
            }));
        }
        for line in lines {
            self.printer.line(&line)?;
        }
        Ok(())
    }

    fn people(&mut self) -> Result<(), Failure> {
        let mut lines = vec![self.machine.clone()];
        lines.extend(table(
            ["bench", "how", "count", "per second", "p50 ms", "p99 ms", "max ms", ""],
            self.rows(),
        ));
        lines.extend(self.figures());
        for line in lines {
            self.printer.line(&line)?;
        }
        Ok(())
    }

    /// A row for each distribution, or one if there is none: of several rounds the medians.
    fn rows(&self) -> Vec<[String; 8]> {
        let mut rows = Vec::new();
        for found in self.by_run() {
            let Some(first) = found.first() else { continue };
            let rate = median(found.iter().map(|finding| finding.per_second));
            let ok = found.iter().all(|finding| finding.wrong().next().is_none());
            let verdict = if ok { "ok" } else { "WRONG" };
            let start =
                [first.bench.to_owned(), first.how.clone(), first.events.to_string(), format!("{rate:.0}")];
            let row = |[p50, p99, max]: [String; 3], last: String| {
                let [bench, how, count, rate] = start.clone();
                [bench, how, count, rate, p50, p99, max, last]
            };
            if first.latency_ms.is_empty() {
                rows.push(row([const { String::new() }; 3], verdict.to_owned()));
            }
            for &what in first.latency_ms.keys() {
                let all = found.iter().filter_map(|finding| finding.latency_ms.get(what));
                let at = |part: fn(&super::finding::Quantiles) -> f64| {
                    format!("{:.2}", median(all.clone().map(part)))
                };
                let times = [at(|times| times.p50), at(|times| times.p99), at(|times| times.max)];
                rows.push(row(times, format!("{what}: {verdict}")));
            }
        }
        rows
    }

    /// Other numbers, a line each.
    fn figures(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for found in self.by_run() {
            let Some(first) = found.first() else { continue };
            for &what in first.figures.keys() {
                let value = median(found.iter().filter_map(|finding| finding.figures.get(what).copied()));
                lines.push(format!("{} {}: {what} {value:.1}", first.bench, first.how));
            }
        }
        lines
    }

    fn page(&self) -> String {
        let mut page = format!("Machine: {}.\n\n", self.machine);
        page += "| bench | how | count | per second | p50 ms | p99 ms | max ms | what, counts |\n";
        page += "|---|---|--:|--:|--:|--:|--:|---|\n";
        for row in self.rows() {
            let _ = writeln!(page, "| {} |", row.join(" | "));
        }
        let figures = self.figures();
        if !figures.is_empty() {
            page += "\n";
            for line in &figures {
                let _ = writeln!(page, "- {line}");
            }
        }
        page
    }

    /// The findings of one run, over all rounds.
    fn by_run(&self) -> Vec<Vec<&Finding>> {
        let mut order = Vec::new();
        let mut runs: BTreeMap<(&str, &str), Vec<&Finding>> = BTreeMap::new();
        for (_, finding) in &self.found {
            let key = (finding.bench, finding.how.as_str());
            let run = runs.entry(key).or_default();
            if run.is_empty() {
                order.push(key);
            }
            run.push(finding);
        }
        order.iter().filter_map(|key| runs.remove(key)).collect()
    }

    fn verdict(&self) -> Result<(), Failure> {
        let mut wrong = Vec::new();
        for (_, finding) in &self.found {
            for count in finding.wrong() {
                wrong.push(format!(
                    "bench {}: {}: {} instead of {}",
                    finding.bench, count.what, count.found, count.expected
                ));
            }
        }
        let Some(last) = wrong.pop() else { return Ok(()) };
        wrong.iter().for_each(|line| remark(line));
        Err(Failure::new(code::INTERNAL, last))
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| {
        Failure::new(code::INTERNAL, format!("{} can't be written: {error}", path.display()))
    })
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.as_slice() {
        [] => 0.0,
        all if all.len() % 2 == 1 => all[middle],
        all => f64::midpoint(all[middle - 1], all[middle]),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{
        super::finding::{Count, Times},
        *,
    };

    fn report(found: u64) -> Report {
        let mut report = Report::new(Printer::new(Style::People { colours: false }, true));
        for (round, seconds) in [(1, 1), (2, 2), (3, 4)] {
            let mut times = Times::new();
            times.record(Duration::from_millis(3));
            let finding = Finding::new("publish", "2 clients".to_owned(), 100, Duration::from_secs(seconds))
                .timed("publish to ack", times)
                .figure("hub processor us/event", Some(7.0))
                .counted([Count::new("stored", 100, found)]);
            report.add(round, finding).unwrap();
        }
        report
    }

    #[test]
    fn rounds_are_one_row_of_medians() {
        let rows = report(100).rows();
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0][2..4], ["100", "50"]);
        assert!(rows[0][4].starts_with("3.0"), "{rows:?}");
        assert!(report(100).page().contains("\n| publish | 2 clients | 100 | 50 | "));
        assert!(report(100).verdict().is_ok());
    }

    #[test]
    fn a_count_that_differs_fails_and_is_named() {
        let Err(Failure::Told { sentence, .. }) = report(99).verdict() else { panic!("it is to fail") };
        assert_eq!(sentence, "bench publish: stored: 99 instead of 100");
    }
}
