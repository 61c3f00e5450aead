//! Publishers at a pace and consumers beside them, with a book of what became of each event.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use eventflow::{
    event::{Domain, EventId, Pid, Uid},
    spoke::{Consume, Consumer, Publish, Spoke},
    store::Counts,
    wire::LogOf,
};
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
    time::{Instant, MissedTickBehavior, interval, timeout},
};

use super::{PATIENCE, engine, until};

/// Logs that the events are spread over.
const PIDS: usize = 16;
/// How often publishers publish their share.
const TICK: Duration = Duration::from_millis(5);

/// Whether the long versions of tests are asked for.
pub fn is_long() -> bool {
    std::env::var_os("EVENTFLOW_TEST_LONG").is_some()
}

/// Publishes per second, over all publishers: what two busy cores bear beside other tests, or the full load.
pub fn rate() -> usize {
    if is_long() { 5_000 } else { 2_000 }
}

/// What is known of the events.
#[derive(Debug, Default)]
pub struct Book {
    pub published: usize,
    /// Acked ids, and whether the hub had it before: then an earlier answer was lost.
    pub acked: HashMap<String, bool>,
    /// Publishes that ended without an ack, with the reason.
    pub failed: Vec<String>,
    /// How often each event was handled.
    pub handled: HashMap<String, u32>,
}

/// Publishers and consumers at work.
pub struct Load {
    pub book: Arc<Mutex<Book>>,
    pub publishers: Vec<Spoke>,
    pub workers: Vec<Spoke>,
    consumers: Vec<Consumer>,
    tasks: Vec<JoinHandle<()>>,
    stop: watch::Sender<bool>,
    began: Instant,
}

impl Load {
    /// Starts to publish `per_second` events over all publishers, and a consumer on each worker.
    pub async fn start(publishers: Vec<Spoke>, workers: Vec<Spoke>, per_second: usize) -> Self {
        let book = Arc::new(Mutex::new(Book::default()));
        let mut consumers = Vec::new();
        for worker in &workers {
            let book = book.clone();
            let handler = move |event: eventflow::event::Event| {
                *book.lock().unwrap().handled.entry(event.id.to_string()).or_default() += 1;
                async { Ok::<(), String>(()) }
            };
            let consume = Consume::new("load", "*").concurrency(4);
            consumers.push(worker.consume(consume, handler).await.unwrap());
        }
        let stop = watch::Sender::new(false);
        let share = per_second / publishers.len();
        let tasks = publishers.iter().enumerate().map(|(at, spoke)| {
            tokio::spawn(publish(at, spoke.clone(), share, book.clone(), stop.subscribe()))
        });
        let tasks = tasks.collect();
        Self { book, publishers, workers, consumers, tasks, stop, began: Instant::now() }
    }

    pub fn acked(&self) -> usize {
        self.book.lock().unwrap().acked.len()
    }

    /// Waits until so many more are acked.
    pub async fn acks(&self, more: usize) {
        let goal = self.acked() + more;
        until(&format!("{more} more acks"), || async { self.acked() >= goal }).await;
    }

    /// Ends publishing; waits until each publish has its answer and each event was handled, and until the hub knows.
    pub async fn finish(self) -> Tally {
        let took = self.began.elapsed();
        self.stop.send_replace(true);
        for task in self.tasks {
            timeout(4 * PATIENCE, task).await.expect("each publish ends").unwrap();
        }
        let book = self.book.clone();
        let all_handled = || async {
            let book = book.lock().unwrap();
            book.handled.len() >= book.acked.len()
        };
        until("each acked event was handled", all_handled).await;
        let status: Vec<_> = self.publishers.iter().map(Spoke::status).collect();
        let mut lost = 0;
        for consumer in self.consumers {
            lost += consumer.stop().await.unwrap().lost;
        }
        for spoke in self.publishers.iter().chain(&self.workers) {
            assert!(spoke.close().await.is_clean());
        }
        let book = std::mem::take(&mut *self.book.lock().unwrap());
        assert_eq!(book.failed, [""; 0], "publishes that were given up");
        Tally {
            took,
            published: book.published,
            in_doubt: status.iter().map(|status| status.publishes_retried).sum(),
            duplicates: book.acked.values().filter(|duplicate| **duplicate).count(),
            handled: book.handled.values().map(|times| *times as usize).sum(),
            handled_twice: book.handled.values().filter(|times| **times > 1).count(),
            claims_lost: lost,
            acked: book.acked.into_keys().collect(),
            worked_on: book.handled.into_keys().collect(),
        }
    }
}

