//! `eventflow bench latency`: from publish to handler at fixed rates.

use std::time::Duration;

use clap::Args;

use super::{Stage, consume::Consume, finding::Finding, many};
use crate::{failure::Failure, parse};

/// Publish at fixed rates and consume: after what time a handler has each event.
///
/// Each time counts from when the event was due. A hub, or a client, that falls behind is seen in full: what waits for
/// it is late by all that it waited.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow bench latency --rate 100 --rate 500 --duration 2s")]
pub(super) struct Latency {
    /// Events per second; may be repeated [default: 1000 and 10000]
    #[arg(long, value_name = "N", value_parser = many)]
    pub(super) rate: Vec<usize>,
    /// For how long at each
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse::duration)]
    pub(super) duration: Duration,
}

impl Latency {
    pub(super) async fn run(&self, stage: &Stage) -> Result<Vec<Finding>, Failure> {
        let rates = if self.rate.is_empty() { &[1_000, 10_000] } else { self.rate.as_slice() };
        let mut findings = Vec::with_capacity(rates.len());
        for &rate in rates {
            let consume = at(rate, self.duration);
            let mut finding = consume.measure(stage, "latency").await?;
            finding.how = format!("{rate}/s, {} B", stage.bytes);
            findings.push(finding);
        }
        Ok(findings)
    }
}

/// One publisher and one consumer at a rate.
pub(super) fn at(rate: usize, duration: Duration) -> Consume {
    let events = (super::float(rate) * duration.as_secs_f64()) as usize;
    Consume {
        events: events.max(1),
        clients: 1,
        // Nothing is held back: what is due is sent.
        window: 10_000,
        consumers: 1,
        concurrency: 64,
        credit: 256,
        rate: Some(rate),
    }
}
