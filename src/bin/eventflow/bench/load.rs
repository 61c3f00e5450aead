//! Publishing: several clients, each with so many events on the way, as fast as it goes or at a rate.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytestring::ByteString;
use eventflow::spoke::{Pending, Publish, PublishError, Spoke};
use tokio::{sync::mpsc, task::JoinSet};

use super::{
    finding::{Count, Times},
    pace::{Pace, interval},
    payload,
    progress::Progress,
};
use crate::failure::Failure;

/// Processes among which events are dealt out.
const PIDS: usize = 1_000;

/// How many events may be sent by now.
type Limit = Box<dyn Fn() -> usize + Send + Sync>;

/// How often a client that may send nothing asks again.
const ASK: Duration = Duration::from_millis(1);

/// What is to be published.
pub(super) struct Load {
    /// Of this run alone.
    pub(super) domain: ByteString,
    pub(super) events: usize,
    /// Of data, in each.
    pub(super) bytes: usize,
    /// Un-acknowledged events of each client.
    pub(super) window: usize,
    /// A second, by all clients together; none: as fast as it goes.
    pub(super) rate: Option<f64>,
    /// How many events may be sent by now, if whoever reads them sets that.
    limit: Option<Limit>,
    /// What the moments below count from.
    zero: Instant,
    /// When each event was due, or was sent if there is no rate: nanoseconds.
    due: Vec<AtomicU64>,
}

/// What became of it.
pub(super) struct Loaded {
    pub(super) took: Duration,
    /// From due to acknowledged.
    pub(super) acks: Times,
    pub(super) counts: Vec<Count>,
}

impl Load {
    pub(super) fn new(events: usize, bytes: usize, window: usize, rate: Option<f64>) -> Self {
        let domain: String = std::iter::repeat_with(fastrand::lowercase).take(12).collect();
        let due = std::iter::repeat_with(AtomicU64::default).take(events).collect();
        let domain = format!("bench.{domain}").into();
        Self { domain, events, bytes, window, rate, limit: None, zero: Instant::now(), due }
    }

    /// Never sends more than this says.
    pub(super) fn limited(mut self, limit: impl Fn() -> usize + Send + Sync + 'static) -> Self {
        self.limit = Some(Box::new(limit));
        self
    }

    /// How long ago the event of this number was due.
    pub(super) fn age(&self, number: usize) -> Duration {
        let due = self.due.get(number).map_or(0, |due| due.load(Ordering::Relaxed));
        self.zero.elapsed().saturating_sub(Duration::from_nanos(due))
    }

    /// Publishes, and returns when all is answered.
    pub(super) async fn publish(
        self: &Arc<Self>,
        spokes: &[Spoke],
        progress: Option<&Progress>,
    ) -> Result<Loaded, Failure> {
        let began = Instant::now();
        let mut clients = JoinSet::new();
        for (client, spoke) in spokes.iter().enumerate() {
            let (load, spoke, progress) = (self.clone(), spoke.clone(), progress.cloned());
            let every = spokes.len();
            clients.spawn(async move { load.client(spoke, client, every, began, progress).await });
        }
        let mut all = Answers::default();
        for answers in clients.join_all().await {
            all.add(answers?);
        }
        let took = began.elapsed();
        all.numbers.sort_unstable();
        all.numbers.dedup();
        let expected = self.events as u64;
        let counts = vec![
            Count::new("acknowledged", expected, all.acknowledged),
            Count::new("there before", 0, all.acknowledged - all.fresh),
            Count::new("numbers of the hub", expected, all.numbers.len() as u64),
        ];
        Ok(Loaded { took, acks: all.times, counts })
    }

    /// One client: each `every`th event from its own number on.
    async fn client(
        self: Arc<Self>,
        spoke: Spoke,
        client: usize,
        every: usize,
        began: Instant,
        progress: Option<Progress>,
    ) -> Result<Answers, PublishError> {
        // One more is in the hands of whoever awaits it.
        let (sent, awaited) = mpsc::channel(self.window.saturating_sub(1).max(1));
        let answers = tokio::spawn(answers(awaited, progress));
        let numbers = (client..self.events).step_by(every);
        let mut pace = self.rate.map(|rate| {
            let one = interval(rate);
            // Clients take turns.
            let first = began + one * u32::try_from(client).unwrap_or(u32::MAX);
            Pace::start(first, one * u32::try_from(every).unwrap_or(u32::MAX), numbers.len())
        });
        for number in numbers {
            while self.limit.as_ref().is_some_and(|limit| number >= limit()) {
                tokio::time::sleep(ASK).await;
            }
            let due = match &mut pace {
                Some(pace) => pace.next().await.unwrap_or_else(Instant::now),
                None => Instant::now(),
            };
            let since = u64::try_from(due.duration_since(self.zero).as_nanos()).unwrap_or(u64::MAX);
            self.due[number].store(since, Ordering::Relaxed);
            let pid = format!("p{}", number % PIDS);
            let publish =
                Publish::new(self.domain.clone(), "made", pid).data_text(payload::data(number, self.bytes));
            let pending = spoke.publish_later(publish?).await?;
            if sent.send((due, pending)).await.is_err() {
                // Some event failed: its error is told below.
                break;
            }
        }
        drop(sent);
        match answers.await {
            Ok(answers) => answers,
            // It neither panics nor is it cancelled before the runtime ends.
            Err(_) => Ok(Answers::default()),
        }
    }
}

/// What the hub said.
struct Answers {
    acknowledged: u64,
    fresh: u64,
    numbers: Vec<u64>,
    times: Times,
}

impl Default for Answers {
    fn default() -> Self {
        Self { acknowledged: 0, fresh: 0, numbers: Vec::new(), times: Times::new() }
    }
}

impl Answers {
    fn add(&mut self, other: Self) {
        self.acknowledged += other.acknowledged;
        self.fresh += other.fresh;
        self.numbers.extend(other.numbers);
        self.times.add(&other.times);
    }
}

/// Awaits what was sent, in order: a hub answers the events of one link in order too.
async fn answers(
    mut awaited: mpsc::Receiver<(Instant, Pending)>,
    progress: Option<Progress>,
) -> Result<Answers, PublishError> {
    let mut answers = Answers::default();
    while let Some((due, pending)) = awaited.recv().await {
        let published = pending.await?;
        answers.times.record(due.elapsed());
        answers.acknowledged += 1;
        answers.fresh += u64::from(published.fresh);
        answers.numbers.push(published.seq);
        if let Some(progress) = &progress {
            progress.step();
        }
    }
    Ok(answers)
}