async fn publish(
    publisher: usize,
    spoke: Spoke,
    per_second: usize,
    book: Arc<Mutex<Book>>,
    mut stop: watch::Receiver<bool>,
) {
    // Answers come in their own time; the channel's room is bounded by the spoke's publish buffer.
    let (pending, mut answers) = mpsc::unbounded_channel::<eventflow::spoke::Pending>();
    let noting = {
        let book = book.clone();
        async move {
            while let Some(answer) = answers.recv().await {
                let id = answer.id().to_string();
                match answer.await {
                    Ok(published) => drop(book.lock().unwrap().acked.insert(id, !published.fresh)),
                    Err(error) => book.lock().unwrap().failed.push(format!("{id}: {error}")),
                }
            }
        }
    };
    let publishing = async move {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let (mut owed, mut number) = (0.0, 0);
        let share = per_second as f64 * TICK.as_secs_f64();
        loop {
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                _ = ticks.tick() => owed += share,
            }
            while owed >= 1.0 && !*stop.borrow() {
                owed -= 1.0;
                number += 1;
                let event = Publish::new("load", "made", pid(number)).id(format!("{publisher}-{number}"));
                let answer = spoke.publish_later(event.data(&number).unwrap()).await.unwrap();
                book.lock().unwrap().published += 1;
                pending.send(answer).unwrap();
            }
        }
    };
    tokio::join!(noting, publishing);
}

fn pid(number: usize) -> String {
    format!("p{}", number % PIDS)
}

/// What came of it.
#[derive(Debug)]
pub struct Tally {
    took: Duration,
    pub published: usize,
    pub acked: BTreeSet<String>,
    /// Publishes that were sent again.
    pub in_doubt: u64,
    /// Acks of an event that the hub had already.
    pub duplicates: usize,
    pub handled: usize,
    pub handled_twice: usize,
    /// Handlers whose end had no effect, or none that they heard of.
    pub claims_lost: u64,
    worked_on: BTreeSet<String>,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.published as f64 / self.took.as_secs_f64();
        writeln!(
            f,
            "{:>14}  {} in {:.1} s: {rate:.0}/s",
            "published",
            self.published,
            self.took.as_secs_f64()
        )?;
        writeln!(f, "{:>14}  {}", "acked", self.acked.len())?;
        writeln!(f, "{:>14}  {}", "sent again", self.in_doubt)?;
        writeln!(f, "{:>14}  {}", "duplicates", self.duplicates)?;
        writeln!(f, "{:>14}  {}", "handled", self.handled)?;
        writeln!(f, "{:>14}  {}", "handled twice", self.handled_twice)?;
        write!(f, "{:>14}  {}", "claims lost", self.claims_lost)
    }
}

impl Tally {
    /// Compares with the database of a hub that has ended: each acked event is there, each event that is there has
    /// one outcome, and was handled more than once only if its claim was lost.
    pub async fn check(&self, database: std::path::PathBuf, hub: &str) -> Counts {
        let store = engine::store(&database).await;
        let mut stored = BTreeSet::new();
        for number in 0..PIDS {
            let domain = Domain::parse("load").unwrap();
            let query = LogOf::Process { domain, pid: Pid::parse(pid(number)).unwrap() }.into();
            let mut page = None;
            loop {
                let (events, next) = store.log_page(&query, page.as_ref(), 1_000, 1 << 20).await.unwrap();
                stored.extend(events.into_iter().map(|event| event.id.to_string()));
                page = next;
                if page.is_none() {
                    break;
                }
            }
        }
        let lost: Vec<_> = self.acked.difference(&stored).collect();
        assert!(lost.is_empty(), "acked and not stored: {lost:?}");
        let counts = store.counts(&Uid::parse(hub).unwrap()).await.unwrap();
        assert_eq!(counts.published, stored.len() as u64, "{counts:?}");
        assert_eq!((counts.success, counts.failed, counts.open), (counts.published, 0, 0), "{counts:?}");
        assert_eq!(self.worked_on, stored, "what was handled is what is stored");
        for id in self.acked.iter().step_by(self.acked.len() / 50 + 1) {
            let (_, trace) = store.trace(&EventId::parse(id.as_str()).unwrap()).await.unwrap().unwrap();
            assert_eq!(trace.state, "success", "{id}");
        }
        let again = self.handled as u64 - self.worked_on.len() as u64;
        assert!(again <= self.claims_lost, "handled again without a lost claim:\n{self}");
        store.close().await;
        counts
    }
}
