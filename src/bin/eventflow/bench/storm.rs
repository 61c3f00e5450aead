//! `eventflow bench storm`: many clients connect at once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use clap::Args;
use eventflow::spoke::{Publish, Spoke};
use tokio::{sync::oneshot, task::JoinSet};

use super::{
    Stage,
    finding::{Count, Finding, Times},
    many,
    pace::{Pace, interval},
    target,
};
use crate::failure::Failure;

/// Publishes a second by which it is seen what others notice of it.
const PROBES: f64 = 100.0;
/// For how long before.
const BEFORE: Duration = Duration::from_secs(2);

/// Connect many clients as fast as it goes, each by a full handshake of mutual TLS: how many per second.
///
/// Meanwhile another client publishes 100 events a second: after what time they are acknowledged, before and during the
/// storm.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow bench storm --clients 50")]
pub(super) struct Storm {
    /// How many clients
    #[arg(long, value_name = "N", default_value = "1000", value_parser = many)]
    pub(super) clients: usize,
    /// Connections under way at once
    #[arg(long, value_name = "N", default_value = "32", value_parser = many)]
    pub(super) at_once: usize,
}

impl Storm {
    pub(super) async fn run(&self, stage: &Stage) -> Result<Vec<Finding>, Failure> {
        let probe = stage.target.spoke().await?;
        let before = Probes::start(&probe);
        tokio::time::sleep(BEFORE).await;
        let before = before.stop().await;
        let during = Probes::start(&probe);
        stage.progress.begin("storm", self.clients);
        let worked = stage.worked();
        let (took, spokes, times) = self.connect(stage).await?;
        let work = stage.work_since(worked, self.clients);
        let during = during.stop().await;
        let linked = spokes.iter().filter(|spoke| spoke.status().hub.is_some()).count();
        let links_lost: u64 = spokes.iter().map(|spoke| spoke.status().links_lost).sum();
        target::close(spokes).await;
        probe.close().await;
        let how = format!("{} clients, {} at once", self.clients, self.at_once);
        let finding = Finding::new("storm", how, self.clients, took)
            .timed("connect", times)
            .timed("others' publish to ack before", before.times)
            .timed("others' publish to ack during", during.times)
            .figure("hub processor us/connection", work)
            .counted([
                Count::new("connected", self.clients as u64, linked as u64),
                Count::new("links lost", 0, links_lost),
                Count::new("others' publishes failed", 0, before.failed + during.failed),
            ]);
        Ok(vec![finding])
    }

    async fn connect(&self, stage: &Stage) -> Result<(Duration, Vec<Spoke>, Times), Failure> {
        let begun = Arc::new(AtomicUsize::new(0));
        let began = Instant::now();
        let mut workers = JoinSet::new();
        for _ in 0..self.at_once {
            let (begun, config, most) = (begun.clone(), stage.target.config(), self.clients);
            let progress = stage.progress.clone();
            workers.spawn(async move {
                let (mut spokes, mut times) = (Vec::new(), Times::new());
                while begun.fetch_add(1, Ordering::Relaxed) < most {
                    let since = Instant::now();
                    spokes.push(Spoke::connect(config.clone()).await?);
                    times.record(since.elapsed());
                    progress.step();
                }
                Ok::<_, Failure>((spokes, times))
            });
        }
        let (mut spokes, mut times) = (Vec::with_capacity(self.clients), Times::new());
        for worker in workers.join_all().await {
            let (connected, took) = worker?;
            spokes.extend(connected);
            times.add(&took);
        }
        Ok((began.elapsed(), spokes, times))
    }
}

/// Publishes all the while.
struct Probes {
    stop: oneshot::Sender<()>,
    running: tokio::task::JoinHandle<Probed>,
}

struct Probed {
    times: Times,
    failed: u64,
}

impl Probes {
    fn start(spoke: &Spoke) -> Self {
        let (stop, mut stopped) = oneshot::channel();
        let spoke = spoke.clone();
        let running = tokio::spawn(async move {
            let mut pace = Pace::start(Instant::now(), interval(PROBES), usize::MAX);
            let mut sent = JoinSet::new();
            while let Some(due) = pace.next().await {
                if !matches!(stopped.try_recv(), Err(oneshot::error::TryRecvError::Empty)) {
                    break;
                }
                let spoke = spoke.clone();
                sent.spawn(async move {
                    let done = spoke.publish(Publish::new("bench.probe", "made", "p")).await;
                    done.map(|_| due.elapsed())
                });
            }
            let mut probed = Probed { times: Times::new(), failed: 0 };
            for done in sent.join_all().await {
                match done {
                    Ok(took) => probed.times.record(took),
                    Err(_) => probed.failed += 1,
                }
            }
            probed
        });
        Self { stop, running }
    }

    async fn stop(self) -> Probed {
        // It may have ended already.
        let _ = self.stop.send(());
        self.running.await.unwrap_or(Probed { times: Times::new(), failed: 1 })
    }
}
