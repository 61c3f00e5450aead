//! What the [`Collector`](super::Collector) does next: nudges that name events, and passes over what nobody has.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use serde::Serialize;

use super::work::Since;
use crate::{event::EventId, store::UnservedKey};

/// How often it looks, and how old what it takes must be.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// From the begin of a pass to that of the next.
    pub interval: Duration,
    /// How old a row must be.
    pub age: Duration,
}

/// Nudges that wait, and the ids that they name.
const MOST_NUDGES: usize = 1_024;
const MOST_IDS: usize = 16_384;
/// So far back a pass looks beyond the begin of the one before it: a transaction shows its rows when it commits, with
/// times from before. On one writer none can be open for long.
const OVERLAP: Duration = Duration::from_secs(60);
/// How often a pass looks at everything since the first start: times may be anyone's.
const WHOLE: Duration = Duration::from_secs(600);

/// What to do next. One job at a time.
#[derive(Debug, PartialEq)]
pub enum Job<N> {
    /// These events, for who named them.
    Named(N, Vec<EventId>),
    /// A page of the pass that is under way.
    Page {
        /// Where the pass begins.
        since: Since,
        /// Where the page begins; none: where the pass does.
        after: Option<UnservedKey>,
    },
}

/// Nudges and passes.
#[derive(Debug)]
pub struct Rounds<N> {
    pace: Pace,
    named: VecDeque<(N, Vec<EventId>)>,
    ids: usize,
    /// They get the next pass.
    unnamed: Vec<N>,
    pass: Option<Pass<N>>,
    /// When the last pass began, by both clocks.
    began: Option<(Instant, i64)>,
    /// The same for the last that looked at everything, unless it failed.
    whole: Option<Instant>,
    /// A job is under way.
    busy: bool,
    /// The last job was a nudge's: if there is a pass, it's its turn.
    turn: bool,
    first_start: Option<i64>,
    last_taken: u64,
}

#[derive(Debug)]
struct Pass<N> {
    since: Since,
    after: Option<UnservedKey>,
    nudgers: Vec<N>,
    taken: u64,
}

/// For people.
#[derive(Debug, Serialize)]
pub struct RoundsState {
    /// Nudges that wait.
    nudges: usize,
    /// A pass is under way.
    looking: bool,
    /// What the last pass took.
    last_taken: u64,
    /// When a hub first served this database, in milliseconds since 1970, once it is known.
    first_start: Option<i64>,
}

impl<N> Rounds<N> {
    /// Nothing was looked at yet.
    pub fn new(pace: Pace) -> Self {
        Self {
            pace,
            named: VecDeque::new(),
            ids: 0,
            unnamed: Vec::new(),
            pass: None,
            began: None,
            whole: None,
            busy: false,
            turn: false,
            first_start: None,
            last_taken: 0,
        }
    }

    /// Takes a nudge up; gives it back if too many wait.
    pub fn nudged(&mut self, nudger: N, ids: Vec<EventId>) -> Result<(), N> {
        let alone = self.named.is_empty();
        if self.waiting() >= MOST_NUDGES || (!alone && self.ids + ids.len() > MOST_IDS) {
            return Err(nudger);
        }
        if ids.is_empty() {
            self.unnamed.push(nudger);
        } else {
            self.ids += ids.len();
            self.named.push_back((nudger, ids));
        }
        Ok(())
    }

    /// The next job, if there is one; from then on it is under way. `wall` is in milliseconds since 1970.
    pub fn next(&mut self, now: Instant, wall: i64) -> Option<Job<N>> {
        if self.busy {
            return None;
        }
        if self.pass.is_none() && (!self.unnamed.is_empty() || self.is_due(now)) {
            self.begin(now, wall);
        }
        let passes = self.pass.is_some() && (self.turn || self.named.is_empty());
        self.turn = false;
        if let Some(pass) = self.pass.as_ref().filter(|_| passes) {
            self.busy = true;
            return Some(Job::Page { since: pass.since, after: pass.after.clone() });
        }
        let (nudger, ids) = self.named.pop_front()?;
        (self.busy, self.turn) = (true, true);
        self.ids -= ids.len();
        Some(Job::Named(nudger, ids))
    }

    fn is_due(&self, now: Instant) -> bool {
        self.began.is_none_or(|(began, _)| now.saturating_duration_since(began) >= self.pace.interval)
    }

    fn begin(&mut self, now: Instant, wall: i64) {
        let looked = self.whole.is_some_and(|whole| now.saturating_duration_since(whole) < WHOLE);
        let since = match self.began.filter(|_| looked) {
            None => {
                self.whole = Some(now);
                Since::FirstStart
            }
            Some((_, began)) => {
                let back = (OVERLAP + self.pace.age).as_millis();
                // A clock that was set back shows earlier times from now on.
                Since::Time(began.min(wall).saturating_sub(i64::try_from(back).unwrap_or(i64::MAX)))
            }
        };
        self.began = Some((now, wall));
        let nudgers = std::mem::take(&mut self.unnamed);
        self.pass = Some(Pass { since, after: None, nudgers, taken: 0 });
    }

    /// A nudge's events are done.
    pub fn named_done(&mut self) {
        self.busy = false;
    }

