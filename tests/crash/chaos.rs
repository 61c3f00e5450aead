//! Publishes, kills and stops at random moments, and waits until all work is done.

use std::{path::PathBuf, process::Stdio, sync::Arc, time::Duration};

use eventflow::{
    event::EventId,
    spoke::{Publish, Spoke},
    store::{Place, Store, StoreConfig},
};
use tokio::{
    process::{Child, Command},
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

use crate::{
    DOMAIN, GROUP, PATIENCE, Plan,
    account::{Account, Death, STOPPED, Stop, Worker},
    journal::{self, now},
    process::{Home, Process, signal},
};

const CONSUMERS: usize = 4;
/// So many logs.
const PIDS: usize = 64;
/// The mean time between two deeds.
const PAUSE: f64 = 0.8;

/// A slot that always has a consumer process in it.
struct Slot {
    child: Child,
    journal: PathBuf,
    stops: Vec<Stop>,
}

struct Chaos {
    home: Home,
    slots: Vec<Slot>,
    /// Those that are dead, or were stopped.
    past: Vec<Worker>,
    spawned: usize,
}

/// Runs the plan and gives account of it.
pub async fn run(plan: Plan) -> Account {
    let mut random = fastrand::Rng::with_seed(plan.seed);
    let home = Home::new();
    let hub = start(&home).await;
    let mut chaos = Chaos { home, slots: Vec::new(), past: Vec::new(), spawned: 0 };
    for _ in 0..CONSUMERS {
        let slot = chaos.spawn();
        chaos.slots.push(slot);
    }
    let spoke = chaos.home.spoke().await;
    // What is published before the group exists isn't for it.
    bindings(&spoke).await;
    let publishing = tokio::spawn(publish(spoke.clone(), plan));
    let mut account = Account { plan: Some(plan), ..Account::default() };
    let hub = chaos.rage(hub, plan, &mut random, &mut account).await;
    (account.acked, account.duplicates, account.not_acked) = publishing.await.unwrap();
    let settled = Instant::now();
    outcomes(&spoke, &account.acked).await;
    account.settling = settled.elapsed();
    account.sent_again = spoke.status().publishes_retried;
    spoke.close().await;
    chaos.end(hub, &mut account).await;
    account
}

/// With room for more attempts than it can come to, so that nothing dies of the kills.
async fn start(home: &Home) -> Process {
    let mut hub = home.spawn(&[], &["--groups-max-attempts=100", "--groups-delay=100ms"]);
    hub.ready().await;
    hub
}

impl Chaos {
    fn spawn(&mut self) -> Slot {
        self.spawned += 1;
        let journal = self.home.data().join(format!("consumer-{}", self.spawned));
        let child = Command::new(std::env::current_exe().unwrap())
            .arg("consumer")
            .args([self.home.data().join("operator.toml"), journal.clone()])
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Slot { child, journal, stops: Vec::new() }
    }

    /// Does harm until the time is over.
    async fn rage(
        &mut self,
        mut hub: Process,
        plan: Plan,
        random: &mut fastrand::Rng,
        account: &mut Account,
    ) -> Process {
        let end = Instant::now() + plan.time;
        // Each deed at least once, whatever the dice say.
        let mut first = [9, 0, 2].into_iter();
        loop {
            // Exponential, so that some follow at once.
            let pause = -PAUSE * (1.0 - random.f64()).ln();
            let next = Instant::now() + Duration::from_secs_f64(pause.min(4.0));
            if next > end {
                sleep_until(end).await;
                return hub;
            }
            sleep_until(next).await;
            let thrown = random.u32(0..10);
            match first.next().unwrap_or(thrown) {
                0..2 => {
                    account.hub_kills.push(now());
                    hub.kill().await;
                    hub = start(&self.home).await;
                    account.hub_back.push(now());
                }
                2..4 => {
                    // Longer than its lease, shorter than the hub's patience with a silent link.
                    let at = random.usize(..self.slots.len());
                    let slot = &mut self.slots[at];
                    slot.stops.push(Stop { at: now() });
                    let pid = slot.child.id().unwrap();
                    account.stops += 1;
                    tokio::spawn(async move {
                        signal(pid, "STOP");
                        sleep(STOPPED).await;
                        // It may have been killed meanwhile.
                        let mut go_on = std::process::Command::new("kill");
                        let _ = go_on.args(["-CONT", &pid.to_string()]).stderr(Stdio::null()).status();
                    });
                }
                _ => {
                    let at = random.usize(..self.slots.len());
                    let fresh = self.spawn();
                    let slot = std::mem::replace(&mut self.slots[at], fresh);
                    self.kill(slot).await;
                }
            }
        }
    }

    async fn kill(&mut self, mut slot: Slot) {
        let at = now();
        slot.child.kill().await.unwrap();
        let lines = journal::read(&slot.journal);
        self.past.push(Worker { lines, stops: slot.stops, death: Some(Death { at }) });
    }

    /// All work is done: consumers and hub end, and the books are read.
    async fn end(mut self, mut hub: Process, account: &mut Account) {
        for mut slot in std::mem::take(&mut self.slots) {
            // An ack that was recorded may be on its way back yet.
            drop(slot.child.stdin.take());
            slot.child.wait().await.unwrap();
            let lines = journal::read(&slot.journal);
            self.past.push(Worker { lines, stops: slot.stops, death: None });
        }
        hub.signal("TERM");
        assert_eq!(hub.ended().await.code(), Some(0), "{}", self.home.words());
        assert!(!self.home.words().contains("panicked"), "{}", self.home.words());
        account.workers = self.past;
        let store = Store::open(&StoreConfig::new(Place::File(self.home.database()))).await.unwrap();
        for id in &account.acked {
            let Some((_, trace)) = store.trace(&EventId::parse(id.as_str()).unwrap()).await.unwrap() else {
                account.missing.push(id.clone());
                continue;
            };
            let audit = trace.groups.iter().find(|row| row.group.as_deref() == Some(GROUP));
            account.outcomes.insert(("-".to_owned(), id.clone()), trace.state);
            let state = audit.map_or("none", |row| &row.state).to_owned();
            account.outcomes.insert((GROUP.to_owned(), id.clone()), state);
        }
        store.close().await;
    }
}

/// Both groups have their binding before the first event, so that each event is for both.
async fn bindings(spoke: &Spoke) {
    for group in [None, Some(GROUP)] {
        let consume = eventflow::spoke::Consume::new(DOMAIN, "*").credit(1);
        let consume = group.into_iter().fold(consume, eventflow::spoke::Consume::group);
        spoke.claims(consume).await.unwrap().stop().await.unwrap();
    }
}

/// Publishes at a pace. Returns what was acked, how many of them as duplicates, and what wasn't.
async fn publish(spoke: Spoke, plan: Plan) -> (Vec<String>, usize, Vec<String>) {
    let began = Instant::now();
    let mut pending = JoinSet::new();
    for number in 0..plan.events {
        sleep_until(began + plan.time.mul_f64(number as f64 / plan.events as f64)).await;
        let id = format!("e{number}");
        let event = Publish::new(DOMAIN, "made", format!("p{}", number % PIDS)).id(id.clone());
        let answer = spoke.publish_later(event.data(&number).unwrap()).await.unwrap();
        pending.spawn(async move { (id, answer.await) });
    }
    let (mut acked, mut duplicates, mut not_acked) = (Vec::new(), 0, Vec::new());
    while let Some(answered) = pending.join_next().await {
        match answered.unwrap() {
            (id, Ok(published)) => {
                duplicates += usize::from(!published.fresh);
                acked.push(id);
            }
            (id, Err(error)) => not_acked.push(format!("{id}: {error}")),
        }
    }
    (acked, duplicates, not_acked)
}

/// Waits until each event has its outcome in both groups.
async fn outcomes(spoke: &Spoke, ids: &[String]) {
    // To ask for them all takes its time too.
    let asking = Duration::from_millis(5).mul_f64(ids.len() as f64);
    let deadline = Instant::now() + 2 * PATIENCE + asking;
    let spoke = Arc::new(spoke.clone());
    for group in [None, Some(GROUP)] {
        for ids in ids.chunks(100) {
            let mut waiting = JoinSet::new();
            for id in ids {
                let (spoke, id) = (spoke.clone(), id.clone());
                waiting.spawn(async move {
                    let left = deadline.saturating_duration_since(Instant::now());
                    let ended = match group {
                        None => spoke.outcome(&id, left).await,
                        Some(group) => spoke.group(group).outcome(&id, left).await,
                    };
                    ended.map_err(|error| format!("{id} in {group:?}: {error}"))
                });
            }
            while let Some(ended) = waiting.join_next().await {
                ended.unwrap().unwrap();
            }
        }
    }
}
