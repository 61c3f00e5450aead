//! `eventflow bench soak`: nothing grows with the count of events.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use clap::Args;

use super::{
    Stage,
    consume::Consume,
    finding::{Count, Course, Finding},
    float,
    idle::unknown_process,
    many,
    meter::Meter,
};
use crate::{failure::Failure, parse};

/// By what part memory and descriptors may grow.
const GROWTH: f64 = 0.1;
/// Growth below this many bytes says nothing: caches fill, allocators keep.
const NOISE: u64 = 8 << 20;
/// Descriptors that come and go.
const SPARE: u64 = 8;
/// Events by which the pace is found, if none is given.
const TRIAL: usize = 20_000;

/// Publish and consume for long at half the pace that the hub can, and watch its memory and descriptors.
///
/// What is compared is the median of the second tenth of the time, when caches have filled, with that of the last. If
/// either grows by more than 10 % (and 8 MiB, or 8 descriptors) the exit code is 1. It needs the hub's process: with
/// --embedded, or by --hub-pid.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow bench soak --embedded --duration 3s --rate 200")]
pub(super) struct Soak {
    /// For how long
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse::duration)]
    pub(super) duration: Duration,
    /// Events per second [default: half of what a trial of 20,000 events brings]
    #[arg(long, value_name = "N", value_parser = many)]
    pub(super) rate: Option<usize>,
}

/// What was seen at one moment.
#[derive(Clone, Copy)]
struct Sample {
    seconds: f64,
    memory: u64,
    descriptors: u64,
}

impl Soak {
    pub(super) async fn run(&self, stage: &Stage) -> Result<Vec<Finding>, Failure> {
        let meter = stage.target.meter.ok_or_else(unknown_process)?;
        let rate = match self.rate {
            Some(rate) => rate,
            None => {
                let trial = Consume { rate: None, events: TRIAL, ..load(1, Duration::from_secs(1)) };
                let found = trial.measure(stage, "soak").await?;
                ((found.per_second / 2.0) as usize).max(1)
            }
        };
        let samples = Arc::new(Mutex::new(Vec::new()));
        let kept = samples.clone();
        // A hundred looks or more, however short it is.
        let often = (self.duration / 100).clamp(Duration::from_millis(20), Duration::from_secs(1));
        let began = Instant::now();
        let watching = tokio::spawn(async move {
            loop {
                if let Some(sample) = look(meter, began) {
                    kept.lock().unwrap_or_else(PoisonError::into_inner).push(sample);
                }
                tokio::time::sleep(often).await;
            }
        });
        let finding = load(rate, self.duration).measure(stage, "soak").await;
        watching.abort();
        let samples = std::mem::take(&mut *samples.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(vec![judged(finding?, &samples)])
    }
}

fn load(rate: usize, duration: Duration) -> Consume {
    let events = ((float(rate) * duration.as_secs_f64()) as usize).max(1);
    Consume { events, clients: 2, window: 256, consumers: 2, concurrency: 16, credit: 64, rate: Some(rate) }
}

fn look(meter: Meter, began: Instant) -> Option<Sample> {
    Some(Sample {
        seconds: began.elapsed().as_secs_f64(),
        memory: meter.memory()?,
        descriptors: meter.descriptors()?,
    })
}

/// Says how much grew; too much is a count that differs.
fn judged(finding: Finding, samples: &[Sample]) -> Finding {
    let tenth = (samples.len() / 10).max(1);
    let early = samples.get(tenth..2 * tenth).unwrap_or(samples);
    let late = samples.get(samples.len().saturating_sub(tenth)..).unwrap_or(samples);
    let memory = |samples: &[Sample]| median(samples.iter().map(|sample| sample.memory));
    let descriptors = |samples: &[Sample]| median(samples.iter().map(|sample| sample.descriptors));
    let (memory, descriptors) = ((memory(early), memory(late)), (descriptors(early), descriptors(late)));
    let mut finding = finding
        .figure("hub MiB early", Some(mebibytes(memory.0)))
        .figure("hub MiB late", Some(mebibytes(memory.1)))
        .figure("hub descriptors early", Some(descriptors.0 as f64))
        .figure("hub descriptors late", Some(descriptors.1 as f64))
        .counted([
            Count::new("memory grew too much", 0, u64::from(grew(memory, NOISE))),
            Count::new("descriptors grew too much", 0, u64::from(grew(descriptors, SPARE))),
            Count::new("watched", 1, u64::from(!samples.is_empty())),
        ]);
    let points = samples.iter().map(|sample| (sample.seconds, mebibytes(sample.memory))).collect();
    finding.courses.push(Course { what: "hub memory, MiB".to_owned(), points });
    finding
}

fn grew((early, late): (u64, u64), spare: u64) -> bool {
    late as f64 > early as f64 * (1.0 + GROWTH) && late > early + spare
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn median(values: impl Iterator<Item = u64>) -> u64 {
    let mut values: Vec<_> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(memory: impl Fn(u64) -> u64) -> Vec<String> {
        let sample = |second: u64| Sample { seconds: second as f64, memory: memory(second), descriptors: 20 };
        let samples: Vec<_> = (0..100).map(sample).collect();
        let finding = Finding::new("soak", String::new(), 1, Duration::from_secs(1));
        judged(finding, &samples).wrong().map(|count| count.what.clone()).collect()
    }

    #[test]
    fn what_grows_is_told_and_what_fills_once_is_not() {
        assert!(after(|_| 100 << 20).is_empty());
        assert!(after(|second| (50 << 20) + second.min(5) * (10 << 20)).is_empty(), "it fills once");
        assert_eq!(after(|second| (100 << 20) + second * (1 << 20)), ["memory grew too much"]);
    }
}
