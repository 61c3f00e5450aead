//! `eventflow bench …`: what a hub can do, measured from outside, each count verified.

mod all;
mod chart;
mod consume;
mod fanout;
mod finding;
mod idle;
mod latency;
mod load;
mod meter;
mod pace;
mod payload;
mod progress;
mod publish;
mod report;
mod soak;
mod storm;
mod tally;
mod target;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use eventflow::spoke::SpokeConfig;

use self::{finding::Finding, meter::Meter, progress::Progress, report::Report, target::Target};
use crate::{failure::Failure, output::Printer, parse, stop::Stop};

/// Measure a hub: publishing, consuming, fan-out, latency, connecting, memory.
///
/// Each run counts what it published, what came and how often. If anything is lost or comes twice the exit code is 1,
/// and the count that differs is named. Latency at a rate counts from when each event was due, not from when it could
/// be sent, so that a hub that stalls doesn't hide it. What is published stays in the hub, in a domain of its own that
/// begins with `bench.`; with --embedded it goes with the hub.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow bench publish --events 2000")]
pub(crate) struct Bench {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    work: Work,
}

/// What all runs have in common.
#[derive(Debug, Args)]
#[command(next_help_heading = "Bench")]
struct Common {
    /// Measure a hub of its own: the program `eventflow-hub` beside this one, in a temporary folder (in TMPDIR), ended and removed afterwards
    #[arg(long, global = true)]
    embedded: bool,
    /// A flag for the hub of --embedded, such as --hub-flag=--store-durability=relaxed; may be repeated
    #[arg(long, global = true, value_name = "FLAG", requires = "embedded", allow_hyphen_values = true)]
    hub_flag: Vec<String>,
    /// The hub's process on this machine, whose memory and processor time are then told too
    #[arg(long, global = true, value_name = "PID", conflicts_with = "embedded")]
    hub_pid: Option<u32>,
    /// Bytes of data in each event, from 16
    #[arg(long, global = true, value_name = "BYTES", default_value_t = 300, value_parser = clap::value_parser!(u32).range(16..=1_000_000))]
    bytes: u32,
    /// How often to run it; the median is told besides
    #[arg(long, global = true, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Draw a chart into this file
    #[arg(long, global = true, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write a table in Markdown into this file
    #[arg(long, global = true, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

// Their help stands at the arguments of each.
#[derive(Debug, Subcommand)]
enum Work {
    Publish(publish::Publish),
    Consume(consume::Consume),
    Fanout(fanout::Fanout),
    Latency(latency::Latency),
    Storm(storm::Storm),
    Idle(idle::Idle),
    Soak(soak::Soak),
    All(all::All),
}

/// What a run has at hand.
struct Stage {
    target: Target,
    /// Bytes of data in each event.
    bytes: usize,
    progress: Progress,
}

impl Stage {
    /// Seconds of processor that the hub has used, if its process is known.
    fn worked(&self) -> Option<f64> {
        self.target.meter.and_then(Meter::worked)
    }

    /// Microseconds of processor that each of so many took the hub since then.
    fn work_since(&self, before: Option<f64>, count: usize) -> Option<f64> {
        Some((self.worked()? - before?) * 1e6 / float(count))
    }
}

/// Measures, tells, and fails if a count differs.
pub(crate) async fn run(
    bench: Bench,
    config: impl FnOnce() -> Result<SpokeConfig, Failure>,
    printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    let Bench { common, work } = bench;
    let progress = Progress::start(printer.is_quiet());
    let work = async {
        let target = match common.embedded {
            true => Target::embedded(&common.hub_flag).await?,
            false => Target::running(config()?, common.hub_pid),
        };
        let bytes = usize::try_from(common.bytes).unwrap_or(usize::MAX);
        let stage = Stage { target, bytes, progress: progress.clone() };
        let mut report = Report::new(printer);
        for round in 1..=common.rounds {
            for finding in work.run(&stage).await? {
                report.add(round, finding)?;
            }
        }
        stage.progress.end();
        stage.target.end().await;
        Ok::<_, Failure>(report)
    };
    let mut report = stop.unless_requested(work).await?;
    progress.end();
    report.tell(common.svg.as_deref(), common.markdown.as_deref())
}

impl Work {
    async fn run(&self, stage: &Stage) -> Result<Vec<Finding>, Failure> {
        match self {
            Self::Publish(publish) => publish.run(stage).await,
            Self::Consume(consume) => consume.run(stage).await,
            Self::Fanout(fanout) => fanout.run(stage).await,
            Self::Latency(latency) => latency.run(stage).await,
            Self::Storm(storm) => storm.run(stage).await,
            Self::Idle(idle) => idle.run(stage).await,
            Self::Soak(soak) => soak.run(stage).await,
            Self::All(all) => all.run(stage).await,
        }
    }
}

/// How many of something, as an argument: from 1, below what a process can hold.
fn many(text: &str) -> Result<usize, String> {
    let count = parse::count(text)?;
    usize::try_from(count)
        .ok()
        .filter(|count| *count <= 100_000_000)
        .ok_or_else(|| "must be at most 100,000,000".to_owned())
}

/// Counts of this size are exact in a float.
fn float(count: usize) -> f64 {
    count as f64
}
