//! The books of a run: who handled what when, and whether everything has its reason.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    time::Duration,
};

use crate::{
    GROUP, Plan,
    journal::{Line, Step},
};

/// A consumer was killed.
#[derive(Debug, Clone, Copy)]
pub struct Death {
    /// Milliseconds since 1970.
    pub at: i64,
}

/// A consumer was stopped, for [`STOPPED`].
#[derive(Debug, Clone, Copy)]
pub struct Stop {
    /// Milliseconds since 1970.
    pub at: i64,
}

/// Longer than a lease, shorter than the hub's patience with a silent link.
pub const STOPPED: Duration = Duration::from_secs(4);
/// Within this time after it goes on, a consumer finds what came to it before and while it was stopped, in milliseconds.
const AWAKE: i64 = 2_000;

/// What one consumer process did.
#[derive(Debug)]
pub struct Worker {
    pub lines: Vec<Line>,
    pub stops: Vec<Stop>,
    /// None: it ended when all work was done.
    pub death: Option<Death>,
}

/// Everything that is known of a run.
#[derive(Debug, Default)]
pub struct Account {
    pub plan: Option<Plan>,
    pub acked: Vec<String>,
    pub duplicates: usize,
    pub not_acked: Vec<String>,
    pub sent_again: u64,
    /// When the hub was killed, and when its successor was ready.
    pub hub_kills: Vec<i64>,
    pub hub_back: Vec<i64>,
    pub stops: usize,
    pub workers: Vec<Worker>,
    /// How long after the last kill everything was done.
    pub settling: Duration,
    /// Acked and not in the database.
    pub missing: Vec<String>,
    /// By group and event, as the database has it.
    pub outcomes: BTreeMap<(String, String), String>,
}

/// How one handling ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Acked,
    Nacked,
    /// The hub said that somebody else has the event: its lease was over, or its link was lost.
    Lost,
    /// The link was lost before the answer.
    InDoubt,
    /// Its process was killed.
    Killed,
    /// Its process ended before it did.
    Open,
}

#[derive(Debug, Clone, Copy)]
struct Handling {
    began: i64,
    attempt: u32,
    end: End,
    killed: Option<i64>,
    /// Its consumer had just been stopped, and may have begun what was somebody else's by then.
    stale: bool,
}

type Handlings = BTreeMap<(String, String), Vec<Handling>>;

impl Account {
    /// By group and event, in the order of time.
    fn handlings(&self) -> Handlings {
        let mut all = Handlings::new();
        for worker in &self.workers {
            let ends: HashMap<u64, Step> = worker
                .lines
                .iter()
                .filter(|line| line.step != Step::Began)
                .map(|line| (line.number, line.step))
                .collect();
            for line in worker.lines.iter().filter(|line| line.step == Step::Began) {
                let end = match ends.get(&line.number) {
                    Some(Step::Acked) => End::Acked,
                    Some(Step::Nacked) => End::Nacked,
                    Some(Step::Lost) => End::Lost,
                    Some(Step::InDoubt) => End::InDoubt,
                    Some(Step::Began) | None if worker.death.is_some() => End::Killed,
                    Some(Step::Began) | None => End::Open,
                };
                let killed = worker.death.filter(|_| end == End::Killed).map(|death| death.at);
                let stopped = i64::try_from(STOPPED.as_millis()).unwrap();
                let just = |stop: &Stop| (stop.at..stop.at + stopped + AWAKE).contains(&line.at);
                let stale = worker.stops.iter().any(just);
                let handling = Handling { began: line.at, attempt: line.attempt, end, killed, stale };
                all.entry((line.group.clone(), line.event.clone())).or_default().push(handling);
            }
        }
        all.values_mut().for_each(|handlings| handlings.sort_by_key(|handling| handling.began));
        all
    }