    /// A page is done. At the pass's end: who nudged for it, and how many it took.
    pub fn paged(&mut self, taken: u64, next: Option<UnservedKey>) -> Option<(Vec<N>, u64)> {
        self.busy = false;
        let pass = self.pass.as_mut()?;
        pass.taken += taken;
        if next.is_some() {
            pass.after = next;
            return None;
        }
        let Pass { nudgers, taken, .. } = self.pass.take()?;
        self.last_taken = taken;
        Some((nudgers, taken))
    }

    /// The page failed, and the pass with it: who nudged for it. The next one looks at everything.
    pub fn failed(&mut self) -> Vec<N> {
        self.busy = false;
        self.whole = None;
        self.pass.take().map(|pass| pass.nudgers).unwrap_or_default()
    }

    /// When a hub first served the database.
    pub fn learned(&mut self, first_start: i64) {
        self.first_start = Some(first_start);
    }

    /// Nothing more is done: who waits.
    pub fn end(&mut self) -> Vec<N> {
        let mut all = std::mem::take(&mut self.unnamed);
        all.extend(self.pass.take().map(|pass| pass.nudgers).unwrap_or_default());
        all.extend(std::mem::take(&mut self.named).into_iter().map(|(nudger, _)| nudger));
        self.ids = 0;
        all
    }

    /// How long there is nothing to do; none while a job is under way.
    pub fn pause(&self, now: Instant) -> Option<Duration> {
        let due = self.began.map_or(now, |(began, _)| began + self.pace.interval);
        (!self.busy).then(|| due.saturating_duration_since(now))
    }

    fn waiting(&self) -> usize {
        let passing = self.pass.as_ref().map_or(0, |pass| pass.nudgers.len());
        self.named.len() + self.unnamed.len() + passing
    }

    /// For people.
    pub fn state(&self) -> RoundsState {
        RoundsState {
            nudges: self.waiting(),
            looking: self.pass.is_some(),
            last_taken: self.last_taken,
            first_start: self.first_start,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace { interval: Duration::from_secs(5), age: Duration::from_secs(10) };
    const WALL: i64 = 1_796_000_000_000;

    fn ids(count: usize) -> Vec<EventId> {
        vec![EventId::from_stored("e"); count]
    }

    #[test]
    fn the_first_pass_looks_at_everything_the_others_at_what_may_have_come() {
        let (mut rounds, start) = (Rounds::<u8>::new(PACE), Instant::now());
        let page = |since| Some(Job::Page { since, after: None });
        assert_eq!(rounds.next(start, WALL), page(Since::FirstStart));
        assert_eq!((rounds.next(start, WALL), rounds.pause(start)), (None, None), "one at a time");
        assert_eq!(rounds.paged(3, None), Some((vec![], 3)));
        assert_eq!(rounds.next(start, WALL), None);
        assert_eq!(rounds.pause(start), Some(PACE.interval));
        let later = start + PACE.interval;
        assert_eq!(rounds.next(later, WALL + 5_000), page(Since::Time(WALL - 70_000)));
        rounds.paged(0, None);
        // The clock was set back by an hour.
        let set_back = WALL - 3_600_000;
        assert_eq!(rounds.next(later + PACE.interval, set_back), page(Since::Time(set_back - 70_000)));
        rounds.paged(0, None);
        assert_eq!(rounds.next(start + WHOLE, WALL), page(Since::FirstStart));
        assert!(rounds.failed().is_empty());
        assert_eq!(rounds.next(start + WHOLE + PACE.interval, WALL), page(Since::FirstStart), "it failed");
    }

    #[test]
    fn a_nudge_gets_a_pass_that_begins_after_it() {
        let (mut rounds, now) = (Rounds::new(PACE), Instant::now());
        assert!(matches!(rounds.next(now, WALL), Some(Job::Page { .. })));
        rounds.nudged('a', vec![]).unwrap();
        rounds.nudged('b', vec![]).unwrap();
        assert_eq!(rounds.paged(1, None), Some((vec![], 1)), "it began before them");
        assert!(matches!(rounds.next(now, WALL), Some(Job::Page { .. })), "at once");
        rounds.nudged('c', vec![]).unwrap();
        assert_eq!(rounds.paged(2, None), Some((vec!['a', 'b'], 2)));
        assert!(rounds.next(now, WALL).is_some());
        assert_eq!(rounds.failed(), ['c']);
    }

    #[test]
    fn named_events_and_pages_take_turns() {
        let (mut rounds, now) = (Rounds::new(PACE), Instant::now());
        for nudger in 1..4 {
            rounds.nudged(nudger, ids(1)).unwrap();
        }
        assert_eq!(rounds.next(now, WALL), Some(Job::Named(1, ids(1))));
        rounds.named_done();
        assert!(matches!(rounds.next(now, WALL), Some(Job::Page { .. })));
        assert_eq!(rounds.paged(0, None), Some((vec![], 0)));
        assert_eq!(rounds.next(now, WALL), Some(Job::Named(2, ids(1))));
        rounds.nudged(4, vec![]).unwrap();
        let mut left = rounds.end();
        left.sort_unstable();
        assert_eq!(left, [3, 4]);
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut rounds = Rounds::new(PACE);
        assert_eq!(rounds.nudged(0, ids(MOST_IDS + 1)), Ok(()), "alone it fits");
        assert_eq!(rounds.nudged(1, ids(1)), Err(1));
        let mut rounds = Rounds::new(PACE);
        assert!((0..MOST_NUDGES).all(|nudger| rounds.nudged(nudger, vec![]).is_ok()));
        assert_eq!(rounds.nudged(MOST_NUDGES, vec![]), Err(MOST_NUDGES));
    }
}
