//! What a run found.

use std::{collections::BTreeMap, time::Duration};

use hdrhistogram::Histogram;
use serde::Serialize;

/// A number that must be what it is to be.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Count {
    pub(super) what: String,
    pub(super) expected: u64,
    pub(super) found: u64,
}

impl Count {
    pub(super) fn new(what: &str, expected: u64, found: u64) -> Self {
        Self { what: what.to_owned(), expected, found }
    }

    pub(super) fn is_wrong(&self) -> bool {
        self.expected != self.found
    }
}

/// A distribution of times, in milliseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Quantiles {
    pub(super) p50: f64,
    pub(super) p90: f64,
    pub(super) p99: f64,
    pub(super) p99_9: f64,
    pub(super) max: f64,
}

/// Something that grows or sinks over a run.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Course {
    pub(super) what: String,
    /// Seconds since the beginning, and the value then.
    pub(super) points: Vec<(f64, f64)>,
}

/// What a run found.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Finding {
    /// The subcommand.
    pub(super) bench: &'static str,
    /// How it was run, for people.
    pub(super) how: String,
    pub(super) events: u64,
    pub(super) seconds: f64,
    pub(super) per_second: f64,
    /// From what to what, and how long that took.
    pub(super) latency_ms: BTreeMap<&'static str, Quantiles>,
    /// Other numbers, each named with its unit.
    pub(super) figures: BTreeMap<&'static str, f64>,
    pub(super) counts: Vec<Count>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) courses: Vec<Course>,
    /// What the quantiles are from, for the chart.
    #[serde(skip)]
    pub(super) times: Vec<(&'static str, Times)>,
}

impl Finding {
    pub(super) fn new(bench: &'static str, how: String, events: usize, took: Duration) -> Self {
        let seconds = took.as_secs_f64();
        Self {
            bench,
            how,
            events: events as u64,
            seconds,
            per_second: super::float(events) / seconds,
            latency_ms: BTreeMap::new(),
            figures: BTreeMap::new(),
            counts: Vec::new(),
            courses: Vec::new(),
            times: Vec::new(),
        }
    }

    /// Adds a distribution, unless nothing was recorded.
    pub(super) fn timed(mut self, what: &'static str, times: Times) -> Self {
        if let Some(quantiles) = times.quantiles() {
            self.latency_ms.insert(what, quantiles);
            self.times.push((what, times));
        }
        self
    }

    pub(super) fn counted(mut self, counts: impl IntoIterator<Item = Count>) -> Self {
        self.counts.extend(counts);
        self
    }

    pub(super) fn figure(mut self, what: &'static str, value: Option<f64>) -> Self {
        if let Some(value) = value {
            self.figures.insert(what, value);
        }
        self
    }

    pub(super) fn wrong(&self) -> impl Iterator<Item = &Count> {
        self.counts.iter().filter(|count| count.is_wrong())
    }
}

/// Times as they are measured, to a microsecond, three digits exact. None only if the bounds were wrong.
#[derive(Debug, Clone)]
pub(super) struct Times(Option<Histogram<u32>>);

/// Beyond it a time counts as this long, in microseconds.
const LONGEST: u64 = 600_000_000;

impl Times {
    pub(super) fn new() -> Self {
        Self(Histogram::new_with_bounds(1, LONGEST, 3).ok())
    }

    pub(super) fn record(&mut self, time: Duration) {
        if let Some(histogram) = &mut self.0 {
            histogram.saturating_record(u64::try_from(time.as_micros()).unwrap_or(LONGEST));
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        if let (Some(histogram), Some(other)) = (&mut self.0, &other.0) {
            // Fails only for other bounds.
            let _ = histogram.add(other);
        }
    }

    pub(super) fn quantiles(&self) -> Option<Quantiles> {
        self.0.as_ref().filter(|histogram| !histogram.is_empty())?;
        let at = |quantile| self.at(quantile);
        Some(Quantiles { p50: at(0.5), p90: at(0.9), p99: at(0.99), p99_9: at(0.999), max: at(1.0) })
    }

    /// Milliseconds within which this part of all came.
    pub(super) fn at(&self, quantile: f64) -> f64 {
        self.0.as_ref().map_or(0.0, |histogram| histogram.value_at_quantile(quantile) as f64 / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_quantiles_once_there_are_any() {
        let mut times = Times::new();
        assert!(times.quantiles().is_none());
        (1..=1_000).for_each(|ms| times.record(Duration::from_millis(ms)));
        times.record(Duration::from_secs(100_000)); // counts as the longest
        let quantiles = times.quantiles().unwrap();
        assert!((quantiles.p50 - 501.0).abs() < 1.0, "{quantiles:?}");
        assert!(quantiles.max >= 600_000.0, "{quantiles:?}");
    }

    #[test]
    fn a_count_that_differs_is_wrong() {
        let finding = Finding::new("publish", String::new(), 10, Duration::from_secs(2))
            .counted([Count::new("acked", 10, 10), Count::new("stored", 10, 9)]);
        let wrong: Vec<_> = finding.wrong().map(|count| count.what.as_str()).collect();
        assert_eq!(wrong, ["stored"]);
        assert!((finding.per_second - 5.0).abs() < f64::EPSILON);
    }
}
