//! `eventflow bench consume`: the whole way of an event.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use clap::Args;
use eventflow::spoke::{self, Consumer, Spoke};

use super::{
    Stage,
    finding::{Count, Finding, Times},
    load::Load,
    many, payload,
    tally::{Tally, reaches},
    target,
};
use crate::failure::Failure;

/// Publish events and consume them: how many are handled, and their outcome recorded, per second.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example: eventflow bench consume --events 2000 --consumers 2")]
pub(super) struct Consume {
    /// How many events
    #[arg(long, value_name = "N", default_value = "100000", value_parser = many)]
    pub(super) events: usize,
    /// How many publishing clients, each with a link of its own
    #[arg(long, value_name = "N", default_value = "2", value_parser = many)]
    pub(super) clients: usize,
    /// Events of each publishing client that aren't acknowledged yet, at most
    #[arg(long, value_name = "N", default_value = "256", value_parser = many)]
    pub(super) window: usize,
    /// How many consumers, each with a link of its own
    #[arg(long, value_name = "N", default_value = "2", value_parser = many)]
    pub(super) consumers: usize,
    /// Handlers at once in each consumer
    #[arg(long, value_name = "N", default_value = "16", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(super) concurrency: u32,
    /// Events that each consumer may have in hand, handled or not
    #[arg(long, value_name = "N", default_value = "64", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(super) credit: u32,
    /// Events per second of all clients together [default: as fast as it goes]
    #[arg(long, value_name = "N", value_parser = many)]
    pub(super) rate: Option<usize>,
}

impl Consume {
    pub(super) async fn run(&self, stage: &Stage) -> Result<Vec<Finding>, Failure> {
        Ok(vec![self.measure(stage, "consume").await?])
    }

    /// Measures it under this name.
    pub(super) async fn measure(&self, stage: &Stage, name: &'static str) -> Result<Finding, Failure> {
        let load = Arc::new(Load::new(self.events, stage.bytes, self.window, self.rate.map(super::float)));
        let workers = Workers::start(self, stage, &load).await?;
        let publishers = stage.target.spokes(self.clients).await?;
        stage.progress.begin(name, self.events);
        let (began, worked) = (Instant::now(), stage.worked());
        let loaded = load.publish(&publishers, None).await?;
        reaches(self.events as u64, || workers.confirmed()).await;
        let took = began.elapsed();
        let work = stage.work_since(worked, self.events);
        target::close(publishers).await;
        let (handled, waits) = workers.stop().await?;
        Ok(Finding::new(name, self.how(stage.bytes), self.events, took)
            .timed("publish to ack", loaded.acks)
            .timed("publish to handler", waits)
            .figure("hub processor us/event", work)
            .counted(loaded.counts)
            .counted(handled))
    }

    fn how(&self, bytes: usize) -> String {
        let Self { clients, window, consumers, concurrency, rate, .. } = self;
        let rate = rate.map(|rate| format!(", {rate}/s")).unwrap_or_default();
        format!("{clients} clients x {window}, {consumers} consumers x {concurrency}, {bytes} B{rate}")
    }
}

/// Consumers at work.
struct Workers {
    all: Vec<(Spoke, Consumer, Arc<Mutex<Times>>)>,
    tally: Arc<Tally>,
}

impl Workers {
    async fn start(consume: &Consume, stage: &Stage, load: &Arc<Load>) -> Result<Self, Failure> {
        let tally = Arc::new(Tally::new(load.events));
        let mut all = Vec::with_capacity(consume.consumers);
        for spoke in stage.target.spokes(consume.consumers).await? {
            let waits = Arc::new(Mutex::new(Times::new()));
            let (load, seen, times) = (load.clone(), tally.clone(), waits.clone());
            let progress = stage.progress.clone();
            let wanted = spoke::Consume::new(load.domain.to_string(), "*")
                .concurrency(consume.concurrency)
                .credit(consume.credit);
            let handler = move |event: eventflow::event::Event| {
                let number = payload::number(event.data.as_str());
                if let Some(number) = number {
                    times.lock().unwrap_or_else(PoisonError::into_inner).record(load.age(number));
                }
                seen.see(number);
                progress.step();
                async { Ok::<(), String>(()) }
            };
            let consumer = spoke.consume(wanted, handler).await?;
            all.push((spoke, consumer, waits));
        }
        Ok(Self { all, tally })
    }

    /// Acks that the hub has confirmed.
    fn confirmed(&self) -> u64 {
        self.all.iter().map(|(_, consumer, _)| consumer.counts().acked).sum()
    }

    /// Stops them; what they counted, and how old events were when they came.
    async fn stop(self) -> Result<(Vec<Count>, Times), Failure> {
        let mut waits = Times::new();
        let (mut acked, mut nacked, mut lost) = (0, 0, 0);
        for (spoke, consumer, times) in self.all {
            let counts = consumer.stop().await?;
            acked += counts.acked;
            nacked += counts.nacked;
            lost += counts.lost;
            waits.add(&times.lock().unwrap_or_else(PoisonError::into_inner));
            spoke.close().await;
        }
        let handled = self.tally.counts("handled");
        let expected = handled.first().map_or(0, |count| count.expected);
        let outcomes = [
            Count::new("outcomes recorded", expected, acked),
            Count::new("handlers failed", 0, nacked),
            Count::new("claims lost", 0, lost),
        ];
        Ok((handled.into_iter().chain(outcomes).collect(), waits))
    }
}
