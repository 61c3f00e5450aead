//! `eventflow bench all`: one run of each, for a table.

use std::time::Duration;

use clap::Args;

use super::{
    Stage, consume::Consume, fanout::Fanout, finding::Finding, idle::Idle, latency::Latency,
    publish::Publish, storm::Storm,
};
use crate::failure::Failure;

/// Measure all but the soak, one after the other; --markdown FILE makes a page of it.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow bench all --embedded --short --markdown bench.md")]
pub(super) struct All {
    /// A few seconds, to see that it works; the numbers say little
    #[arg(long)]
    short: bool,
}

impl All {
    pub(super) async fn run(&self, stage: &Stage) -> Result<Vec<Finding>, Failure> {
        let scale = if self.short { 100 } else { 1 };
        let events = 100_000 / scale;
        let publish = Publish { events, clients: 2, window: 256, rate: None };
        let consume = Consume {
            events,
            clients: 2,
            window: 256,
            consumers: 2,
            concurrency: 16,
            credit: 64,
            rate: None,
        };
        let subscribers = if self.short { 10 } else { 1_000 };
        let fanout = Fanout {
            subscribers,
            events: 10_000 / scale,
            window: 256,
            rate: None,
            timeout: Duration::from_secs(600),
        };
        let latency = match self.short {
            true => Latency { rate: vec![100], duration: Duration::from_secs(1) },
            false => Latency { rate: Vec::new(), duration: Duration::from_secs(10) },
        };
        let storm = Storm { clients: 3_000 / scale, at_once: 32 };
        let mut findings = publish.run(stage).await?;
        findings.extend(consume.run(stage).await?);
        findings.extend(latency.run(stage).await?);
        findings.extend(fanout.run(stage).await?);
        findings.extend(storm.run(stage).await?);
        if stage.target.meter.is_some() {
            let idle = Idle { clients: 2_000 / scale, claims: 10_000 / scale };
            findings.extend(idle.run(stage).await?);
        }
        Ok(findings)
    }
}
