//! How long it takes until somebody goes on with what the dead were at.

use super::{AWAKE, Account, Death, Handling, Holding, STOPPED, Stop, Worker};

/// How quickly others went on with what the dead had been at.
#[derive(Debug, Default)]
pub struct HandOvers {
    /// In milliseconds, sorted.
    pub took: Vec<i64>,
    /// How many went to somebody who was stopped at that time.
    pub to_sleepers: usize,
}

/// Whether more than one in a hundred of these hand-overs, in milliseconds and in their order, took longer than 2 s, or any
/// longer than 10. Of fewer than a hundred one may: a machine that is busy with other things stalls now and then.
pub fn too_slow(sorted: &[i64]) -> Option<String> {
    let late = sorted.iter().filter(|took| **took > 2_000).count();
    let longest = sorted.last().copied().unwrap_or(0);
    let is_fault = late > (sorted.len() / 100).max(1) || longest > 10_000;
    is_fault.then(|| format!("hand-over: {late} of {} took over 2 s, the longest {longest} ms", sorted.len()))
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
                    all.to_sleepers += 1;
                } else {
                    all.took.push(next - killed);
                }
            }
        }
        all.took.sort_unstable();
        all
    }
}
