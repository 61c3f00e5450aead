//! `eventflow bench idle`: what a hub keeps for whoever does nothing.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use clap::Args;
use eventflow::{
    event::code,
    spoke::{Claim, Claims, Consume, Spoke},
};
use tokio::{task::JoinSet, time::timeout};

use super::{
    Stage,
    finding::{Count, Finding},
    float,
    load::Load,
    many,
    meter::Meter,
    target,
};
use crate::failure::Failure;

/// Links, subscriptions and claims that are made first, so that what a hub needs once isn't counted.
const FIRST: usize = 50;
/// Claims of one link: as many as hubs allow unless they are told otherwise.
const CREDIT: usize = 64;

/// Memory of the hub for each idle connection, each subscription and each claim that is in hand.
///
/// It needs the hub's process: with --embedded, or by --hub-pid. More than 10,000 connections need
/// --hub-flag=--limits-connections=N, and descriptors (`ulimit -n`).
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow bench idle --embedded --clients 60 --claims 60")]
pub(super) struct Idle {
    /// How many connections, and then subscriptions
    #[arg(long, value_name = "N", default_value = "1000", value_parser = many)]
    pub(super) clients: usize,
    /// How many claims
    #[arg(long, value_name = "N", default_value = "10000", value_parser = many)]
    pub(super) claims: usize,
}

impl Idle {
    pub(super) async fn run(&self, stage: &Stage) -> Result<Vec<Finding>, Failure> {
        let meter = stage.target.meter.ok_or_else(unknown_process)?;
        let unreadable = unknown_process;
        // What came first stays until the end.
        let first = stage.target.spokes(FIRST).await?;
        let subscribed = subscribe(&first, "first").await?;
        let mut findings = Vec::new();

        stage.progress.begin("connections", self.clients);
        let (before, began) = (meter.memory_at_rest().await.ok_or_else(unreadable)?, Instant::now());
        let spokes = stage.target.spokes(self.clients).await?;
        let linked = spokes.iter().filter(|spoke| spoke.status().hub.is_some()).count();
        let count = Count::new("connected", self.clients as u64, linked as u64);
        findings.push(self.grown("connection", self.clients, meter, before, began).await?.counted([count]));

        let (before, began) = (meter.memory_at_rest().await.ok_or_else(unreadable)?, Instant::now());
        let subscriptions = subscribe(&spokes, "idle").await?;
        let made = Count::new("subscribed", self.clients as u64, subscriptions.len() as u64);
        findings.push(self.grown("subscription", self.clients, meter, before, began).await?.counted([made]));

        findings.push(self.claim(stage, meter).await?);
        drop((subscriptions, subscribed));
        target::close(spokes).await;
        target::close(first).await;
        Ok(findings)
    }

    /// Events are published, then claimed and held.
    async fn claim(&self, stage: &Stage, meter: Meter) -> Result<Finding, Failure> {
        let load = Arc::new(Load::new(self.claims, stage.bytes, 256, None));
        let spokes = stage.target.spokes(self.claims.div_ceil(CREDIT)).await?;
        let publisher = stage.target.spokes(1).await?;
        stage.progress.begin("claims", self.claims);
        let (before, began) = (meter.memory_at_rest().await.ok_or_else(unknown_process)?, Instant::now());
        let mut consumers: Vec<Claims> = Vec::with_capacity(spokes.len());
        for spoke in &spokes {
            let credit = u32::try_from(CREDIT).unwrap_or(u32::MAX);
            let consume = Consume::new(load.domain.to_string(), "*").concurrency(credit).credit(credit);
            consumers.push(spoke.claims(consume).await?);
        }
        let loaded = load.publish(&publisher, Some(&stage.progress)).await?;
        let (held, consumers) = hold(consumers, self.claims).await;
        let finding = self.grown("claim", self.claims, meter, before, began).await?;
        let count = Count::new("held", self.claims as u64, held.len() as u64);
        // Acknowledged, so that they don't come back when their links end.
        let mut settling = JoinSet::new();
        for claim in held {
            settling.spawn(async move { claim.ack().await.is_ok() });
        }
        let settled = settling.join_all().await.into_iter().filter(|acked| *acked).count();
        let acked = Count::new("outcomes recorded", self.claims as u64, settled as u64);
        drop(consumers);
        target::close(publisher).await;
        target::close(spokes).await;
        Ok(finding.counted(loaded.counts).counted([count, acked]))
    }

    async fn grown(
        &self,
        what: &'static str,
        count: usize,
        meter: Meter,
        before: u64,
        began: Instant,
    ) -> Result<Finding, Failure> {
        let took = began.elapsed();
        let after = meter.memory_at_rest().await.ok_or_else(unknown_process)?;
        let each = after.saturating_sub(before) as f64 / float(count);
        let finding = Finding::new("idle", format!("{count} x {what}"), count, took);
        Ok(finding
            .figure("hub bytes each", Some(each))
            .figure("hub MiB", Some(after as f64 / (1 << 20) as f64)))
    }
}

/// Without another claim for so long no more come.
const HOLD: Duration = Duration::from_secs(10);
/// How often a consumer looks whether all are held.
const LOOK: Duration = Duration::from_millis(100);

/// Takes claims of all consumers until there are so many.
async fn hold(consumers: Vec<Claims>, wanted: usize) -> (Vec<Claim>, Vec<Claims>) {
    let total = Arc::new(AtomicUsize::new(0));
    let mut taking = JoinSet::new();
    for mut claims in consumers {
        let total = total.clone();
        taking.spawn(async move {
            let (mut held, mut seen, mut since) = (Vec::new(), 0, Instant::now());
            while total.load(Ordering::Relaxed) < wanted && since.elapsed() < HOLD {
                match timeout(LOOK, claims.next()).await {
                    Ok(Some(claim)) => {
                        total.fetch_add(1, Ordering::Relaxed);
                        held.push(claim);
                    }
                    Ok(None) => break,
                    Err(_) => {}
                }
                let now = total.load(Ordering::Relaxed);
                if now != seen {
                    (seen, since) = (now, Instant::now());
                }
            }
            (held, claims)
        });
    }
    let (held, consumers): (Vec<_>, Vec<_>) = taking.join_all().await.into_iter().unzip();
    (held.into_iter().flatten().collect(), consumers)
}

/// A subscription for each of these, of a domain of its own.
async fn subscribe(spokes: &[Spoke], name: &str) -> Result<Vec<eventflow::spoke::Subscription>, Failure> {
    let mut subscriptions = Vec::with_capacity(spokes.len());
    for (number, spoke) in spokes.iter().enumerate() {
        subscriptions.push(spoke.subscribe(&format!("bench.{name}.{number}"), "*").await?);
    }
    Ok(subscriptions)
}

/// Memory can't be told.
pub(super) fn unknown_process() -> Failure {
    Failure::Misused {
        code: code::INTERNAL.to_owned(),
        sentence: "the memory of the hub's process is measured, on Linux: give --embedded, or --hub-pid PID for one \
                   that runs on this machine"
            .to_owned(),
    }
}
