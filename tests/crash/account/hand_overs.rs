//! How long it takes until somebody goes on with what the dead were at.

use super::{AWAKE, Account, Death, Handling, Holding, STOPPED, Stop, Worker};
use crate::consumer::LEASE;

/// How quickly others went on with what the dead had been at.
#[derive(Debug, Default)]
pub struct HandOvers {
    /// In milliseconds, sorted.
    pub took: Vec<i64>,
    /// The same of those that went to somebody who was stopped at that time, or may have: he was killed in his sleep.
    pub to_sleepers: Vec<i64>,
}

/// Whether more than one in a hundred of these hand-overs, in milliseconds and in their order, took longer than 2 s, or any
/// longer than 10. Of fewer than a hundred one may: a machine that is busy with other things stalls now and then.
pub fn too_slow(sorted: &[i64]) -> Option<String> {
    let late = sorted.iter().filter(|took| **took > 2_000).count();
    let longest = sorted.last().copied().unwrap_or(0);
    let is_fault = late > (sorted.len() / 100).max(1) || longest > 10_000;
    is_fault.then(|| format!("hand-over: {late} of {} took over 2 s, the longest {longest} ms", sorted.len()))
}

/// What went to sleepers may take a lease longer for each; nor may they be most of all.
pub fn too_much_sleep(all: &HandOvers) -> Option<String> {
    let HandOvers { took, to_sleepers } = all;
    let longest = to_sleepers.last().copied().unwrap_or(0);
    let leases = i64::try_from((2 * LEASE).as_millis()).unwrap();
    let is_fault = longest > 2_000 + leases || (to_sleepers.len() > 9 && to_sleepers.len() > took.len());
    is_fault.then(|| {
        let (slept, all) = (to_sleepers.len(), took.len() + to_sleepers.len());
        format!("hand-over: {slept} of {all} went to somebody who was stopped, the longest took {longest} ms")
    })
}

impl Worker {
    /// Whether it was stopped, or just awake, at some moment between these.
    fn slept(&self, from: i64, to: i64) -> bool {
        let stopped = i64::try_from(STOPPED.as_millis()).unwrap();
        self.stops.iter().any(|stop| stop.at <= to && from <= stop.at + stopped + AWAKE)
    }

    /// Whether it was killed while it was stopped, after the first of these moments; the stop was before the second.
    fn died_asleep(&self, from: i64, to: i64) -> bool {
        let stopped = i64::try_from(STOPPED.as_millis()).unwrap();
        let dies =
            |stop: &Stop, death: Death| stop.at <= to && (from..=stop.at + stopped).contains(&death.at);
        self.death.is_some_and(|death| self.stops.iter().any(|stop| dies(stop, death)))
    }
}

impl Account {
    /// From the death of a consumer to the moment that another begins what it was at, in milliseconds, sorted. Only the
    /// first loss of an event, since later ones wait by its back-off, and only where the hub lived. What was handed over to
    /// somebody who was stopped just then is told apart: there it had to wait for the end of one more lease.
    pub fn hand_overs(&self) -> HandOvers {
        let (mut all, not_begun) = (HandOvers::default(), self.not_begun());
        for (key, handlings) in &self.handlings() {
            for (at, pair) in handlings.windows(2).enumerate() {
                let (Some(killed), 1) = (pair[0].killed, pair[0].attempt) else { continue };
                let next = pair[1].began;
                let hub_lived = |from: i64, to: i64| {
                    self.hub_kills.iter().zip(&self.hub_back).all(|(down, up)| to < *down || from > *up)
                };
                if next < killed || !hub_lived(pair[0].began, next) {
                    continue;
                }
                let others = handlings[at + 2..].iter().map(Handling::holding);
                let others = others.chain(not_begun.get(key).into_iter().flatten().copied());
                let asleep = |had: Holding| self.workers[had.worker].slept(killed, next);
                let had = |had: &Holding| had.handed <= next && had.until >= killed;
                // Whoever was killed in its sleep wrote nothing down.
                if others.filter(had).any(asleep)
                    || self.workers.iter().any(|it| it.died_asleep(killed, next))
                {
                    all.to_sleepers.push(next - killed);
                } else {
                    all.took.push(next - killed);
                }
            }
        }
        all.took.sort_unstable();
        all.to_sleepers.sort_unstable();
        all
    }
}
