//! `eventflow bench fanout`: one publisher, many subscribers.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use clap::Args;
use eventflow::spoke::{Delivery, Spoke, Subscription};
use tokio::task::JoinSet;

use super::{
    Stage,
    finding::{Count, Finding, Times},
    load::Load,
    many, payload,
    tally::{Tally, reaches},
    target,
};
use crate::{failure::Failure, parse};

/// How many events the publisher is ahead of the subscribers at most, in the mean: less than hubs and clients hold for
/// each of them.
const AHEAD: usize = 1_000;

/// Publish to many subscribers, each with a link of its own: how many deliveries come per second.
///
/// Each must get each event once, with nothing left out.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow bench fanout --subscribers 5 --events 500")]
pub(super) struct Fanout {
    /// How many subscribers
    #[arg(long, value_name = "N", default_value = "100", value_parser = many)]
    pub(super) subscribers: usize,
    /// How many events
    #[arg(long, value_name = "N", default_value = "10000", value_parser = many)]
    pub(super) events: usize,
    /// Events that aren't acknowledged yet, at most
    #[arg(long, value_name = "N", default_value = "256", value_parser = many)]
    pub(super) window: usize,
    /// Events per second [default: as fast as it goes]
    #[arg(long, value_name = "N", value_parser = many)]
    pub(super) rate: Option<usize>,
    /// How long all of it may take
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse::duration)]
    pub(super) timeout: Duration,
}

/// What one subscriber got.
struct Got {
    tally: Tally,
    left_out: u64,
    waits: Times,
}

impl Fanout {
    pub(super) async fn run(&self, stage: &Stage) -> Result<Vec<Finding>, Failure> {
        let all = Arc::new(AtomicU64::new(0));
        let (arrived, subscribers) = (all.clone(), self.subscribers as u64);
        let load = Load::new(self.events, stage.bytes, self.window, self.rate.map(super::float));
        let load = Arc::new(load.limited(move || {
            AHEAD + usize::try_from(arrived.load(Ordering::Relaxed) / subscribers).unwrap_or(usize::MAX / 2)
        }));
        let spokes = stage.target.spokes(self.subscribers).await?;
        let got = Arc::new(Mutex::new(Vec::with_capacity(self.subscribers)));
        let mut readers = JoinSet::new();
        for spoke in &spokes {
            let events = spoke.subscribe(&load.domain, "*").await?;
            let (spoke, load, all, got) = (spoke.clone(), load.clone(), all.clone(), got.clone());
            let progress = stage.progress.clone();
            readers.spawn(async move {
                let read = read(spoke, events, &load, || {
                    all.fetch_add(1, Ordering::Relaxed);
                    progress.step();
                });
                let read = read.await;
                got.lock().unwrap_or_else(PoisonError::into_inner).push(read);
            });
        }
        let deliveries = self.events * self.subscribers;
        let publisher = stage.target.spokes(1).await?;
        stage.progress.begin("fanout", deliveries);
        let (began, worked) = (Instant::now(), stage.worked());
        let loaded = load.publish(&publisher, None).await?;
        let arrived = reaches(deliveries as u64, || all.load(Ordering::Relaxed));
        // Late is lost: the counts say so.
        let _ = tokio::time::timeout(self.timeout, arrived).await;
        let took = began.elapsed();
        let work = stage.work_since(worked, deliveries);
        // Each reader ends with its subscription.
        target::close(publisher).await;
        target::close(spokes).await;
        readers.join_all().await;
        let got = std::mem::take(&mut *got.lock().unwrap_or_else(PoisonError::into_inner));
        let (counts, waits) = self.sum(got);
        let finding = Finding::new("fanout", self.how(stage.bytes), deliveries, took)
            .timed("publish to subscriber", waits)
            .figure("hub processor us/delivery", work)
            .counted(loaded.counts)
            .counted(counts);
        Ok(vec![finding])
    }

    fn how(&self, bytes: usize) -> String {
        let rate = self.rate.map(|rate| format!(", {rate}/s")).unwrap_or_default();
        format!("1 publisher x {}, {} subscribers, {bytes} B{rate}", self.window, self.subscribers)
    }

    fn sum(&self, got: Vec<Got>) -> (Vec<Count>, Times) {
        let mut waits = Times::new();
        let (mut came, mut twice, mut left_out) = (0, 0, 0);
        for got in &got {
            waits.add(&got.waits);
            left_out += got.left_out;
            if let [once, doubled, ..] = got.tally.counts("delivered").as_slice() {
                came += once.found;
                twice += doubled.found;
            }
        }
        let counts = vec![
            Count::new("delivered", (self.events * self.subscribers) as u64, came),
            Count::new("delivered twice", 0, twice),
            Count::new("times left out", 0, left_out),
        ];
        (counts, waits)
    }
}

/// Reads until the spoke is closed.
async fn read(spoke: Spoke, mut events: Subscription, load: &Load, each: impl Fn()) -> Got {
    let mut got = Got { tally: Tally::new(load.events), left_out: 0, waits: Times::new() };
    while let Some(delivery) = events.next().await {
        match delivery {
            Delivery::Event { event, .. } => {
                let number = payload::number(event.data.as_str());
                if let Some(number) = number {
                    got.waits.record(load.age(number));
                }
                got.tally.see(number);
                each();
            }
            Delivery::Gap { from, to } if from == to => {}
            _ => got.left_out += 1,
        }
    }
    drop(spoke);
    got
}
