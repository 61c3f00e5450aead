//! `eventflow bench publish`: how many events a hub stores.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use clap::Args;
use eventflow::spoke::{Delivery, Since, Timestamp};
use tokio::time::timeout;

use super::{
    Stage,
    finding::{Count, Finding},
    load::Load,
    many,
    tally::Tally,
    target,
};
use crate::failure::Failure;

/// How much earlier than ours the hub's clock may be.
const CLOCKS: Duration = Duration::from_secs(60);
/// Without another event for so long no more is stored.
const STALLED: Duration = Duration::from_secs(30);

/// Publish events, nobody consumes them: how many are acknowledged per second, and after what time.
///
/// Afterwards they are read back: each must be there once.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow bench publish --events 2000 --clients 2 --window 256")]
pub(super) struct Publish {
    /// How many events
    #[arg(long, value_name = "N", default_value = "100000", value_parser = many)]
    pub(super) events: usize,
    /// How many clients, each with a link of its own
    #[arg(long, value_name = "N", default_value = "2", value_parser = many)]
    pub(super) clients: usize,
    /// Events of each client that aren't acknowledged yet, at most
    #[arg(long, value_name = "N", default_value = "256", value_parser = many)]
    pub(super) window: usize,
    /// Events per second of all clients together [default: as fast as it goes]
    #[arg(long, value_name = "N", value_parser = many)]
    pub(super) rate: Option<usize>,
}

impl Publish {
    pub(super) async fn run(&self, stage: &Stage) -> Result<Vec<Finding>, Failure> {
        let load = Arc::new(Load::new(self.events, stage.bytes, self.window, self.rate.map(super::float)));
        let publishers = stage.target.spokes(self.clients).await?;
        stage.progress.begin("publish", self.events);
        let (start, worked) = (SystemTime::now(), stage.worked());
        let loaded = load.publish(&publishers, Some(&stage.progress)).await?;
        let work = stage.work_since(worked, self.events);
        let stored = stored(stage, &load, start).await?;
        target::close(publishers).await;
        let finding = Finding::new("publish", self.how(stage.bytes), self.events, loaded.took)
            .timed("publish to ack", loaded.acks)
            .figure("hub processor us/event", work)
            .counted(loaded.counts)
            .counted(stored);
        Ok(vec![finding])
    }

    fn how(&self, bytes: usize) -> String {
        let rate = self.rate.map(|rate| format!(", {rate}/s")).unwrap_or_default();
        format!("{} clients x {} in flight, {bytes} B{rate}", self.clients, self.window)
    }
}

/// Reads back what was published since then.
async fn stored(stage: &Stage, load: &Load, start: SystemTime) -> Result<Vec<Count>, Failure> {
    let reader = stage.target.spoke().await?;
    let since = Timestamp::from(start - CLOCKS).as_millis();
    let mut events = reader.subscribe_from(&load.domain, "*", Since::Time(since)).await?;
    let tally = Tally::new(load.events);
    stage.progress.begin("read back", load.events);
    while tally.total() < load.events as u64 {
        match timeout(STALLED, events.next()).await {
            Ok(Some(Delivery::Event { event, .. })) => {
                tally.see(super::payload::number(event.data.as_str()));
                stage.progress.step();
            }
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => break,
        }
    }
    drop(events);
    reader.close().await;
    Ok(tally.counts("stored"))
}
