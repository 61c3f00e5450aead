//! The books of a run: who handled what when, and whether everything has its reason.

mod hand_overs;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
    time::Duration,
};

pub use self::hand_overs::{HandOvers, too_slow};
use crate::{
    GROUP, Plan,
    cause::Cause,
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
pub const AWAKE: i64 = 2_000;

/// What one consumer process did.
#[derive(Debug)]
pub struct Worker {
    pub lines: Vec<Line>,
    pub stops: Vec<Stop>,
    /// None: it ended when all work was done.
    pub death: Option<Death>,
}

impl Worker {
    /// The stops of which it may just have woken up.
    fn stopped_before(&self, at: i64) -> impl Iterator<Item = &Stop> {
        let stopped = i64::try_from(STOPPED.as_millis()).unwrap();
        self.stops.iter().filter(move |stop| (stop.at..stop.at + stopped + AWAKE).contains(&at))
    }

    /// What it wrote down then may have come to it since this moment.
    fn since(&self, at: i64) -> i64 {
        self.stopped_before(at).map(|stop| stop.at).min().unwrap_or(at)
    }
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
    /// Whose it was.
    worker: usize,
    /// When its process wrote down that it has it; if that was stopped just before, when that was: it may have come to it
    /// at any moment since.
    handed: i64,
    began: i64,
    /// When its end was written down.
    ended: Option<i64>,
    attempt: u32,
    end: End,
    killed: Option<i64>,
    /// Its consumer had just been stopped, and may have begun what was somebody else's by then.
    stale: bool,
}

type Handlings = BTreeMap<(String, String), Vec<Handling>>;

/// For how long a consumer surely had an event, begun or not.
#[derive(Debug, Clone, Copy)]
struct Holding {
    worker: usize,
    /// As [`Handling::handed`].
    handed: i64,
    until: i64,
}

/// An event that two had at once.
#[derive(Debug)]
struct Shared<'a> {
    key: &'a (String, String),
    first: Holding,
    second: Holding,
    cause: Option<Cause>,
}

impl Handling {
    /// Whether it ended otherwise than its consumer wanted, though that lived.
    fn was_taken(&self) -> bool {
        matches!(self.end, End::Lost | End::InDoubt)
    }

    /// A nack may be long over when its answer is written down, unlike an ack, after which nobody gets it.
    fn holding(&self) -> Holding {
        let until = match self.end {
            End::Acked | End::Lost | End::InDoubt => self.ended.unwrap_or(self.began),
            End::Killed => self.killed.unwrap_or(self.began),
            End::Nacked | End::Open => self.began,
        };
        Holding { worker: self.worker, handed: self.handed, until }
    }
}

/// The one at this share, in hundredths, of numbers in their order: the nearest rank, so that of few none is left out.
pub fn rank(sorted: &[i64], share: usize) -> i64 {
    let at = (sorted.len() * share).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or(0)
}

impl Account {
    /// By group and event, in the order of time.
    fn handlings(&self) -> Handlings {
        let mut all = Handlings::new();
        for (at, worker) in self.workers.iter().enumerate() {
            let is_end = |line: &&Line| !matches!(line.step, Step::Handed | Step::Began);
            let ends: HashMap<u64, (Step, i64)> =
                worker.lines.iter().filter(is_end).map(|line| (line.number, (line.step, line.at))).collect();
            let handed = worker.lines.iter().filter(|line| line.step == Step::Handed);
            let handed: HashMap<u64, i64> = handed.map(|line| (line.number, line.at)).collect();
            for line in worker.lines.iter().filter(|line| line.step == Step::Began) {
                let (step, ended) = ends.get(&line.number).copied().unzip();
                let end = match step {
                    Some(Step::Acked) => End::Acked,
                    Some(Step::Nacked) => End::Nacked,
                    Some(Step::Lost) => End::Lost,
                    Some(Step::InDoubt) => End::InDoubt,
                    _ if worker.death.is_some() => End::Killed,
                    _ => End::Open,
                };
                let killed = worker.death.filter(|_| end == End::Killed).map(|death| death.at);
                let stale = worker.stopped_before(line.at).next().is_some();
                // Without that line it isn't proven that it was ever handed out.
                let handed = handed.get(&line.number).map_or(i64::MAX, |at| worker.since(*at));
                let (began, attempt) = (line.at, line.attempt);
                let handling = Handling { worker: at, handed, began, ended, attempt, end, killed, stale };
                all.entry((line.group.clone(), line.event.clone())).or_default().push(handling);
            }
        }
        all.values_mut().for_each(|handlings| handlings.sort_by_key(|handling| handling.began));
        all
    }

    /// What came to somebody and wasn't begun, by group and event.
    fn not_begun(&self) -> BTreeMap<(String, String), Vec<Holding>> {
        let mut all: BTreeMap<_, Vec<Holding>> = BTreeMap::new();
        for (at, worker) in self.workers.iter().enumerate() {
            let begun = worker.lines.iter().filter(|line| line.step == Step::Began);
            let begun: HashSet<u64> = begun.map(|line| line.number).collect();
            let handed = worker.lines.iter().filter(|line| line.step == Step::Handed);
            for line in handed.filter(|line| !begun.contains(&line.number)) {
                let until = worker.death.map_or(line.at, |death| death.at);
                let holding = Holding { worker: at, handed: worker.since(line.at), until };
                all.entry((line.group.clone(), line.event.clone())).or_default().push(holding);
            }
        }
        all
    }