    /// What must not be.
    pub fn faults(&self) -> Vec<String> {
        let mut faults: Vec<String> =
            self.not_acked.iter().map(|text| format!("not acked: {text}")).collect();
        faults.extend(self.missing.iter().map(|id| format!("acked and lost: {id}")));
        let handlings = self.handlings();
        for (key @ (group, id), outcome) in &self.outcomes {
            if outcome != "success" {
                faults.push(format!("{id} is {outcome} in the group {group}"));
            }
            let Some(handlings) = handlings.get(key) else {
                faults.push(format!("{id} has an outcome in the group {group} and was handled by nobody"));
                continue;
            };
            let acks = handlings.iter().filter(|handling| handling.end == End::Acked).count();
            let unsure = handlings.iter().any(|handling| !matches!(handling.end, End::Nacked | End::Lost));
            if acks > 1 {
                faults.push(format!("{id} was acked {acks} times in the group {group}: {handlings:?}"));
            }
            if acks == 0 && !unsure {
                faults.push(format!("{id} has an outcome in {group} that nobody brought: {handlings:?}"));
            }
            // An ack ends it: nobody begins after one, but who didn't hear that his claim was lost.
            let acked = handlings.iter().position(|handling| handling.end == End::Acked);
            let later = acked.map_or(&[][..], |at| &handlings[at + 1..]);
            if later.iter().any(|later| !later.stale && later.end != End::Lost) {
                faults.push(format!("{id} was handled after its ack in the group {group}: {handlings:?}"));
            }
            if let Some(open) = handlings.iter().find(|handling| handling.end == End::Open) {
                faults.push(format!("{id} was still being handled in {group} when all was done: {open:?}"));
            }
        }
        if let Some(slow) = self.hand_overs().last().filter(|_| self.p99() > 2_000) {
            faults.push(format!("hand-over: p99 {} ms, the longest {slow} ms", self.p99()));
        }
        faults
    }

    /// Handlings that brought no outcome, by their ends: each is the reason why its event was handled more than once.
    fn again(&self) -> BTreeMap<End, usize> {
        let mut reasons = BTreeMap::new();
        for handlings in self.handlings().values() {
            let brought = handlings.iter().position(|handling| handling.end == End::Acked);
            let brought = brought.unwrap_or(handlings.len() - 1);
            for (_, handling) in handlings.iter().enumerate().filter(|(at, _)| *at != brought) {
                *reasons.entry(handling.end).or_default() += 1;
            }
        }
        reasons
    }

    /// From the death of a consumer to the moment that another begins what it was at, in milliseconds, sorted. Only the
    /// first loss of an event, since later ones wait by its back-off, and only where the hub lived.
    fn hand_overs(&self) -> Vec<i64> {
        let mut all = Vec::new();
        for handlings in self.handlings().values() {
            for pair in handlings.windows(2) {
                let (Some(killed), 1) = (pair[0].killed, pair[0].attempt) else { continue };
                let next = pair[1].began;
                let hub_lived = |from: i64, to: i64| {
                    self.hub_kills.iter().zip(&self.hub_back).all(|(down, up)| to < *down || from > *up)
                };
                if next >= killed && hub_lived(pair[0].began, next) {
                    all.push(next - killed);
                }
            }
        }
        all.sort_unstable();
        all
    }

    fn p99(&self) -> i64 {
        let all = self.hand_overs();
        all.get(all.len().saturating_sub(1) * 99 / 100).copied().unwrap_or(0)
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = |name: &str, value: String| writeln!(f, "{name:>44}  {value}");
        if let Some(Plan { events, time, seed }) = self.plan {
            row("events, seconds, seed", format!("{events}, {}, {seed}", time.as_secs()))?;
        }
        let deaths = self.workers.iter().filter(|worker| worker.death.is_some()).count();
        row("hub killed", self.hub_kills.len().to_string())?;
        row("consumers killed", deaths.to_string())?;
        row("consumers stopped beyond their lease", self.stops.to_string())?;
        row("acked", self.acked.len().to_string())?;
        row("publishes sent again", self.sent_again.to_string())?;
        row("acked as duplicates", self.duplicates.to_string())?;
        row("acked and not stored", self.missing.len().to_string())?;
        let handlings = self.handlings();
        for group in ["-", GROUP] {
            let of = |key: &(String, String)| key.0 == group;
            let done = self.outcomes.iter().filter(|(key, state)| of(key) && *state == "success").count();
            let begun: usize = handlings.iter().filter(|(key, _)| of(key)).map(|(_, all)| all.len()).sum();
            let name = if group == "-" { "default group" } else { group };
            row(&format!("{name}: success"), done.to_string())?;
            row(&format!("{name}: handlings"), begun.to_string())?;
        }
        for (end, count) in self.again() {
            let reason = match end {
                End::Acked => "acked, although it was acked before",
                End::Nacked => "nacked",
                End::Lost => "too late, its claim was lost",
                End::InDoubt => "the link was lost before the answer",
                End::Killed => "its consumer was killed",
                End::Open => "not ended",
            };
            row(&format!("handled in vain: {reason}"), count.to_string())?;
        }
        let all = self.hand_overs();
        let at = |part: usize| all.get(all.len().saturating_sub(1) * part / 100).copied().unwrap_or(0);
        row("hand-overs after a death", all.len().to_string())?;
        row("hand-over p50, p99, longest", format!("{}, {}, {} ms", at(50), at(99), at(100)))?;
        row("every outcome asked for and known after", format!("{:.1} s", self.settling.as_secs_f64()))
    }
}