    /// What must not be.
    pub fn faults(&self) -> Vec<String> {
        let mut faults: Vec<String> =
            self.not_acked.iter().map(|text| format!("not acked: {text}")).collect();
        faults.extend(self.missing.iter().map(|id| format!("acked and lost: {id}")));
        let (handlings, not_begun) = (self.handlings(), self.not_begun());
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
            // And nobody gets it any more: who began later had it before.
            let ended = acked.and_then(|at| handlings[at].ended).unwrap_or(i64::MAX);
            let others = not_begun.get(key).into_iter().flatten().map(|other| other.handed);
            if later.iter().map(|later| later.handed).chain(others).any(|handed| handed > ended) {
                faults.push(format!("{id} was handed out after its ack in the group {group}: {handlings:?}"));
            }
            if let Some(open) = handlings.iter().find(|handling| handling.end == End::Open) {
                faults.push(format!("{id} was still being handled in {group} when all was done: {open:?}"));
            }
        }
        let causeless = handlings.iter().flat_map(|((group, id), all)| {
            let without =
                all.iter().filter(|handling| handling.was_taken() && self.cause_of(handling).is_none());
            without.map(move |handling| {
                format!("{id} was taken in the group {group} without a cause: {handling:?}")
            })
        });
        faults.extend(causeless);
        let shared = self.shared(&handlings, &not_begun).into_iter().filter(|shared| shared.cause.is_none());
        faults.extend(shared.map(|Shared { key: (group, id), first, second, .. }| {
            format!(
                "{id} was handed to two at once in the group {group}, without a cause: {first:?}, {second:?}"
            )
        }));
        faults.extend(self.idle());
        faults.extend(too_slow(&self.hand_overs().took));
        faults
    }

    /// A run that did no harm shows nothing.
    fn idle(&self) -> Vec<String> {
        let Some(Plan { time, .. }) = self.plan else { return Vec::new() };
        let deaths = self.workers.iter().filter(|worker| worker.death.is_some()).count();
        // A deed each second or so, of which most kill a consumer.
        let tens = usize::try_from(time.as_secs() / 10).unwrap_or(usize::MAX).max(1);
        let least = [
            ("consumers were killed", deaths, tens),
            ("times the hub was killed", self.hub_kills.len(), tens.div_ceil(6)),
            ("consumers were stopped", self.stops, tens.div_ceil(6)),
            ("hand-overs were seen", self.hand_overs().took.len(), (5 * tens).div_ceil(2)),
        ];
        let idle = least.into_iter().filter(|(_, count, least)| count < least);
        idle.map(|(what, count, least)| format!("{count} {what}, not {least}: the run shows nothing"))
            .collect()
    }

    /// Why this one was taken from who had it, or its end left in doubt.
    fn cause_of(&self, handling: &Handling) -> Option<Cause> {
        let from = handling.handed.min(handling.began);
        let to = handling.ended.unwrap_or(handling.began);
        handling.was_taken().then(|| self.cause(&self.workers[handling.worker], from, to)).flatten()
    }

    /// What two had at once, with what took it from the first of them before the second got it.
    fn shared<'a>(
        &self,
        handlings: &'a Handlings,
        not_begun: &BTreeMap<(String, String), Vec<Holding>>,
    ) -> Vec<Shared<'a>> {
        let mut all = Vec::new();
        for (key, handlings) in handlings {
            let others = not_begun.get(key).into_iter().flatten().copied();
            let mut holdings: Vec<Holding> = handlings.iter().map(Handling::holding).chain(others).collect();
            holdings.sort_by_key(|holding| holding.handed);
            for (at, first) in holdings.iter().enumerate() {
                let later = holdings[at + 1..].iter().take_while(|later| later.handed < first.until);
                all.extend(later.map(|second| {
                    let cause = self.cause(&self.workers[first.worker], first.handed, second.handed);
                    Shared { key, first: *first, second: *second, cause }
                }));
            }
        }
        all
    }

    /// Handlings that brought no outcome, by their ends and what caused them: each is the reason why its event was handled
    /// more than once.
    fn again(&self) -> BTreeMap<(End, Option<Cause>), usize> {
        let mut reasons = BTreeMap::new();
        for handlings in self.handlings().values() {
            let brought = handlings.iter().position(|handling| handling.end == End::Acked);
            let brought = brought.unwrap_or(handlings.len() - 1);
            for (_, handling) in handlings.iter().enumerate().filter(|(at, _)| *at != brought) {
                *reasons.entry((handling.end, self.cause_of(handling))).or_default() += 1;
            }
        }
        reasons
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = |name: &str, value: String| writeln!(f, "{name:>60}  {value}");
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
        for ((end, cause), count) in self.again() {
            let reason = match end {
                End::Acked => "acked, although it was acked before",
                End::Nacked => "nacked",
                End::Lost => "too late",
                End::InDoubt => "never answered",
                End::Killed => "its consumer was killed",
                End::Open => "not ended",
            };
            let cause = cause.map_or(String::new(), |cause| format!(", {cause}"));
            row(&format!("handled in vain: {reason}{cause}"), count.to_string())?;
        }
        let mut shared: BTreeMap<Option<Cause>, usize> = BTreeMap::new();
        for one in self.shared(&handlings, &self.not_begun()) {
            *shared.entry(one.cause).or_default() += 1;
        }
        for (cause, count) in shared {
            let cause = cause.map_or("without a cause".to_owned(), |cause| cause.to_string());
            row(&format!("two had it at once: {cause}"), count.to_string())?;
        }
        let HandOvers { took, to_sleepers } = self.hand_overs();
        let at = |share: usize| rank(&took, share);
        row("hand-overs after a death", took.len().to_string())?;
        row("handed over to somebody who was stopped just then", to_sleepers.to_string())?;
        row("hand-over p50, p99, longest", format!("{}, {}, {} ms", at(50), at(99), at(100)))?;
        row("every outcome asked for and known after", format!("{:.1} s", self.settling.as_secs_f64()))
    }
}
